"""Compares the bytes that the application moved with those that the device moved: the difference came from a cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spindle.base import units
from spindle.result.record import DeviceCounters, Level, RunRecord, Verdict

WARN_SHARE = 0.05
"""From this share on, a device-limited rate is overstated by more than 5 % (1 / (1 - share))."""
INVALID_SHARE = 0.20
"""From this share on, the rate is overstated by more than a quarter: the figure is not the device's."""
LEAST = 2
"""Times the size of a cache, so that the cache answers less than half of the requests."""
TOO_LITTLE_BYTES = 1 << 20
"""Below this, a single read-ahead or metadata block decides the share."""


def cache_share(record: RunRecord) -> list[Verdict]:
    """Share of the application's bytes that no device moved, for each direction."""
    target = record.counters
    if target is None or not record.target.has_device:
        where = record.target.detail.get("file_system") or "this target"
        return [
            Verdict(
                check="cache-share",
                level=Level.WARN,
                evidence=f"unknown: no block device with counters is under {where}, so caches cannot be detected",
                advice="measure on a block device or on a file system on one",
            )
        ]
    verdicts = [
        verdict for direction in ("read", "write") if (verdict := _of_direction(record, target, direction)) is not None
    ]
    verdicts.extend(_below_loops(record))
    return verdicts or [
        Verdict(
            check="cache-share",
            level=Level.OK,
            evidence=f"less than {units.size(TOO_LITTLE_BYTES)} moved: nothing to compare",
        )
    ]


def _of_direction(record: RunRecord, target: DeviceCounters, direction: str) -> Verdict | None:
    figures = record.figures
    asked = figures.total_read_bytes if direction == "read" else figures.total_write_bytes
    moved = target.bytes_of(direction)
    if asked < TOO_LITTLE_BYTES or moved is None:
        return None
    if direction == "read" and record.fetched_bytes is not None:
        moved = min(moved, record.fetched_bytes)  # reads of others must not count as the load's own
    if direction == "write" and any(stream.mix.trim + stream.mix.zero > 0 for stream in record.workload.streams):
        return None  # discards and zeroings are not counted as bytes written by every driver
    return _of_share(record, direction, asked, moved, target.name)


def _of_share(record: RunRecord, direction: str, asked: int, moved: float, mover: str) -> Verdict:
    """The verdict on what `mover` moved of the bytes that the application asked for."""
    share = max(0.0, 1 - moved / asked)
    level = Level.INVALID if share >= INVALID_SHARE else Level.WARN if share >= WARN_SHARE else Level.OK
    seen = f"{direction}s: the application moved {units.size(asked)}, {mover} {units.size(moved)} of it"
    if moved >= asked:
        seen = f"{direction}s: the application moved {units.size(asked)}, {mover} {units.size(moved)}"
    if level is Level.OK:
        evidence, advice = f"{seen}: {units.percent(share)} from a cache", ""
    elif direction == "read" and record.preparation.kept_pages:
        level = Level.WARN
        evidence = f"{seen}: {units.percent(share)} came from a cache, as this phase asks (drop_caches = false)"
        advice = "this is the speed of the page cache, not of the device"
    else:
        cause = _cause(record, direction, share)
        evidence, advice = f"{seen}: {units.percent(share)} {cause.text}", cause.advice
    return Verdict(
        check="cache-share",
        level=level,
        evidence=evidence,
        advice=advice,
        numbers={"share": share, "application_bytes": float(asked), "device_bytes": float(moved)},
    )


def modelled_cache_share(record: RunRecord) -> list[Verdict]:
    """The same for the buffered streams of a modelled machine, whose page cache counts what it moves."""
    moved = record.target.detail.get("page_cache")
    if moved is None:
        return []
    buffered = {stream.name for stream in record.workload.all_streams if not stream.direct}
    streams = [stream for stream in record.figures.streams if stream.name in buffered]
    verdicts = []
    for direction in ("read", "write"):
        asked = sum(getattr(stream, f"total_{direction}_bytes") for stream in streams)
        if asked >= TOO_LITTLE_BYTES:
            verdicts.append(_of_share(record, direction, asked, moved[f"{direction}_bytes"], "the page cache"))
    return verdicts


