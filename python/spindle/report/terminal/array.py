"""An array drawn and explained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from spindle import _core
from spindle.base import units
from spindle.base.offers import Uncertain
from spindle.reliability.drives import FIELD_AFR, FIELD_UNREADABLE
from spindle.reliability.group import Group
from spindle.reliability.loss import yearly_loss
from spindle.report.terminal.rebuild import Rebuild, rebuild_of
from spindle.report.terminal.reliability import chance
from spindle.report.terminal.style import Style
from spindle.result.layout import LayoutReport, Row, Section, SmallWrite, layout_report_from_json


def as_dict(level: str, sizes: Sequence[int], options: Mapping[str, Any], rate: int | None = None) -> dict[str, Any]:
    """The array for programs. `rate`: bytes a second of a rebuild."""
    text = _core.array_layout(level, list(sizes), **options)
    explained = layout_report_from_json(text)
    rebuild = _rebuild(explained, rate)
    return {
        **msgspec.json.decode(text),
        "rebuild": msgspec.to_builtins(rebuild),
        "yearly_loss": msgspec.to_builtins(_yearly_loss(explained, rebuild)),
    }


def array_page(
    level: str, sizes: Sequence[int], options: Mapping[str, Any], rate: int | None = None, *, style: Style
) -> Iterator[str]:
    """The array for people. `rate`: bytes a second of a rebuild."""
    text = _core.array_layout(level, list(sizes), **options)
    explained = layout_report_from_json(text)
    yield from style.headline(_heading(explained))
    yield ""
    yield from _picture(explained)
    yield ""
    yield from _facts(explained, style)
    yield from _rebuilding(explained, rate, style)
    yield ""
    yield from _commands(explained)
    for note in explained.notes:
        yield from style.wrap(note, first="Note: ")


def _heading(explained: LayoutReport) -> str:
    config = explained.config
    parts = [config.level.upper() if config.level != "linear" else "Linear"]
    if config.layout != "default":
        parts.append(config.layout)
    parts.append(f"over {_drives(len(config.members))}")
    if config.groups > 1:
        parts.append(f"in {config.groups} groups")
    words = [" ".join(parts)]
    if config.chunk:
        words.append(f"{'rounded to' if config.level == 'linear' else 'chunk'} {binary(config.chunk)}")
    if explained.outer_chunk:
        words.append(f"over the groups {binary(explained.outer_chunk)}")
    return ", ".join(words)


def _picture(explained: LayoutReport) -> Iterator[str]:
    """Draw a column per drive, with the offset on the drives at the left."""
    config, sections = explained.config, explained.drawing.sections

    def label(section: Section, row: Row) -> str:
        """Label a row. If a chunk does not change the printed offset, count from the section's first row."""
        start = section.rows[0].offset
        return f"+{binary(row.offset - start)}" if 0 < start < row.offset else binary(row.offset)

    rows = [row for section in sections for row in section.rows]
    heads = [f"D{at + 1}" for at in range(len(config.members))]
    width = max(len(cell) for cells in [heads, *(row.cells for row in rows)] for cell in cells)
    labels = max([len("offset"), *(len(label(section, row)) for section in sections for row in section.rows)])
    group = len(config.members) // config.groups

    def line(label: str, cells: Sequence[str]) -> str:
        bars = ["| " if at and config.groups > 1 and at % group == 0 else "" for at in range(len(cells))]
        drawn = (bar + (cell or "-").ljust(width) for bar, cell in zip(bars, cells, strict=True))
        return f"{label.rjust(labels)}  {' '.join(drawn)}".rstrip()

    yield line("offset", heads)
    for section in sections:
        for row in section.rows:
            yield line(label(section, row), row.cells)
        if section.more:
            yield line("...", ["..."[:width]] * len(config.members))


def _facts(explained: LayoutReport, style: Style) -> Iterator[str]:
    raw, held, tolerance = explained.raw, explained.capacity, explained.tolerance
    yield from style.wrap(
        f"{decimal(held)} ({binary(held)}, {held} bytes) of {decimal(raw)}: {100 * held / raw:.1f} %",
        first="Capacity:          ",
    )
    worst = f"any {_drives(tolerance.guaranteed)} may fail" if tolerance.guaranteed else "no drive may fail"
    best = f"; at best {tolerance.best_case}" if tolerance.best_case > tolerance.guaranteed else ""
    yield f"Fault tolerance:   {worst}{best}"
    drives = len(explained.config.members)
    costs = {write.kernel: _cost(write, drives) for write in explained.small_writes}
    same = len(set(costs.values())) == 1
    cost = (
        next(iter(costs.values())) if same else "; ".join(f"Linux {kernel}: {cost}" for kernel, cost in costs.items())
    )
    yield from style.wrap(cost, first="A 4 KiB write:     ")
    queue = explained.queue
    yield from style.wrap(
        f"read-ahead {binary(queue.read_ahead)}, optimal I/O {binary(queue.optimal_io)}, "
        f"largest request {binary(queue.max_request)}",
        first="Queue (Linux 6.1): ",
    )


