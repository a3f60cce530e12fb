"""What was run on what, in a line or two."""

from __future__ import annotations

from collections import Counter

from spindle.report.style import Style
from spindle.result import units
from spindle.result.record import RunRecord, Target
from spindle.result.steady import steady_part
from spindle.result.workload import WorkloadStream


def target_words(target: Target) -> str:
    """`t.bin (file of 4 GiB on vda, ext4)`."""
    listed = target.detail.get("devices")
    devices = [device for device in listed if isinstance(device, dict)] if isinstance(listed, list) else []
    parts = [f"{target.kind} of {units.size(target.size_bytes)}"]
    if target.kind == "null":
        return f"null target of {units.size(target.size_bytes)}"
    if target.kind == "model":
        drives = Counter(str(model) for model in target.detail.get("drives") or [])
        words = [f"{count} x {model}" if count > 1 else model for model, count in drives.items()]
        level = [str(target.detail["level"]).upper()] if target.detail.get("level") else []
        return f"{target.asked} (modelled: {', '.join([*level, *words, units.size(target.size_bytes)])})"
    if target.kind == "directory":
        parts[0] = _files_of(target) if target.size_bytes else target.kind
    if target.on_files and devices:
        parts[0] += " on " + ", ".join(str(device.get("name")) for device in devices)
    parts.extend(str(device["model"]) for device in devices if device.get("model"))
    if fs := target.detail.get("file_system"):
        parts.append(str(fs))
    return f"{short_name(target)} ({', '.join(parts)})"


def _files_of(target: Target) -> str:
    """`16 files of 1 GiB in all`."""
    sets = target.detail.get("sets")
    known = [each.get("files") for each in sets if isinstance(each, dict)] if isinstance(sets, list) else []
    count = sum(files for files in known if isinstance(files, int))
    size = units.size(target.size_bytes)
    return f"a file of {size}" if count == 1 else f"{count} files of {size} in all"


def short_name(target: Target) -> str:
    """As it was asked for: `/dev/sda`, `six-sata-f2`."""
    return f"a test file in {target.asked.rpartition('/')[0] or '.'}" if _unnamed(target) else target.asked


def _unnamed(target: Target) -> bool:
    """A test file whose name nobody chose."""
    return target.created and target.asked.rpartition("/")[2].startswith("spindle-test-")


def page(record: RunRecord, style: Style) -> list[str]:
    """Workload, target, load and generator."""
    generator = record.figures.generator
    load = "; ".join(_stream_words(stream, len(record.workload.streams) > 1) for stream in record.workload.streams)
    time_stamps = "" if generator.timestamps == "request" else f", time stamps by {generator.timestamps}"
    return [
        *style.headline(f"{record.workload.name} on {target_words(record.target)}"),
        *style.wrap(
            f"{load}; {units.seconds(record.figures.measured_s)} measured; {generator.engine}{time_stamps}; "
            f"seed {record.seed}; {record.id}"
        ),
        *_steady_words(record, style),
    ]


def _steady_words(record: RunRecord, style: Style) -> list[str]:
    """Where the run went on until it was steady: what it was then. The tables are about the whole of it."""
    part = steady_part(record.figures)
    if part is None:
        return []
    latency = "" if part.mean_latency_ns is None else f", mean {units.duration(part.mean_latency_ns)}"
    return style.wrap(
        f"steady from {units.seconds(part.from_s)} to {units.seconds(part.to_s)}: {units.count(part.iops)} IOPS, "
        f"{units.rate(part.bytes_per_s)}{latency}; the tables are of the whole run, before it was steady included"
    )


def _stream_words(stream: WorkloadStream, named: bool) -> str:
    name = f"{stream.name}: " if named else ""
    if stream.names is not None:
        threads = f"{units.count(stream.outstanding)} thread{'s' if stream.outstanding != 1 else ''}"
        return f"{name}{stream.names.operation} by {threads}"
    io = "direct" if stream.direct else "buffered"
    rate = getattr(stream.arrival, "rate_iops", None)
    if rate is not None:
        return f"{name}{units.count(rate)} requests a second, {io}"
    workers = f"{stream.workers} worker{'s' if stream.workers != 1 else ''}"
    return f"{name}{workers} x depth {stream.depth}, {io}"
