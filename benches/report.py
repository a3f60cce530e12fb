"""How long `spindle report` takes and how large its file is: 100 runs of a minute, 20 cases of 5.

    python benches/report.py [--runs 100]

Goals: 5 s, 2 MB. Runs are of modelled machines, so that anyone gets the same records.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from spindle.result.document import encode
from spindle.result.record import Record
from spindle.run.order import Order, carry_out
from spindle.run.targets import parse
from spindle.run.watch import SilentWatch
from spindle.store import open_store

GOAL_S = 5.0
GOAL_BYTES = 2_000_000
MACHINES = ("six-sata-f2", "six-sata-raid10", "six-sata-raid5", "ten-sata-raid10")
WORKERS = (1, 4, 16, 48, 128)


def main() -> int:
    """Print a row for each way; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    asked = parser.parse_args()
    records = [_record(number) for number in range(asked.runs)]
    missed = False
    print(f"{asked.runs} runs{'':14}{'seconds':>9}{'bytes':>11}")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.sqlite"
        with open_store(store) as opened:
            opened.add_all(records, tags=["bench"])
        files = []
        for number, record in enumerate(records):
            files.append(Path(folder) / f"{number}.json")
            files[-1].write_bytes(encode(record))
        for name, selection in (
            ("from files", [str(file) for file in files]),
            ("from a store", ["tag:bench", "--store", str(store)]),
        ):
            for form in ("html", "md", "csv"):
                seconds, size = _timed([*selection, "-o", str(Path(folder) / f"report.{form}")])
                over = form == "html" and (seconds > GOAL_S or size > GOAL_BYTES)
                missed |= over
                goal = ("MISS" if over else "met") if form == "html" else ""
                print(f"{name:<13}{form:<9}{seconds:>9.2f}{size:>11}  {goal}".rstrip())
    return int(missed)


def _record(number: int) -> Record:
    machine = MACHINES[number % len(MACHINES)]
    workers = WORKERS[number // len(MACHINES) % len(WORKERS)]
    seed = number // (len(MACHINES) * len(WORKERS)) + 1
    return carry_out(Order("randomio", parse(machine), (("workers", str(workers)), ("seed", str(seed)))), SilentWatch())


def _timed(arguments: list[str]) -> tuple[float, int]:
    """The whole command, its start included."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "spindle.cli", "report", *arguments]
    subprocess.run(command, check=False, env=os.environ)
    return time.perf_counter() - begin, Path(arguments[-1]).stat().st_size


if __name__ == "__main__":
    sys.exit(main())
