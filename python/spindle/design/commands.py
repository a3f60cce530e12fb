"""The commands that make a design: arrays, file systems, mounts, settings. Nothing is executed here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from spindle import _core
from spindle.base.commands import shell
from spindle.design.space import ArrayDesign
from spindle.result.layout import LayoutReport, layout_report_from_json

MADE_BY = f"# made by `{shell('spindle', 'design')}`"
"""First line of a machine file, which identifies it as Spindle's own."""
FIRST = 1
"""Number of the first drive's name: /dev/sdb."""
MD_STEP = 10
"""Distance between the numbers of two arrays, whose groups are arrays too."""


@dataclass(frozen=True)
class Built:
    """An array to be built."""

    name: str
    design: ArrayDesign
    capacity: int
    """Bytes of each drive."""


def commands(arrays: Sequence[Built], filesystem: str) -> list[str]:
    """Shell commands for all arrays, with remarks. Names of devices are examples."""
    lines = ["# Names of devices are examples. mdadm and mkfs destroy what is on the drives."]
    first = FIRST
    for number, array in enumerate(arrays):
        lines += ["", f"# {array.name}"] if len(arrays) > 1 else []
        lines += _of(array, number, first, filesystem)
        first += array.design.drives + array.design.spares
    return lines


def _of(array: Built, number: int, first: int, filesystem: str) -> Iterator[str]:
    design = array.design
    total = design.drives + design.spares
    names = [_drive(first + at) for at in range(total)]
    part = "1" if design.region < 1 else ""
    if part:
        yield f"for drive in {_listed(names, '')}; do"
        yield f"  parted --script $drive mklabel gpt mkpart data 1MiB {100 * design.region:g}%"
        yield "done"
    members, spares = names[: design.drives], names[design.drives :]
    if design.scheme.level is None:
        device = f"{names[0]}{part}"
        yield f"mkfs.{filesystem} {device}"
    else:
        report = _report(array)
        device = f"/dev/md{number * MD_STEP}"
        yield from _mdadm(report, members, part, number)
        if spares:
            inner = f"/dev/md{number * MD_STEP + 1}" if design.scheme.groups > 1 else device
            yield f"mdadm --add {inner} {_listed(spares, part)}"
        if spares and design.scheme.groups > 1:
            yield "# Give all groups one spare-group in mdadm.conf, so that `mdadm --monitor` moves the spare."
        made = report.mkfs_xfs if filesystem == "xfs" else report.mkfs_ext4
        yield made.replace("/dev/md0", device) if made else f"mkfs.{filesystem} {device}"
    yield f"mount -o noatime {device} /srv/{array.name}"
    yield f"for drive in {_listed(names, '')}; do spindle knobs persist $drive scheduler={design.scheduler}; done"
    if design.sync_speed_min is not None:
        yield f"spindle knobs persist {device} sync_speed_min={design.sync_speed_min // 1024}"


def _report(array: Built) -> LayoutReport:
    design = array.design
    text = _core.array_layout(
        design.scheme.level or "raid0",
        [round(array.capacity * design.region)] * design.drives,
        layout=design.scheme.layout,
        chunk=design.chunk,
        groups=design.scheme.groups if design.scheme.groups > 1 else None,
    )
    return layout_report_from_json(text)


def _mdadm(report: LayoutReport, members: list[str], part: str, number: int) -> Iterator[str]:
    """The core's commands with these devices and numbers."""
    left = list(members)
    for line in report.mdadm:
        head, count, tail = re.fullmatch(r"(.* --raid-devices=(\d+)) (.*)", line).groups()  # type: ignore[union-attr]
        if "/dev/md" not in tail:
            taken, left = left[: int(count)], left[int(count) :]
            tail = _listed(taken, part)
        yield re.sub(r"/dev/md(\d+)", lambda of: f"/dev/md{int(of[1]) + number * MD_STEP}", f"{head} {tail}")


def _drive(number: int) -> str:
    """`/dev/sda` is 0; `/dev/sdaa` follows `/dev/sdz`."""
    high, low = divmod(number, 26)
    return "/dev/sd" + (ascii_lowercase[high - 1] if high else "") + ascii_lowercase[low]


def _listed(names: Sequence[str], part: str) -> str:
    """Names as a shell expands them: `/dev/sd[b-g]1`."""
    found = []
    for head in dict.fromkeys(name[:-1] for name in names):
        letters = [name[-1] for name in names if name[:-1] == head]
        found.append(f"{head}[{letters[0]}-{letters[-1]}]{part}" if len(letters) > 1 else f"{head}{letters[0]}{part}")
    return " ".join(found)