@dataclass(frozen=True)
class _Cause:
    """Why the device did not move what the application did."""

    text: str
    """Goes on after `40 % `."""
    advice: str


def _cause(record: RunRecord, direction: str, share: float) -> _Cause:
    """Known causes first (extents and attributes of the file), then the likely one, from how the file was opened."""
    extents = record.target.detail.get("extents") or {}
    direct = all(stream.direct for stream in record.workload.streams)
    if direction == "read" and (nowhere := _nowhere(extents, share)) is not None:
        return nowhere
    if how := extents.get("compresses"):
        return _Cause(
            f"was not moved, as the file system stores this file compressed ({how})",
            "this is the rate through the compression; measure a file without it (on btrfs one with chattr +C), or the "
            "device",
        )
    through = (
        " although the load is direct: the file system went through the page cache, as it may with data=journal, and "
        "for inline, encrypted or verity files"
        if record.target.traits.on_files
        else " although the load is direct"
    )
    if direction == "write":
        evidence = "was still in a cache when the run ended"
        if direct:
            return _Cause(evidence + through, "count the flush with `end_fsync=True`, or measure the device below")
        return _Cause(evidence, "use `direct=True`, or count the flush with `end_fsync=True`")
    if direct:
        return _Cause("came from a cache" + through, "measure the device below, or a file without these")
    rule = record.target.detail.get("cache_rule_bytes")
    size = f" (here at least {units.size(rule)})" if rule else ""
    return _Cause("came from a cache", f"use `direct=True`, or a file larger than every cache{size}")


def _nowhere(extents: dict[str, Any], share: float) -> _Cause | None:
    """Holes and unwritten extents, if they explain at least half of the missing bytes."""
    size = extents.get("size_bytes") or 0
    parts = {
        "in holes": extents.get("hole_bytes") or 0,
        "allocated but never written": extents.get("unwritten_bytes") or 0,
    }
    missing = sum(parts.values())
    if not size or missing / size < share / 2:
        return None
    named = " and ".join(f"{units.size(amount)} {where}" for where, amount in parts.items() if amount)
    return _Cause(
        f"was not stored: {named}, of the file's {units.size(size)}; the file system answers them with zeros",
        "write the file from end to end first, or measure one that holds data (`create=` makes one)",
    )


def discards(record: RunRecord) -> list[Verdict]:
    """A discard that does not reach the device frees nothing: a layer above may drop it and report success."""
    target = record.counters
    freed = sum(stream.trim.bytes for stream in record.figures.streams if stream.trim is not None)
    if not record.target.traits.is_device or target is None or freed < TOO_LITTLE_BYTES:
        return []
    moved = target.delta.get("discard_bytes")
    if moved is None or target.name.startswith("zram"):  # whose driver counts reads and writes alone
        return []
    share = max(0.0, 1 - moved / freed)
    seen = f"the application freed {units.size(freed)}, {target.name} {units.size(moved)}"
    numbers = {"share": share, "application_bytes": float(freed), "device_bytes": float(moved)}
    if share >= WARN_SHARE:
        return [
            Verdict(
                check="discards",
                level=Level.WARN,
                evidence=f"{seen}: {units.percent(share)} of the discards did not reach it",
                advice="look at discard_max_bytes and discard_granularity of the device and of those it is built of",
                numbers=numbers,
            )
        ]
    return [Verdict(check="discards", level=Level.OK, evidence=seen, numbers=numbers)]