def _rebuild(explained: LayoutReport, rate: int | None) -> Rebuild | None:
    config = explained.config
    return rebuild_of(
        config.level,
        explained.component,
        len(config.members),
        config.groups,
        explained.tolerance.guaranteed,
        rate,
    )


def _rebuilding(explained: LayoutReport, rate: int | None, style: Style) -> Iterator[str]:
    found = _rebuild(explained, rate)
    if found is None:
        return
    limit = "as given" if rate else "md's own limit, speed_limit_max"
    yield from style.wrap(
        f"{units.seconds(found.seconds)} or more at {decimal(found.bytes_per_s)}/s ({limit}; a slower drive "
        "or other load makes it longer)",
        first="Rebuild:           ",
    )
    chances = ", ".join(
        f"{_chance(each.probability)} at 1 error in {1 / each.errors_per_bit:.0e} bits" for each in found.unreadable
    )
    yield from style.wrap(
        f"with {_drives(found.failed)} failed, {decimal(found.read_bytes)} must be read without an error; chance of an "
        f"unreadable sector {chances} (bounds of data sheets; independent errors)".replace("e+", "e"),
        first="Unreadable:        ",
    )
    risk = _yearly_loss(explained, found)
    if risk is not None:
        failing = f"{100 * FIELD_AFR.least:.2g} to {100 * FIELD_AFR.most:.2g} %"
        yield from style.wrap(
            f"{chance(risk.value)} a year, {chance(risk.least)} to {chance(risk.most)} if {failing} of the drives fail "
            "a year; `spindle array reliability` takes your drives, spares and scrubs",
            first="Loss of data:      ",
        )


def _yearly_loss(explained: LayoutReport, rebuild: Rebuild | None) -> Uncertain | None:
    """Return the probability of a loss with drives as they are in service; None for levels without redundancy."""
    config = explained.config
    if rebuild is None:
        return None

    def loss(afr: float, unreadable: float) -> float:
        return yearly_loss(
            Group(
                level=config.level,
                layout=config.layout if config.level == "raid10" else "n2",
                drives=len(config.members),
                groups=config.groups,
                afr=afr,
                ure_per_bit=unreadable,
                capacity_bytes=float(explained.component),
                rebuild_hours=max(rebuild.seconds / 3600, 1e-3),
            )
        )

    return Uncertain(
        loss(FIELD_AFR.value, FIELD_UNREADABLE.value),
        loss(FIELD_AFR.least, FIELD_UNREADABLE.least),
        loss(FIELD_AFR.most, FIELD_UNREADABLE.most),
    )


def _chance(share: float) -> str:
    return f"{100 * share:.3g} %" if 1e-4 <= share < 0.9995 else "below 0.01 %" if share < 1e-4 else "above 99.9 %"


def _cost(write: SmallWrite, drives: int) -> str:
    total = write.reads + write.writes
    if total == 1:
        return "1 request to a drive"
    read = f"{write.reads} read{'s' if write.reads > 1 else ''} + " if write.reads else ""
    worth = f"so that all {drives} write like {drives / total:.2g}"
    return f"{total} requests to drives ({read}{write.writes} writes), {worth}"


def _commands(explained: LayoutReport) -> Iterator[str]:
    """Yield the commands, not wrapped, so that they can be copied."""
    yield from explained.mdadm
    for mkfs in (explained.mkfs_xfs, explained.mkfs_ext4):
        if mkfs is not None:
            yield mkfs


def _drives(count: int) -> str:
    return f"{count} drive" if count == 1 else f"{count} drives"


def binary(value: int) -> str:
    """65536 -> 64 KiB. Exact where a unit divides it, else two decimals."""
    return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))


def decimal(value: int) -> str:
    """500000000000 -> 500 GB."""
    return _scaled(value, 1000, ("B", "kB", "MB", "GB", "TB", "PB", "EB"))


def _scaled(value: int, step: int, units: Sequence[str]) -> str:
    if value == 0:
        return "0"
    power = 0
    while power + 1 < len(units) and round(value / step**power, 2) >= step:
        power += 1
    amount = value / step**power
    return f"{amount:.0f} {units[power]}" if value % step**power == 0 else f"{amount:.2f} {units[power]}"
