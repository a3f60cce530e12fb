"""Devices interval by interval, in the columns and units of `iostat -xm`, whatever columns and units a file has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spindle.result.imported import DeviceSeries, Moment
from spindle.result.record import Level, Verdict

SECTORS = 2048.0
"""512-byte sectors in a MiB."""
KB = 1024.0
"""iostat's kB in a MiB."""

UNITS: dict[str, tuple[str, float]] = {
    "rsec/s": ("rMB/s", SECTORS),
    "wsec/s": ("wMB/s", SECTORS),
    "dsec/s": ("dMB/s", SECTORS),
    "rd_sec/s": ("rMB/s", SECTORS),
    "wr_sec/s": ("wMB/s", SECTORS),
    "rd_sec": ("rMB/s", SECTORS),
    "wr_sec": ("wMB/s", SECTORS),
    "dc_sec": ("dMB/s", SECTORS),
    "Blk_read/s": ("rMB/s", SECTORS),
    "Blk_wrtn/s": ("wMB/s", SECTORS),
    "Blk_dscd/s": ("dMB/s", SECTORS),
    "rkB/s": ("rMB/s", KB),
    "wkB/s": ("wMB/s", KB),
    "dkB/s": ("dMB/s", KB),
    "rkB": ("rMB/s", KB),
    "wkB": ("wMB/s", KB),
    "dkB": ("dMB/s", KB),
    "kB_read/s": ("rMB/s", KB),
    "kB_wrtn/s": ("wMB/s", KB),
    "kB_dscd/s": ("dMB/s", KB),
    "MB_read/s": ("rMB/s", 1.0),
    "MB_wrtn/s": ("wMB/s", 1.0),
    "MB_dscd/s": ("dMB/s", 1.0),
    "kB/s": ("MB/s", KB),
    "sec/s": ("MB/s", SECTORS),
    "avgrq-sz": ("areq-sz", 2.0),
    "avgrq-kz": ("areq-sz", 1.0),
    "avgqu-sz": ("aqu-sz", 1.0),
    "util": ("%util", 1.0),
    "util-percent": ("%util", 1.0),
    "rrqm": ("%rrqm", 1.0),
    "wrqm": ("%wrqm", 1.0),
}
"""Another column -> (ours, number of their units in ours)."""
TOTALS = ("Blk_", "kB_", "MB_")
"""Columns since the start of the interval that are sums, not rates."""
WEIGHTS = {
    "r_await": ("r/s",),
    "rareq-sz": ("r/s",),
    "w_await": ("w/s",),
    "wareq-sz": ("w/s",),
    "d_await": ("d/s",),
    "dareq-sz": ("d/s",),
    "f_await": ("f/s",),
    "await": ("tps", "r/s", "w/s"),
    "areq-sz": ("tps", "r/s", "w/s"),
    "svctm": ("tps", "r/s", "w/s"),
}
"""Average of requests -> the rates that count them."""


def in_our_units(columns: Mapping[str, float]) -> dict[str, float]:
    """Convert to our columns and units; if a file has a column twice (sectors and kB), the last is used."""
    found = {}
    for name, value in columns.items():
        if name.startswith(TOTALS) and not name.endswith("/s"):
            continue
        ours, factor = UNITS.get(name, (name, 1.0))
        found[ours] = value / factor
    return found


def device_of(name: str, moments: Sequence[Moment], skipped: int) -> DeviceSeries:
    """Return a device. `skipped`: number of first intervals that are not in the mean."""
    counted = moments[skipped:] or moments
    names = dict.fromkeys(name for moment in counted for name in moment.values)
    return DeviceSeries(name=name, moments=list(moments), mean={each: _mean(each, counted) for each in names})


def _mean(name: str, moments: Sequence[Moment]) -> float:
    there = [moment for moment in moments if name in moment.values]
    weights = [_weight(name, moment) for moment in there]
    total = sum(weights)
    if not total:  # no request in all that time
        return sum(moment.values[name] for moment in there) / len(there)
    return sum(weight * moment.values[name] for weight, moment in zip(weights, there, strict=True)) / total


def _weight(name: str, moment: Moment) -> float:
    seconds = moment.seconds or 1.0
    if name not in WEIGHTS:
        return seconds
    rates = [moment.values[each] for each in WEIGHTS[name] if each in moment.values]
    return seconds * (rates[0] if "tps" in moment.values else sum(rates)) if rates else seconds


def since_boot(reports: int) -> Verdict:
    """Return a verdict: iostat's first report covers the time since boot, unless -y was given, which is unknown."""
    if reports > 1:
        text = f"the first of {reports} reports is left out of the means: it covers"
    else:
        text = "the only report covers"
    text += " the time since boot, unless -y was given"
    return Verdict(check="since-boot", level=Level.WARN, evidence=text, advice="run iostat with -y and an interval")
