"""How good the settings are that `spindle tune` recommends, where the best are known, beside other optimisers.

    python benches/tune.py [family] [grids] [models] [winners] [lab] [--seeds N] [--others random,tpe,smac]

Without a name: all but `lab`, which needs the lab's kernel (`make lab`).
Optuna and SMAC are needed for `tpe` and `smac`: pip install 'spindle[bench]'; what is not installed is left out, and
said. Grids are kept under build/bench-tune.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # of the rivals; Spindle's own search sees to it itself
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # tests/

from tuning import family, grids, lab, models, rivals, winners  # noqa: E402

MODULES = {"tpe": "optuna", "smac": "smac"}
TRIALS = 60
TABLES = ("family", "grids", "models", "winners")


def main() -> None:
    """Print the tables, row by row."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", nargs="*", choices=[*TABLES, "lab", "all"], default="all")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--others", default=",".join(rivals.NAMES))
    asked = parser.parse_args()
    others = [name for name in asked.others.split(",") if name]
    missing = [name for name in others if name in MODULES and importlib.util.find_spec(MODULES[name]) is None]
    for name in missing:
        print(f"{name}: {MODULES[name]} is not installed; left out")
    others = [name for name in others if name not in missing]
    for name in TABLES if "all" in asked.tables else asked.tables:
        for line in _table(name, asked.seeds, others):
            print(line, flush=True)
        print()


def _table(name: str, seeds: int, others: list[str]) -> Iterator[str]:
    match name:
        case "family":
            return family.table(seeds, TRIALS, others)
        case "grids":
            return grids.table(seeds, others)
        case "models":
            return models.table(models.MACHINES)
        case "lab":
            return lab.table(seeds)
        case _:
            return winners.table(5 * seeds)


if __name__ == "__main__":
    main()
