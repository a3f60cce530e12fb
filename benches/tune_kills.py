"""Searches that are killed (SIGKILL) at random points, while another process reads their store. Needs root.

    python benches/tune_kills.py [--kills N] [--seed N]

Three fifths of the kills hit searches on a modelled machine, whose end must be that of an undisturbed search: the same
decision, the same trials. The others hit a search on a loop device with a command as its load: the search, or the
load alone. After each the settings of the queue must be as before, once `spindle restore` has run. No trial may run
twice, and no trial that was seen as done may be lost. Exit status 1 if one of this is not so.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # tests/

from tests.program import ended, spindle  # noqa: E402
from tests.queue import Queue  # noqa: E402
from tests.tune.killed import DEADLINE_S, LOAD, TUNER, killed, on_loop, points, search, twice  # noqa: E402
from tests.tune.test_tune import MODELLED, SAME  # noqa: E402
from tests.workbench import Workbench  # noqa: E402

EACH = 10
"""Kills of one search."""


def main() -> int:
    """Kill, compare, print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--kills", type=int, default=50)
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    faults: list[str] = []
    modelled = 3 * asked.kills // 5
    for kind, wanted in ((on_model, modelled), (on_queue, asked.kills - modelled)):
        done, seed = 0, asked.seed
        while done < wanted:
            with place() as folder:
                kills, line, found = kind(folder, min(EACH, wanted - done), seed)
            print(line, flush=True)
            faults += found
            done, seed = done + kills, seed + 1
    for fault in faults:
        print(f"fault: {fault}")
    print("no fault" if not faults else f"{len(faults)} faults")
    return 1 if faults else 0


@contextmanager
def place() -> Iterator[Path]:
    """A folder, with a state folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        yield Path(folder)


def on_model(folder: Path, kills: int, seed: int) -> tuple[int, str, list[str]]:
    """Kill a search on a modelled machine; a line, and what was not as it should be."""
    begin = [*MODELLED, "--seed", str(seed)]
    whole = ended(search(folder, *begin, "--name", "whole"), DEADLINE_S)
    found = killed(folder, "killed", begin, points(kills, len(whole.json["trials"]), seed))
    faults = [f"seed {seed}: {word} ran twice" for word in twice(folder, "killed")]
    if found.ended.status != 0:
        faults.append(f"seed {seed}: {found.ended.err.strip()}")
    else:
        faults += [f"seed {seed}: {name} differs" for name in SAME if whole.json[name] != found.ended.json[name]]
    return found.kills, f"modelled machine, seed {seed}: killed {found.kills} times, {len(faults)} faults", faults


def on_queue(folder: Path, kills: int, seed: int) -> tuple[int, str, list[str]]:
    """Kill a search on a loop device, or its load."""
    faults: list[str] = []
    bench = Workbench(folder)
    with bench.undo:
        device = bench.loop()
        queue = Queue(Path(device).name)
        before = queue.values()

        def put_back() -> None:
            done = spindle("restore")
            if done.status != 0:
                faults.append(f"seed {seed}: {done.err.strip()}")
            changed = [path for path, value in queue.values().items() if before.get(path) != value]
            faults.extend(f"seed {seed}: {path} was not put back" for path in changed)

        begin = on_loop(folder, device)
        found = killed(folder, "killed", begin, points(kills, 22, seed), put_back, (TUNER, LOAD))
        put_back()
        faults += [f"seed {seed}: {word} ran twice" for word in twice(folder, "killed")]
        if found.ended.status != 0:
            faults.append(f"seed {seed}: {found.ended.err.strip()}")
    line = f"loop device, seed {seed}: search killed {found.kills} times, its load {found.loads}, {len(faults)} faults"
    return found.kills + found.loads, line, faults


if __name__ == "__main__":
    sys.exit(main())
