"""Is loss found where syncs are ignored, and none where they are honoured? Power cuts at random moments, many times.

Each round writes to a loop device over a FUSE file whose power can be cut (tests/durability/powerfs.py), cuts it at a
random moment of the run, and checks what is on the medium. Needs root.

    python benches/durability.py [--rounds 20] [--seed 1] [--json]
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # tests/

from tests.durability.crash import Crash, crash

PLACES = ((None, False), (None, True), ("ext4", False), ("ext4", True))
SYNCS = ("fsync", "fdatasync", "dsync", "fua")
EXPECTED = {"honest": ("kept",), "lying": ("lost",), "reordering": ("lost",)}


@dataclass
class Row:
    """All rounds of one kind."""

    mode: str
    place: str
    sync: str
    rounds: int = 0
    right: int = 0
    acknowledged: int = 0
    lost: int = 0
    torn: int = 0
    order_broken: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=20, help="of each kind")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--json", action="store_true")
    asked = options.parse_args()
    chance = random.Random(asked.seed)
    rows = []
    for mode in EXPECTED:
        for sync in SYNCS:
            row = Row(mode, "all", sync)
            for turn in range(asked.rounds):
                one(row, mode, sync, turn, chance)
            rows.append(row)
            if not asked.json:
                show(row)
    if asked.json:
        print(json.dumps([{**vars(row), "verdicts": dict(row.verdicts)} for row in rows], indent=2))
    sys.exit(any(row.right < row.rounds for row in rows))


def one(row: Row, mode: str, sync: str, turn: int, chance: random.Random) -> None:
    """A run, a cut, a check: places, journals and patterns take turns, the moments are drawn."""
    file_system, buffered = PLACES[turn % len(PLACES)]
    case = Crash(
        mode=mode,
        sync=sync,
        pattern=chance.choice(("mixed", "append", "random")),
        file_system=file_system,
        buffered=buffered,
        receiver=chance.random() < 0.5,
        turn_bytes=chance.randrange(0, 6000),
        # Some syncs may be of the file system itself.
        cut_syncs=chance.randrange(10, 400),
        seed=chance.randrange(1 << 30),
    )
    folder = Path(tempfile.mkdtemp(prefix="spindle-durability-"))
    try:
        outcome = crash(folder / "case", case)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    findings = outcome.findings
    row.rounds += 1
    row.verdicts[outcome.verdict] += 1
    row.acknowledged += sum(findings["journal"]["acknowledged"])
    row.lost += findings["blocks"]["lost"]
    row.torn += findings["blocks"]["torn_unacknowledged"]
    row.order_broken += findings["order_kept"] is False
    if outcome.verdict in EXPECTED[mode] and outcome.status == (mode != "honest"):
        row.right += 1
    else:
        print(f"{case}: {outcome.verdict} {outcome.err}", file=sys.stderr)


def show(row: Row) -> None:
    """One line."""
    print(
        f"{row.mode:10} {row.sync:9} {row.right}/{row.rounds} as expected; acknowledged {row.acknowledged}, "
        f"lost {row.lost}, torn but not acknowledged {row.torn}, order broken in {row.order_broken}",
        flush=True,
    )


if __name__ == "__main__":
    main()
