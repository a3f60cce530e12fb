"""A drive of the catalogue: its data, its curves, the source of each number."""

from __future__ import annotations

from msgspec import Struct

from spindle import _core
from spindle.base import units
from spindle.base.decoding import decode_json
from spindle.base.offers import Offer, Uncertain, facts
from spindle.report.terminal.chart import Curve, lines
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, fits, table


class Source(Struct, frozen=True):
    """A number of the data sheet and its source."""

    key: str
    source: str


class SeekPoint(Struct, frozen=True):
    """Read seek over a distance."""

    cylinders: int
    ms: float


class RatePoint(Struct, frozen=True):
    """Sequential reads at an offset."""

    offset: int
    bytes_per_second: float


class SizePoint(Struct, frozen=True):
    """Random reads of a size, one outstanding."""

    size: int
    iops: float
    bytes_per_second: float


class DepthPoint(Struct, frozen=True):
    """Random 4 KiB reads, several outstanding."""

    depth: int
    iops: float
    mean_ms: float


class Band(Struct, frozen=True, kw_only=True):
    """Random 4 KiB reads with the deepest queue, by the settling margin of the firmware."""

    depth: int
    margin_ms: float
    least_margin_ms: float
    most_margin_ms: float
    least_iops: float
    most_iops: float


class Line(Struct, frozen=True, kw_only=True):
    """A line of the catalogue (`crates/drive/src/show.rs`)."""

    name: str
    title: str
    capacity: int
    rpm: float | None
    bytes_per_second: float
    alone: DepthPoint
    deepest: DepthPoint


class DriveView(Struct, frozen=True, kw_only=True):
    """A drive as `crates/drive/src/show.rs` describes it."""

    name: str
    title: str
    kind: str
    capacity: int
    queue_depth: int
    rpm: float | None
    cylinders: int | None
    offer: Offer
    sources: list[Source]
    seek_curve: list[SeekPoint]
    transfer_rate: list[RatePoint]
    iops_by_size: list[SizePoint]
    iops_by_depth: list[DepthPoint]
    band: Band | None


def catalogue(style: Style) -> list[str]:
    """Return a line for each drive."""
    columns = [
        Column("drive", words=True),
        Column("size"),
        Column("rpm"),
        Column("MB/s"),
        Column("random 4 KiB IOPS"),
        Column("AFR"),
        Column("watts"),
        Column("about", words=True),
    ]
    rows = []
    for name in _core.drive_names():
        drive = decode_json(_core.drive_line(name), Line)
        one, most = drive.alone, drive.deepest
        offer = facts(name).offer
        rows.append(
            [
                drive.name,
                units.size(drive.capacity),
                f"{drive.rpm:.0f}" if drive.rpm else "flash",
                units.mb_per_s(drive.bytes_per_second),
                f"{units.count(one.iops)} to {units.count(most.iops)} at {most.depth}",
                f"{100 * offer.afr.value:.2f} %" if offer.afr else "",
                f"{offer.idle_watts.value:g} to {offer.active_watts.value:g}"
                if offer.idle_watts and offer.active_watts
                else "",
                drive.title,
            ]
        )
    if fits(columns, rows, style):
        return table(columns, rows, style)
    # The last columns are left out first.
    kept = next((n for n in range(len(columns) - 1, 0, -1) if fits(columns[:n], [row[:n] for row in rows], style)), 1)
    narrow = table(columns[:kept], [row[:kept] for row in rows], style)
    return [*narrow, "", *style.wrap("Details: `spindle drives show NAME`, or a wider terminal.")]


def curves(drive: DriveView) -> list[Curve]:
    """Return all curves."""

    def ms(value: float) -> str:
        return f"{value:.3g} ms"

    def rate(value: float) -> str:
        return f"{units.mb_per_s(value)} MB/s"

    found = []
    if drive.seek_curve:
        points = [(float(point.cylinders), point.ms) for point in drive.seek_curve]
        found.append(Curve("Seek", points, "cylinders", "ms", units.count, ms))
    rates = [(float(point.offset), point.bytes_per_second) for point in drive.transfer_rate]
    found.append(Curve("Sequential reads", rates, "place, bytes", "bytes/s", units.size, rate))
    sizes = [(float(point.size), point.iops) for point in drive.iops_by_size]
    found.append(
        Curve("Random reads, one outstanding", sizes, "request, bytes", "IOPS", units.size, units.count, log_x=True)
    )
    depths = [(float(point.depth), point.iops) for point in drive.iops_by_depth]
    if len(depths) > 1:
        found.append(Curve("Random 4 KiB reads", depths, "outstanding", "IOPS", units.count, units.count, log_x=True))
    return found


def offer_in_words(offer: Offer) -> list[str]:
    """Return failure rates, power and place, each with its range, in a line each."""

    def spread(number: Uncertain, unit: str, scale: float = 1.0) -> str:
        ends = (
            "" if number.least == number.most else f" ({scale * number.least:.3g} to {scale * number.most:.3g} {unit})"
        )
        return f"{scale * number.value:.3g} {unit}{ends}"

    lines = []
    if offer.afr:
        lines.append(f"Failures: {spread(offer.afr, '%', 100)} of the drives a year")
    if offer.unreadable_rate:
        errors = offer.unreadable_rate
        text = f"Unreadable: 1 sector in {1 / errors.value:.0e} bits"
        if errors.least != errors.most:
            text += f" ({1 / errors.most:.0e} to {1 / errors.least:.0e})"
        lines.append(text.replace("e+", "e"))
    if offer.idle_watts and offer.active_watts:
        lines.append(f"Power: {spread(offer.idle_watts, 'W')} idle, {spread(offer.active_watts, 'W')} active")
    if offer.bay and offer.interface:
        lines.append(f"Place: {offer.bay}, {offer.interface}")
    if offer.endurance and offer.writes_per_day:
        lines.append(
            f"Endurance: {units.si_size(offer.endurance)} written, "
            f"{units.si_size(round(offer.writes_per_day))} a day for {offer.warranty_years:g} years"
        )
    return lines


def band_in_words(band: Band) -> str:
    """Return how far the figure of the deepest queue is uncertain."""
    return (
        f"{band.depth} outstanding: {units.count(band.least_iops)} to {units.count(band.most_iops)} IOPS, for a "
        f"`settle_margin` from {band.most_margin_ms:.3g} ms down to {band.least_margin_ms:.3g} ms "
        f"(here {band.margin_ms:.3g} ms; no data sheet gives it)."
    )


def page(drive: DriveView, style: Style) -> list[str]:
    """Return data, curves, sources."""
    facts = [units.size(drive.capacity), f"queue depth {drive.queue_depth}"]
    if drive.rpm:
        facts.append(f"{drive.rpm:.0f} rpm")
    text = [*style.headline(f"{drive.name}: {drive.title}"), *style.wrap(", ".join(facts))]
    for fact in offer_in_words(drive.offer):
        text += style.wrap(fact)
    for curve in curves(drive):
        text += ["", *lines(curve, style)]
    if drive.band:
        text += ["", *style.wrap(band_in_words(drive.band))]
    text += ["", "Sources:"]
    width = max(len(source.key) for source in drive.sources)
    for source in drive.sources:
        text += style.wrap(source.source, first=f"  {source.key:<{width}}  ")
    return text
