"""A search on a loop device whose limit of the block I/O controller stands for a knob with a known best. Needs root.

    python benches/tune_blkio.py [--seeds N] [--trials N]

The knob `limit` has 16 levels. Each sets how many reads a second the kernel lets the control group of the search make
(`blkio.throttle`, or `io.max` of the second version), so the speed at each level is known beforehand and the kernel
itself keeps to it. The largest is at level 11, the start is level 4. A second knob, `read_ahead_kb`, does nothing for
direct reads. So the search has 48 points, and makes a quarter as many trials. It must recommend level 11, and what it
measures in the confirmation must be the limit within 3 %. Exit status 1 if a seed does not.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # tests/

from tests.program import COMMAND, ended, spindle  # noqa: E402
from tests.tune.killed import TOLERATED  # noqa: E402
from tests.workbench import Workbench  # noqa: E402

LEVELS, BEST, START = range(1, 17), 11, 4
SLOWEST, FASTEST = 300, 1500
"""Reads a second far from the best level, and at it."""
WIDTH = 4.0
DOES_NOTHING = ("64", "128", "256")
EXACT = 0.03
DEADLINE_S = 900.0
GROUPS = Path("/sys/fs/cgroup")


def limit_at(level: int) -> int:
    """Reads a second that a level allows: 95 % of the best beside it, 24 % at the start."""
    return round(SLOWEST + (FASTEST - SLOWEST) * math.exp(-(((level - BEST) / WIDTH) ** 2)))


def main() -> int:
    """Search, compare, print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--trials", type=int, default=len(LEVELS) * len(DOES_NOTHING) // 4)
    asked = options.parse_args()
    wrong = 0
    print(f"{'seed':>4}  {'level':>5}  {'limit':>5}  {'measured':>8}  {'start':>6}  decision")
    for seed in range(1, asked.seeds + 1):
        found = searched(seed, asked.trials)
        level = int((found["winner"] or {"limit": START})["limit"]) if found["decision"] == "better" else START
        start, best = means(found)
        is_right = level == BEST and abs(best / limit_at(level) - 1) <= EXACT
        wrong += not is_right
        print(f"{seed:4}  {level:5}  {limit_at(level):5}  {best:8.0f}  {start:6.0f}  {found['sentence']}", flush=True)
    print("every seed found the best level" if not wrong else f"{wrong} of {asked.seeds} seeds did not")
    return 1 if wrong else 0


def searched(seed: int, trials: int) -> dict:  # type: ignore[type-arg]
    """The decision of one search, in a folder and a control group of its own."""
    with tempfile.TemporaryDirectory() as folder, own_group() as (join, limiting):
        os.environ["XDG_STATE_HOME"] = folder
        bench = Workbench(Path(folder))
        with bench.undo:
            device = bench.loop()
            plan = Path(folder) / "plan.toml"
            plan.write_text(plan_text(device, limiting, trials, seed))
            store = str(Path(folder) / "store.db")
            words = [*COMMAND, "campaign", "run", str(plan), "--store", store, "-q"]
            running = subprocess.Popen(
                words, cwd=folder, preexec_fn=join, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            done = ended(running, DEADLINE_S)
            if done.status not in (0, 1):
                raise SystemExit(done.err)
            return json.loads(spindle("tune", "--resume", "plan", "--store", store, "--json", cwd=Path(folder)).out)  # type: ignore[no-any-return]


def means(found: dict) -> tuple[float, float]:  # type: ignore[type-arg]
    """Reads a second of the start and of the winner, in the confirmation; of the start alone if there is no winner."""
    trials = [one for one in found["trials"] if one["stage"] == "confirm" and one["state"] == "done"]
    of = {is_best: [one["value"] for one in trials if (one["levels"] == found["winner"]) == is_best]
          for is_best in (False, True)}  # fmt: skip
    return tuple(sum(one) / len(one) if one else math.nan for one in (of[False], of[True]))  # type: ignore[return-value]


@contextmanager
def own_group() -> Iterator[tuple[Callable[[], None], Callable[[str, int], list[str]]]]:
    """A control group: what a process calls to join it, and the command that limits its reads of a device."""
    first = GROUPS / "blkio"
    group = (first if first.is_dir() else GROUPS) / f"spindle-bench-{os.getpid()}"
    group.mkdir()
    try:
        if not first.is_dir():
            (GROUPS / "cgroup.subtree_control").write_text("+io")

        def join() -> None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

        def limiting(number: str, rate: int) -> list[str]:
            file = "blkio.throttle.read_iops_device" if first.is_dir() else "io.max"
            words = f"{number} {rate}" if first.is_dir() else f"{number} riops={rate}"
            return ["sh", "-c", f"echo '{words}' > {group / file}"]

        yield join, limiting
    finally:
        group.rmdir()


def plan_text(device: str, limiting: Callable[[str, int], list[str]], trials: int, seed: int) -> str:
    """The plan of the search."""
    status = os.stat(device)
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    lines = [
        f'target = "{device}"', 'workload = "seeker"', f"seed = {seed}",
        'options = { seconds = 1, ramp = "200ms", depth = 16 }', "", "[factors.limit.levels]",
        *(f'"{level}" = {{ setup = [{json.dumps(limiting(number, limit_at(level)))}] }}' for level in LEVELS),
        "", "[factors.read_ahead_kb]", 'sets = "knobs.read_ahead_kb"', f"values = {json.dumps(DOES_NOTHING)}",
        "", "[design]", 'kind = "search"',
        f'baseline = {{ limit = "{START}", read_ahead_kb = "{DOES_NOTHING[1]}" }}',
        "", "[trials]", 'metric = "iops"', f"tolerate = {json.dumps([*TOLERATED.split(','), *OF_THE_LIMIT])}",
        "", "[search]", f"trials = {trials}", f"screen = {max(2, trials // 3)}", "confirm = 6",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


OF_THE_LIMIT = (
    "group-limit",
    "saturated",
    "working-set",
    "cache-below",
    "cache-share",
    "achieved-depth",
    "littles-law",
)
"""Verdicts of a limited load on a small loop device, which this bench means to be so."""

if __name__ == "__main__":
    sys.exit(main())
