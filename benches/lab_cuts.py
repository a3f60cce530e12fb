"""Power cuts in the lab: what devices, file systems and md keep of acknowledged writes.

    python benches/lab_cuts.py [--cuts N] [--case TEXT] [--seed N]

Each case is cut about N times in all cases together, at random nanoseconds while four writers write and sync; then the
lab boots again on the same drives and every block is read (`spindle durability`). Cases that promise to keep what was
synced must keep it; with a drive that ignores flushes a loss must be found. The exit status is 1 otherwise.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass

from spindle import _core
from spindle.lab.assembly import setup_of
from spindle.run.durability.cuts import CutOptions, Place, cut_often, place_of

DRIVE = """
[[drive]]
count = {count}
service = '50us'
transfer_rate = '400 MB/s'
{cache}
queue_depth = 32
capacity = '512MiB'
"""
SIZE = 2 << 20
LIES = ("vda",)
KEPT, LOST, NOT_PROMISED = "kept", "lost", "not promised"


@dataclass(frozen=True)
class Case:
    """A machine, and what is expected of it."""

    drives: int
    machine: str = ""
    """`[array]` and `[filesystem]`."""
    direct: bool = True
    lying: tuple[str, ...] = ()
    expected: str = KEPT
    has_cache: bool = True
    """True if the drives have a write cache."""
    degraded: str = ""
    """Option of mdadm for a RAID5 of three drives that loses the third after the cut."""


EXT4 = "[filesystem]\ntype = 'ext4'\n"
XFS = "[filesystem]\ntype = 'xfs'\n"
RAID1 = "[array]\nlevel = 'raid1'\n"
RAID5 = "[array]\nlevel = 'raid5'\nchunk = '64KiB'\n"
BITMAP = "bitmap = 'internal'\n"
PPL = "--consistency-policy=ppl"
CASES = {
    "drive": Case(1),
    "ext4": Case(1, EXT4),
    "ext4, buffered": Case(1, EXT4, direct=False),
    "XFS": Case(1, XFS),
    "XFS, buffered": Case(1, XFS, direct=False),
    "RAID1": Case(2, RAID1),
    "RAID1, bitmap, XFS": Case(2, RAID1 + BITMAP + XFS),
    "RAID5": Case(3, RAID5),
    "RAID5, bitmap, ext4": Case(3, RAID5 + BITMAP + EXT4),
    "RAID5, then a drive less": Case(3, RAID5, degraded="--consistency-policy=resync", expected=NOT_PROMISED),
    "RAID5, bitmap, then a drive less": Case(3, RAID5, degraded="--bitmap=internal", expected=NOT_PROMISED),
    "RAID5, PPL, then a drive less": Case(3, RAID5, degraded=PPL, expected=NOT_PROMISED),
    "RAID5, PPL, no caches, then a drive less": Case(3, RAID5, degraded=PPL, has_cache=False),
    "RAID5, journal, then a drive less": Case(4, RAID5, degraded="--write-journal /dev/vdd"),
    "drive that ignores flushes": Case(1, lying=LIES, expected=LOST),
    "RAID1, first drive ignores flushes": Case(2, RAID1, lying=LIES, expected=LOST),
    "ext4, drive that ignores flushes": Case(1, EXT4, lying=LIES, expected=LOST),
    "XFS, buffered, drive that ignores flushes": Case(1, XFS, direct=False, lying=LIES, expected=LOST),
}
MEMBERS = "/dev/vda /dev/vdb /dev/vdc"


def place(case: Case, machine: _core.Machine) -> Place:
    """The target."""
    if not case.degraded:
        return place_of(setup_of(machine), SIZE)
    create = "mdadm --create /dev/md0 --run --assume-clean --level=5 --chunk=64"
    journal = "/dev/vdd" if "journal" in case.degraded else ""
    # Force takes a dirty array for a clean one; then the kernel does not read the partial parity log.
    force = "" if "ppl" in case.degraded else "--force"
    return Place(
        [f"{create} {case.degraded} --raid-devices=3 {MEMBERS}"],
        [f"mdadm --assemble --run {force} /dev/md0 /dev/vda /dev/vdb {journal}"],
        "/dev/md0",
        None,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cuts", type=int, default=216, help="of all cases together [216]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    asked = parser.parse_args()
    cases = {name: case for name, case in CASES.items() if asked.case in name}
    each = max(1, asked.cuts // len(cases))
    failed = 0
    for name, case in cases.items():
        drive = DRIVE.format(count=case.drives, cache="flush = '200us'" if case.has_cache else "")
        machine = _core.Machine.parse(drive + case.machine, "cuts")
        order = CutOptions(
            machine,
            place(case, machine),
            SIZE,
            cuts=each,
            seed=asked.seed,
            direct=case.direct,
            lying=case.lying,
        )
        verdicts: Counter[str] = Counter()
        acknowledged = lost = 0
        for cut in cut_often(order):
            verdicts[cut.verdict] += 1
            if cut.findings is None:
                print(f"    at {cut.at_ns} ns: {cut.said}")
            else:
                acknowledged += sum(cut.findings.journal.acknowledged)
                lost += cut.findings.blocks.lost
        right = {
            KEPT: set(verdicts) == {"kept"},
            LOST: verdicts["lost"] + verdicts["unusable"] + verdicts["absent"] + verdicts["damaged"] == each,
            NOT_PROMISED: True,
        }[case.expected]
        failed += not right
        found = ", ".join(f"{word} {count}" for word, count in sorted(verdicts.items()))
        print(
            f"{name:42} {'' if right else 'NOT '}as expected ({case.expected}): {found}; "
            f"acknowledged {acknowledged}, lost {lost}",
            flush=True,
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
