"""Cost of the library and the command line, before and around a measurement.

    make bench-library [ARGS='--rounds 20']

Prints the median of each, the goal, and exits with 1 if a goal is missed:

    import spindle          a new interpreter with it, less one without
    spindle --help          a whole process
    spindle.run             on a null target: the time of the call beyond the core's run of the same workload
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import spindle
from spindle import _core

GOALS_MS = {"import spindle": 60.0, "spindle --help": 120.0, "spindle.run": 5.0}
WORKLOAD = {"seconds": "200ms", "ramp": "0s", "workers": "1"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    bare = _median(rounds, lambda: _process("-c", "pass"))
    found = {
        "import spindle": _median(rounds, lambda: _process("-c", "import spindle")) - bare,
        "spindle --help": _median(rounds, lambda: _process("-m", "spindle", "--help")),
        "spindle.run": _median(rounds, _overhead),
    }
    for name, ms in found.items():
        print(f"{name:<16} {ms:7.1f} ms   goal {GOALS_MS[name]:.0f} ms{'' if ms <= GOALS_MS[name] else '   missed'}")
    print(f"(an empty interpreter: {bare:.1f} ms)")
    return int(any(ms > GOALS_MS[name] for name, ms in found.items()))


def _median(rounds: int, measured: Callable[[], float]) -> float:
    """The median in ms; the first round is not counted."""
    measured()
    return statistics.median(measured() for _ in range(rounds))


def _process(*arguments: str) -> float:
    return _timed(lambda: subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True))


def _overhead() -> float:
    """One pair, run right after each other."""
    return _timed(lambda: spindle.run("randomio", "null:1GiB", **WORKLOAD)) - _timed(_core_run)


def _core_run() -> None:
    text = _core.preset_text("randomio")
    run = _core.Run.null(_core.Workload.parse(text, "preset randomio", "randomio", list(WORKLOAD.items())), 1 << 30)
    while not run.wait(0.2):
        pass
    run.figures()


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1e3


if __name__ == "__main__":
    sys.exit(main())
