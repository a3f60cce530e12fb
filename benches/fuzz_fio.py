"""Check that fio and Spindle issue the same requests for the same job file.

Both tools run random job files with the options that the converter takes, on a small loop device or on files of an ext4
on one. The kernel's block tracepoints record the requests. A difference is excused if the conversion's findings name
it; any other is reduced to the smallest job file that still shows it. Needs root and fio.

    python benches/fuzz_fio.py [--jobs 1000] [--seed 1] [--replay FILE] [--markdown]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from fio_fuzz.compare import Difference, differences
from fio_fuzz.excuses import excusing_line
from fio_fuzz.generate import SET, drawn, job_file, not_drawn
from fio_fuzz.jobs import JobFile
from fio_fuzz.leftovers import own_folder
from fio_fuzz.observe import FuzzRunner, clones_of
from fio_fuzz.shrink import smallest
from fio_fuzz.workers import in_order

from spindle.formats.fio_job import Conversion, JobFileRefused, convert_text

NICE = -10
"""Niceness of both tools: they sleep between requests, and on a busy machine they would wake up late."""
PAUSES = (0, 1, 2, 4, 8)
"""Pauses before each retry if the time differs, s."""


@dataclass
class Outcome:
    """The result of one job file."""

    state: str
    """refused (by the converter), invalid (for fio), failed (in Spindle), compared"""
    unexcused: list[Difference] = field(default_factory=list)
    excused: dict[str, str] = field(default_factory=dict)
    """Difference -> the finding that names it."""
    why: str = ""


@dataclass
class Tally:
    """Sums over all job files."""

    states: Counter[str] = field(default_factory=Counter)
    options: Counter[str] = field(default_factory=Counter)
    """Jobs compared in which an option was given."""
    excused: Counter[str] = field(default_factory=Counter)
    unexcused: list[tuple[int, JobFile, Outcome]] = field(default_factory=list)
    jobs: int = 0
    """Sections of the compared job files."""
    began: float = field(default_factory=time.monotonic)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000, help="job files to compare (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the first; job file N alone: the seed that is printed")
    parser.add_argument(
        "--replay", type=Path, metavar="FILE", help="compare this job file alone; DEVICE stands for the device"
    )
    parser.add_argument("--side-by-side", type=int, default=3, metavar="N", help="benches at the same time (default 3)")
    parser.add_argument("--keep-going", type=int, default=20, metavar="N", help="give up after N unexcused differences")
    parser.add_argument("--no-shrink", action="store_true", help="show differing job files as they are")
    parser.add_argument("--markdown", action="store_true", help="end with the table of docs/reference/fio-jobs.md")
    asked = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("fio") is None:
        sys.exit("fuzz-fio: needs root (loop devices, tracefs) and fio")
    os.setpriority(os.PRIO_PROCESS, 0, NICE)
    with own_folder() as folder, contextlib.ExitStack() as stack:
        count = 1 if asked.replay else max(asked.side_by_side, 1)
        benches = [stack.enter_context(FuzzRunner(folder / f"bench-{number}")) for number in range(count)]
        if asked.replay:
            return replay(benches[0], asked.replay.read_text())
        tally = fuzz(benches, asked.jobs, asked.seed, asked.keep_going, not asked.no_shrink)
    show(tally, asked.markdown)
    return 1 if tally.unexcused else 0


def fuzz(benches: list[FuzzRunner], jobs: int, seed: int, most_unexcused: int = 20, shrinks: bool = True) -> Tally:
    """Until so many job files were compared, or so many differ without a word. The same job files, however many benches
    share them.
    """
    tally = Tally()
    if not jobs:
        return tally

    def work(runner: FuzzRunner, number: int) -> tuple[Outcome, str]:
        job = job_file(random.Random(number))
        outcome = tried(runner, job)
        return outcome, account(runner, number, job, outcome, shrinks) if is_bad(outcome) else ""

    with in_order(benches, work, seed) as done:
        for number, (outcome, text) in done:
            count(tally, number, job_file(random.Random(number)), outcome)
            if text:
                print(text, flush=True)
            if tally.states["compared"] >= jobs or len(tally.unexcused) >= most_unexcused:
                break
    return tally


def is_bad(outcome: Outcome) -> bool:
    """True if a person must look at it."""
    return bool(outcome.unexcused) or outcome.state == "failed"


def tried(runner: FuzzRunner, job: JobFile) -> Outcome:
    """Compare one job file; again if only the time differs, as another program may have delayed one tool."""
    outcome = compared(runner, job)
    for pause in PAUSES:
        if {difference.what for difference in outcome.unexcused} != {"time"}:
            break
        time.sleep(pause)
        outcome = compared(runner, job)
    return outcome


def compared(runner: FuzzRunner, job: JobFile) -> Outcome:
    """One job file, run by both."""
    text = job.text(runner.device)
    try:
        conversion = convert_text(text, "job.fio")
    except JobFileRefused as refused:
        return Outcome("refused", why=str(refused))
    if conversion.refused:
        return Outcome("refused", why=str(conversion.findings[0]))
    return of_conversion(runner, text, job.folder, conversion)


def of_conversion(runner: FuzzRunner, text: str, folder: bool, conversion: Conversion) -> Outcome:
    theirs = runner.fio(text, folder, clones_of(conversion))
    if theirs.failed:
        return Outcome("invalid", why=theirs.failed)
    ours = runner.spindle(text, folder)
    if ours.failed.startswith("refused: "):
        return Outcome("refused", why=ours.failed)
    if ours.failed:
        return Outcome("failed", why=ours.failed)
    outcome = Outcome("compared")
    for difference in differences(conversion, theirs, ours):
        line = excusing_line(difference, conversion)
        if line:
            outcome.excused[str(difference)] = line
        else:
            outcome.unexcused.append(difference)
    return outcome


def count(tally: Tally, number: int, job: JobFile, outcome: Outcome) -> None:
    tally.states[outcome.state] += 1
    if outcome.state == "compared":
        tally.jobs += len(job.sections)
        tally.options.update(job.options())
        tally.excused.update(line.split(": ", 2)[-1] for line in set(outcome.excused.values()))
    if is_bad(outcome):
        tally.unexcused.append((number, job, outcome))


def account(runner: FuzzRunner, number: int, job: JobFile, outcome: Outcome, shrinks: bool) -> str:
    """The unexcused differences, and the smallest job file that shows them."""
    kinds = {difference.what for difference in outcome.unexcused}

    def differs(smaller: JobFile) -> bool:
        again = compared(runner, smaller)
        return again.state == outcome.state and (not kinds or any(each.what in kinds for each in again.unexcused))

    lines = [f"--- seed {number}: {outcome.state} {outcome.why}", *(f"    {each}" for each in outcome.unexcused)]
    if shrinks:
        job = smallest(job, differs)
        smaller = compared(runner, job)
        lines += ["    the smallest job file that still differs:", *(f"    {each}" for each in smaller.unexcused)]
    return "\n".join((*lines, "    " + job.text("DEVICE").replace("\n", "\n    ").rstrip()))


def replay(runner: FuzzRunner, text: str) -> int:
    """Compare a given job file."""
    folder = "DEVICE" not in text
    text = text.replace("DEVICE", runner.device)
    conversion = convert_text(text, "job.fio")
    for finding in conversion.findings:
        print(finding)
    if conversion.refused:
        return 2
    outcome = of_conversion(runner, text, folder, conversion)
    print(outcome.state, outcome.why)
    for difference, line in outcome.excused.items():
        print(f"excused   {difference}\n        by {line}")
    for difference in outcome.unexcused:
        print(f"unexcused {difference}")
    return 1 if outcome.unexcused or outcome.state == "failed" else 0


def show(tally: Tally, markdown: bool) -> None:
    states = tally.states
    left_out = not_drawn()
    tried = {*drawn(), *SET}
    print(
        f"{states['compared']} job files with {tally.jobs} jobs compared in {time.monotonic() - tally.began:.0f} s; "
        f"{states['refused']} more refused by the converter, {states['invalid']} invalid for fio, "
        f"{states['failed']} failed"
    )
    print(
        f"{len(tried)} options tried, {len(left_out)} not; {sum(tally.excused.values())} differences excused, "
        f"{len(tally.unexcused)} job files with unexcused ones"
    )
    for line, times in tally.excused.most_common():
        print(f"{times:6}  {line}")
    unseen = sorted(name for name in tried if not tally.options[name])
    if unseen:
        print(f"tried, but in no job that was compared: {', '.join(unseen)}")
    if markdown:
        print(table(tally, tried, left_out))


def table(tally: Tally, tried: set[str], left_out: dict[str, str]) -> str:
    """That of docs/reference/fio-jobs.md."""
    lines = ["", "| option | job files |", "|---|---|"]
    lines += [f"| `{name}` | {tally.options[name]} |" for name in sorted(tried)]
    lines += ["", "| not tried | why |", "|---|---|"]
    reasons: dict[str, list[str]] = {}
    for name, why in left_out.items():
        reasons.setdefault(why, []).append(name)
    lines += [f"| {', '.join(f'`{name}`' for name in names)} | {why} |" for why, names in reasons.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