def _below_loops(record: RunRecord) -> list[Verdict]:
    """A loop device receives every request, but its backing file may be in the page cache."""
    verdicts = []
    for upper, lower in zip(record.devices, record.devices[1:], strict=False):
        if not upper.name.startswith("loop"):
            continue
        past_the_cache = record.settings.before.get(f"{upper.name}.loop.dio") == "1"
        for direction in ("read", "write"):
            asked, moved = upper.bytes_of(direction), lower.bytes_of(direction)
            if asked is None or moved is None or asked < TOO_LITTLE_BYTES:
                continue
            share = max(0.0, 1 - moved / asked)
            if direction == "write" and any(stream.mix.zero > 0 for stream in record.workload.streams):
                continue  # zeroing counts as writing above, and makes holes below
            if share >= WARN_SHARE:
                extents = (record.target.detail.get("backing_extents") or {}).get(upper.name) or {}
                cause = _cause_below(direction, share, extents, past_the_cache)
                verdicts.append(
                    Verdict(
                        check="cache-below",
                        level=Level.WARN,
                        evidence=(
                            f"{direction}s: {upper.name} moved {units.size(asked)}, {lower.name} under its backing "
                            f"file {units.size(moved)}: {units.percent(share)} {cause.text}"
                        ),
                        advice=f"these are figures of {upper.name}, not of {lower.name}; {cause.advice}",
                        numbers={"share": share, "upper_bytes": asked, "lower_bytes": moved},
                    )
                )
    return verdicts


def _cause_below(direction: str, share: float, extents: dict[str, Any], past_the_cache: bool) -> _Cause:
    if direction == "read" and (nowhere := _nowhere(extents, share)) is not None:
        return _Cause(nowhere.text, "write the whole backing file first")
    if how := extents.get("compresses"):
        return _Cause(
            f"was not moved, as the backing file is stored compressed ({how})", "put it on a file system that does not"
        )
    if past_the_cache:
        return _Cause("was answered between them, though not by the page cache", "measure the device below itself")
    return _Cause(
        "stayed in the page cache between them",
        "set the loop device up with losetup --direct-io=on to reach the drive",
    )


def working_set(record: RunRecord) -> list[Verdict]:
    """Counters do not show a cache inside the drive or controller; the size of the data set does."""
    detail = record.target.detail
    rule = detail.get("size_rule") or {}
    held, used = rule.get("hidden_bytes") or detail.get("drive_cache_bytes"), detail.get("region_bytes")
    if not held or used is None or used >= LEAST * held:
        return []
    assumed = rule.get("assumed") or []
    return [
        Verdict(
            check="working-set",
            level=Level.WARN,
            evidence=f"{units.size(used)} are used, the caches of drives and controllers "
            + (
                f"may hold {units.size(held)} (not reported by {', '.join(assumed)})"
                if assumed
                else f"hold {units.size(held)}"
            ),
            advice=f"use at least {units.size(LEAST * held)}, so that they cannot hold it",
            numbers={"used_bytes": float(used), "hidden_cache_bytes": float(held)},
        )
    ]


def sample_size(record: RunRecord) -> list[Verdict]:
    """Compares the size of a test file that Spindle chose with the size that the caches require."""
    sized = record.target.detail.get("sized")
    if not sized:
        return []
    size, wanted = sized["size_bytes"], sized["wanted_bytes"]
    numbers = {name: float(sized[name]) for name in ("size_bytes", "wanted_bytes", "safe_bytes")}
    if sized.get("limited_by") is None:
        text = f"the test file has {units.size(size)}, as much as the caches ask for"
        return [Verdict(check="sample-size", level=Level.OK, evidence=text, numbers=numbers)]
    why = {"space": "there is no room for more", "time": "writing more would take too long"}
    return [
        Verdict(
            check="sample-size",
            level=Level.WARN,
            evidence=f"the test file has {units.size(size)}, the caches ask for {units.size(wanted)} (twice what they "
            f"hold), to be safe {units.size(sized['safe_bytes'])} (40 times): {why.get(sized['limited_by'], '')}",
            advice="make room or take the time: `create=SIZE`",
            numbers=numbers,
        )
    ]
