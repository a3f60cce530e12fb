"""`spindle.array_map`, `drives` and `drive`: arrays and drives that need not exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spindle import _core
from spindle.base.decoding import decode_json
from spindle.library.arguments import public
from spindle.library.options import bytes_of, within
from spindle.library.shown import Printable
from spindle.report.terminal import array
from spindle.report.terminal.drive import DriveView, page
from spindle.report.terminal.style import Style
from spindle.run.errors import Usage

MOST_DRIVES = 1000
"""More than md takes (384): the core refuses it, without a list of a billion sizes being made first."""


class ArrayMap(Printable):
    """A RAID array: its map, capacity, fault tolerance, the cost of small writes, and the commands that make it."""

    def __init__(
        self, level: str, sizes: Sequence[int], options: Mapping[str, Any], rebuild_rate: int | None = None
    ) -> None:
        self._asked = (level, sizes, options, rebuild_rate)
        self._found = array.as_dict(level, sizes, options, rebuild_rate)

    @property
    def capacity(self) -> int:
        """Usable bytes."""
        return int(self._found["capacity"])

    @property
    def survives(self) -> int:
        """Drives that may fail, whichever they are."""
        return int(self._found["tolerance"]["guaranteed"])

    @property
    def commands(self) -> list[str]:
        """Arguments of `mdadm` that make it."""
        return list(self._found["mdadm"])

    def page(self, style: Style) -> list[str]:
        """The array drawn and explained, for a terminal."""
        return list(array.array_page(*self._asked, style=style))

    def _data(self) -> object:
        return self._found

    def __repr__(self) -> str:
        return f"<ArrayMap {self._found['config']['level']} of {len(self._found['config']['members'])} drives>"


class Drive(DriveView, Printable, frozen=True):
    """A drive of the catalogue. `print` and a notebook show it with its curves."""

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        return page(self, style)


@public
def array_map(
    level: str,
    drives: int | None = None,
    *,
    layout: str | None = None,
    chunk: str | int | None = None,
    drive_size: str | int | Sequence[str | int] = "1TB",
    groups: int | None = None,
    outer_chunk: str | int | None = None,
    rebuild_rate: str | int | None = None,
    rows: int | None = None,
) -> ArrayMap:
    """Draw an array before there is one.

    `level`: linear, raid0, raid1, raid4, raid5, raid6, raid10, raid50 or raid60. `layout`: as mdadm names it (`f2`).
    `drive_size`: bytes of each drive, or one size for all. Sizes are bytes or texts with a unit. `rebuild_rate`: bytes
    a second. Options that are left out are as mdadm chooses them. Raises `spindle.Error`.
    """
    for given, name, most in ((drives, "`drives=`", 1e9), (groups, "`groups=`", 1000), (rows, "`rows=`", 10_000)):
        if given is not None:
            within(given, name, 1, most)
    given_sizes = [drive_size] if isinstance(drive_size, str | int) else drive_size
    sizes = [bytes_of(size, "`drive_size=`") for size in given_sizes]
    options = {
        "layout": layout,
        "chunk": _bytes(chunk, "`chunk=`"),
        "groups": groups,
        "outer_chunk": _bytes(outer_chunk, "`outer_chunk=`"),
        "rows": rows,
    }
    rate = _bytes(rebuild_rate, "`rebuild_rate=`")
    return ArrayMap(level, _members(drives, sizes), options, rate)


def _members(drives: int | None, sizes: list[int]) -> list[int]:
    """The size of each drive. Raises `Usage`."""
    if drives is None and len(sizes) < 2:
        raise Usage("how many drives? give `drives=` N, or a `drive_size=` for each")
    if drives is not None and len(sizes) > 1 and drives != len(sizes):
        raise Usage(f"`drives=` {drives} but {len(sizes)} drive sizes; give one size, or one for each")
    return sizes * min(drives or 1, MOST_DRIVES) if len(sizes) == 1 else sizes


def _bytes(size: str | int | None, name: str) -> int | None:
    return None if size is None else bytes_of(size, name)


@public
def drives() -> list[str]:
    """Names of the drives that modelled machines can be made of."""
    return _core.drive_names()


@public
def drive(name: str) -> Drive:
    """A drive of the catalogue: seek curve (ms over cylinders), transfer rates (B/s over the address space), IOPS over
    request size and queue depth, and the source of each number. Raises `spindle.Error`, with the nearest name."""
    return decode_json(_core.drive_show(name), Drive)
