"""How to ask for the same again: the command line, and the workload file where no preset and options say it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from spindle import _core
from spindle.result.record import (
    CurveRecord,
    KneeRecord,
    PhasesRecord,
    QuickRecord,
    Record,
    RunRecord,
    TargetRecord,
    Variation,
)
from spindle.result.search import Curve, TargetSearch
from spindle.result.units import exact_size
from spindle.result.workload import (
    BytesLimit,
    BytesPlace,
    CompressibleContent,
    End,
    FileSet,
    FileSize,
    FixedFileSize,
    FixedSize,
    HotSet,
    IopsLimit,
    LogNormalFileSize,
    LogNormalSize,
    Names,
    Normal,
    Open,
    Pareto,
    Place,
    RangeFileSize,
    RangeSize,
    Runs,
    Size,
    SteadyRule,
    Strided,
    Tree,
    WeightedFileSize,
    WeightedSize,
    Workload,
    WorkloadStream,
    ZeroContent,
    Zipf,
    Zoned,
    workload_from_json,
)

USUAL_SEED = 1
"""Where nothing is said."""


@dataclass(frozen=True)
class Recipe:
    """A command and the files it names."""

    command: str
    files: tuple[tuple[str, str], ...] = ()
    """(name, text)."""
    seed: int = USUAL_SEED
    """What `--seed` would be; not part of the command, so that repetitions have the same one."""


def recipe_of(record: Record) -> Recipe | None:
    """None: the record does not say enough."""
    match record:
        case RunRecord() if record.workload.streams:
            return _run(record, record.workload)
        case PhasesRecord(runs=[first, *_]):
            return _run(first, record.workload, varied=record.varied)
        case KneeRecord(runs=[first, *_]) if first.workload.streams:
            return _run(first, first.workload, ("--find-knee",))
        case TargetRecord(runs=[first, *_], search=search) if first.workload.streams:
            return _run(first, record.workload, (*_target_options(search), *_spacing(record)))
        case CurveRecord(runs=[first, *_], curve=curve) if first.workload.streams:
            return _run(first, record.workload, (*_curve_options(curve), *_spacing(record)))
        case QuickRecord(target=target):
            return Recipe(shlex.join(["spindle", "quick", target.asked]))
        case _:
            return None


def _run(
    run: RunRecord, workload: Workload, more: tuple[str, ...] = (), varied: Sequence[Variation] = ()
) -> Recipe | None:
    """`more`: options of a search, which has concurrency and length of its own."""
    files: list[tuple[str, str]] = []
    workload = _seeded(workload, USUAL_SEED)
    given, options = _asked(workload, bool(more))
    if given is None:
        given = f"{_file_name(workload.name)}.toml"
        text = toml(workload)
        if _resolved(text, workload.name, []) != workload:
            return None  # rather none than one that asks for something else
        files.append((given, text))
    target = run.target.asked
    machine = run.target.detail.get("machine")
    if run.target.traits.is_modelled and isinstance(machine, str) and not _in_catalogue(target, machine):
        target = f"{_file_name(target.rpartition('/')[2].removesuffix('.toml'))}-machine.toml"
        files.append((target, machine))
    if more and "--seconds" not in options and workload.end.time_ns is not None:
        options += ["--seconds", _ns(workload.end.time_ns)]  # a search has a length of its own
    words = ["spindle", "run", given, target, *options, *more]
    for variation in varied:
        separator = ";" if any("," in value for value in variation.values) else ","
        words += ["--vary", f"{variation.key}={separator.join(variation.values)}"]
    if run.target.traits.is_one_file and run.target.created:
        words += ["--create", exact_size(run.target.size_bytes)]
    elif run.target.traits.is_device and workload.writes:
        words += ["--erase", target]
    return Recipe(shlex.join(words), tuple(files), run.seed)


def _target_options(search: TargetSearch) -> tuple[str, ...]:
    bounds = (word for bound in search.bounds for word in ("--latency-target", bound.asked))
    return (*bounds, "--search", search.variable)


def _spacing(record: TargetRecord | CurveRecord) -> tuple[str, ...]:
    """Where the search gave the requests another spacing than the workload has."""
    asked = {getattr(stream.arrival, "spacing", "constant") for stream in record.workload.streams}
    used = {getattr(stream.arrival, "spacing", "constant") for stream in record.runs[-1].workload.streams}
    return () if used <= asked else ("--spacing", used.pop())


def _curve_options(curve: Curve) -> tuple[str, ...]:
    if curve.capacity is not None:
        return ("--curve",)
    return ("--rates", ",".join(f"{point.offered_iops:.9g}" for point in curve.points))


def _seeded(workload: Workload, seed: int) -> Workload:
    phases = [replace(phase, load=replace(phase.load, seed=seed)) for phase in workload.phases]
    return replace(workload, seed=seed, phases=phases)


def _file_name(name: str) -> str:
    kept = "".join(char if char.isalnum() or char in "-_" else "-" for char in name)
    return kept.strip("-") or "workload"


def _in_catalogue(target: str, text: str) -> bool:
    try:
        return _core.machine_text(target.rpartition("/")[2].removesuffix(".toml")) == text
    except _core.ConfigError:
        return False


def _asked(workload: Workload, swept: bool) -> tuple[str | None, list[str]]:
    """A preset and options that resolve to exactly this workload; (None, []) if there are none."""
    if workload.name not in _core.preset_names():
        return None, []
    text = _core.preset_text(workload.name)
    usual = _resolved(text, workload.name, [])
    if usual is None or not _alike(usual, workload):
        return None, []
    concurrency = ("workers", "depth") if swept else ()
    overrides = [
        (key, value) for key, value in _differences(usual, workload) if key.rpartition(".")[2] not in concurrency
    ]
    again = _resolved(text, workload.name, overrides)
    if again is None or (again != workload and not swept):
        return None, []
    options = []
    for key, value in overrides:
        if "." in key:
            options += ["--set", f"{key}={value}"]
        elif key == "direct":
            options.append("--direct" if value == "true" else "--buffered")
        elif value in ("true", "false"):
            options.append(f"--{'' if value == 'true' else 'no-'}{key.replace('_', '-')}")
        else:
            options += [f"--{key.replace('_', '-')}", value]
    return workload.name, options


def _resolved(text: str, name: str, overrides: list[tuple[str, str]]) -> Workload | None:
    try:
        return workload_from_json(_core.Workload.parse(text, name, name, overrides).to_json())
    except _core.ConfigError:
        return None


def _alike(usual: Workload, wanted: Workload) -> bool:
    """The same loads of as many streams."""
    return [(len(load.streams), load.name) for load in usual.loads] == [
        (len(load.streams), load.name) for load in wanted.loads
    ]


def _differences(usual: Workload, wanted: Workload) -> Iterator[tuple[str, str]]:
    yield from _fileset_differences(usual, wanted)
    if not wanted.phases:
        yield from _load_differences(usual, wanted)
        return
    found: dict[tuple[str, str], list[str]] = {}
    for theirs, ours in zip(usual.loads, wanted.loads, strict=True):
        for pair in _load_differences(theirs, ours):
            found.setdefault(pair, []).append(ours.name)
    for (key, value), names in found.items():
        if len(names) == len(wanted.phases):  # said once for all of them
            yield key, value
        else:
            yield from ((f"{name}.{key}", value) for name in names)


def _fileset_differences(usual: Workload, wanted: Workload) -> Iterator[tuple[str, str]]:
    """Those that options can make: a set of its own, or numbers and sizes."""
    before, after = _set_keys(usual), _set_keys(wanted)
    for name, keys in after.items():
        for key, value in keys.items():
            if before.get(name, {}).get(key) != value:
                yield (f"{name}.{key}" if len(after) > 1 else key), value


def _set_keys(workload: Workload) -> dict[str, dict[str, str]]:
    """Keys of each set of files, trees included."""
    sets = {fileset.name: _fileset_keys(fileset) for fileset in workload.filesets}
    return sets | {name: _tree_keys(tree) for name, tree in _trees(workload).items()}


def _load_differences(usual: Workload, wanted: Workload) -> Iterator[tuple[str, str]]:
    before, after = _workload_keys(usual), _workload_keys(wanted)
    yield from ((key, value) for key, value in after.items() if before.get(key) != value)
    several = len(wanted.streams) > 1
    for theirs, ours in zip(usual.streams, wanted.streams, strict=True):
        before, after = _stream_keys(theirs), _stream_keys(ours)
        for key, value in after.items():
            if before.get(key) != value:
                yield (f"{ours.name}.{key}" if several else key), value


def toml(workload: Workload) -> str:
    """A workload file that resolves to this workload."""
    lines = [f"about = {_quoted(workload.about)}"] if workload.about else []
    lines.append(f"table = {_quoted(workload.table)}")
    if not workload.phases:
        lines += _load_lines(workload, "stream")
    for phase in workload.phases:
        lines += ["", "[[phase]]", f"name = {_quoted(phase.load.name)}"]
        lines += [f"about = {_quoted(phase.load.about)}"] if phase.load.about else []
        lines += [f"drop_caches = {_flag(phase.drop_caches)}", *_load_lines(phase.load, "phase.stream")]
    for fileset in workload.filesets:
        lines += ["", "[[files]]", f"name = {_quoted(fileset.name)}"]
        lines += [f"{key} = {_value(value)}" for key, value in _fileset_keys(fileset).items()]
        lines += [f"each = {_quoted(fileset.each)}", f"fill = {_flag(fileset.fill)}"]
    for tree in _trees(workload).values():
        lines += ["", "[[files]]", f"name = {_quoted(tree.name)}"]
        lines += [f"{key} = {_value(value)}" for key, value in _tree_keys(tree).items()]
        lines.append(f"each = {_quoted(tree.each)}")
    return "\n".join(lines) + "\n"


def _load_lines(load: Workload, head: str) -> Iterator[str]:
    yield from (f"{key} = {_value(value)}" for key, value in _workload_keys(load).items())
    keys = [_stream_keys(stream) for stream in load.streams]
    # `files` at the top would be the table of sets.
    tables = len(keys) > 1 or load.streams[0].name != "main" or "files" in keys[0]
    for stream, found in zip(load.streams, keys, strict=True):
        yield ""
        if tables:
            yield from (f"[[{head}]]", f"name = {_quoted(stream.name)}")
        yield from (f"{key} = {_value(value)}" for key, value in found.items())


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


_NUMBER = re.compile(r"\d+(\.\d+)?")


def _value(text: str) -> str:
    return text if text in ("true", "false") or _NUMBER.fullmatch(text) else _quoted(text)


def _workload_keys(workload: Workload) -> dict[str, str]:
    """Every key of the workload's own, as on the command line."""
    return {
        "seconds": "none" if workload.end.time_ns is None else _ns(workload.end.time_ns),
        "bytes": _optional_bytes(workload.end.bytes),
        "requests": "none" if workload.end.requests is None else str(workload.end.requests),
        "until_steady": _flag(workload.end.steady),
        **_steady(workload.end.steady_rule),
        "ramp": _ns(workload.ramp_ns),
        "seed": str(workload.seed),
    }


def _fileset_keys(fileset: FileSet) -> dict[str, str]:
    return {"nrfiles": str(fileset.nrfiles), "filesize": _file_size(fileset.filesize)}


def _file_size(size: FileSize) -> str:
    match size:
        case FixedFileSize(bytes=value):
            return exact_size(value)
        case RangeFileSize(min=low, max=high, step=step):
            return f"{exact_size(low)}-{exact_size(high)}:step={exact_size(step)}"
        case WeightedFileSize(choices=choices):
            return ",".join(f"{exact_size(value)}:{weight:.10g}" for value, weight in choices)
        case LogNormalFileSize(mean=mean, sigma=sigma, min=low, max=high, step=step):
            bounds = f"min={exact_size(low)},max={exact_size(high)},step={exact_size(step)}"
            return f"log-normal:mean={exact_size(int(mean))},sigma={sigma!r},{bounds}"
        case _:
            return "auto"


def _stream_keys(stream: WorkloadStream) -> dict[str, str]:
    """Every key of a stream that is in force."""
    found = _data(stream) if stream.names is None else _names(stream.names)
    match stream.content:
        case CompressibleContent(ratio=ratio):
            found["content"] = f"compressible:{ratio!r}"
        case ZeroContent():
            found["content"] = "zero"
        case _:
            found["content"] = "random"
    found["fsync_fraction"] = repr(stream.sync.fsync_fraction)
    found["fsync_every"] = str(stream.sync.fsync_every)
    found["end_fsync"] = _flag(stream.sync.end_fsync)
    found["workers"], found["depth"] = str(stream.workers), str(stream.depth)
    found["per_worker"] = _flag(stream.per_worker)
    if isinstance(stream.arrival, Open):
        found["rate"], found["spacing"] = f"{stream.arrival.rate_iops!r} IOPS", stream.arrival.spacing
    match stream.rate_limit:
        case IopsLimit(iops=iops):
            found["rate_limit"] = f"{iops!r} IOPS"
        case BytesLimit(bytes_per_s=rate):
            found["rate_limit"] = f"{rate!r} B/s"
    if stream.think is not None:
        found["think"] = _ns(stream.think.mean_ns)
        found["think_spread"] = "exponential" if stream.think.exponential else "constant"
        if stream.think.every:
            found["think_every"] = str(stream.think.every)
        if stream.think.work_ns:
            found["think_work"] = _ns(stream.think.work_ns)
        if stream.think.spin_ns:
            found["think_spin"] = _ns(stream.think.spin_ns)
    if stream.priority is not None:
        idle = stream.priority.class_ == "idle"
        found["priority"] = "idle" if idle else f"{stream.priority.class_}:{stream.priority.level}"
    found["start_delay"] = _ns(stream.start_delay_ns)
    found.update(_stops(stream.end))
    if stream.passes is not None:
        found["stop_passes"] = repr(stream.passes)
    if stream.ends:
        found["ends"] = ",".join(stream.ends)
    return found


def _data(stream: WorkloadStream) -> dict[str, str]:
    """What only streams of data have."""
    found = _pattern(stream)
    found["size"] = _size(stream.size)
    found["align"] = exact_size(stream.align_bytes) if stream.align_bytes else "none"
    found["region"] = f"{_place(stream.region.offset)}-{_place(stream.region.end)}"
    if stream.files is not None:
        found["files"], found["file_service_type"] = stream.files.set, stream.files.service
        found["file_requests"] = str(stream.files.requests)
    if stream.writes_apart is not None:
        own = stream.writes_apart
        found["own_writes"], found["write_size"] = "true", _size(own.size)
        found["write_align"] = exact_size(own.align_bytes) if own.align_bytes else "none"
        if isinstance(own.pattern, Zoned):
            found["write_zones"] = _zones(own.pattern)
    if stream.trim_first:
        found["trim_first"], found["write_fraction"] = "true", "1.0"
    else:
        found["write_fraction"], found["trim_fraction"] = repr(stream.mix.write), repr(stream.mix.trim)
    found["zero_fraction"] = repr(stream.mix.zero)
    found["rewrite_fraction"] = repr(stream.mix.rewrite)
    found["direct"] = _flag(stream.direct)
    if stream.mapped:
        found["mapped"] = "true"
    if stream.window is not None:
        found["window"], found["window_bytes"] = (
            exact_size(stream.window.length_bytes),
            exact_size(stream.window.moved_bytes),
        )
        found["window_skip"] = exact_size(stream.window.skip_bytes)
    if stream.repeats is not None:
        found["dedupe"] = repr(stream.repeats.fraction)
        if stream.repeats.set is not None:
            found["dedupe_set"] = str(stream.repeats.set)
    found["fdatasync_every"], found["osync"] = str(stream.sync.fdatasync_every), _flag(stream.sync.osync)
    found["dsync"], found["fsync_between"] = _flag(stream.sync.dsync), _flag(stream.sync.fsync_between)
    found["verify"], found["verify_fatal"] = _flag(stream.verify), _flag(stream.verify_fatal)
    return found


def _names(names: Names) -> dict[str, str]:
    """What only streams on names have."""
    passes = "none" if names.passes is None else str(names.passes)
    return {
        "operation": names.operation,
        "order": names.order,
        "files": names.tree.name,
        "stop_passes": passes,
    }


def _trees(workload: Workload) -> dict[str, Tree]:
    """Trees by the names of their sets."""
    streams = (stream for load in workload.loads for stream in load.streams)
    return {stream.names.tree.name: stream.names.tree for stream in streams if stream.names is not None}


def _tree_keys(tree: Tree) -> dict[str, str]:
    size = "0" if tree.size is None else _size(tree.size)
    return {"nrfiles": str(tree.files), "directories": str(tree.directories), "filesize": size}


def _pattern(stream: WorkloadStream) -> dict[str, str]:
    found: dict[str, str] = {"pattern": _tag(stream.pattern)}
    match stream.pattern:
        case Zipf(theta=theta):
            found["zipf_theta"] = repr(theta)
        case Pareto(share=share):
            found["pareto_share"] = repr(share)
        case Normal(deviation=deviation):
            found["deviation"] = repr(deviation)
        case HotSet(space=space, access=access):
            found["hot_space"], found["hot_access"] = repr(space), repr(access)
        case Zoned():
            found["zones"] = _zones(stream.pattern)
        case Strided(stride_bytes=stride):
            found["stride"] = exact_size(stride)
        case Runs(mean_requests=mean, fixed=fixed, repeat=repeat):
            found["run_length"] = f"{mean:g}"
            found["run_fixed"], found["run_repeat"] = _flag(fixed), _flag(repeat)
    if isinstance(stream.pattern, Zipf | Pareto | Normal):
        peak = stream.pattern.peak
        found["center"] = "none" if peak.center is None else repr(peak.center)
        found["scattered"] = _flag(peak.scattered)
    return found


def _zones(pattern: Zoned) -> str:
    return ",".join(f"{_place(zone.length)}:{zone.weight:.10g}" for zone in pattern.zones)


def _steady(rule: SteadyRule | None) -> dict[str, str]:
    if rule is None:
        return {}
    return {
        "steady_metric": rule.metric,
        "steady_window": _ns(rule.window_ns),
        "steady_range": repr(rule.range),
        "steady_slope": repr(rule.slope),
        "steady_drift": "none" if rule.drift_per_minute is None else repr(rule.drift_per_minute),
    }


def _stops(end: End) -> dict[str, str]:
    found = {}
    if end.time_ns is not None:
        found["stop_after"] = _ns(end.time_ns)
    if end.bytes is not None:
        found["stop_bytes"] = exact_size(end.bytes)
    if end.requests is not None:
        found["stop_requests"] = str(end.requests)
    return found


def _size(size: Size) -> str:
    match size:
        case FixedSize(bytes=found):
            return exact_size(found)
        case RangeSize(min=low, max=high, step=step):
            return f"{exact_size(low)}-{exact_size(high)}" + (f":step={exact_size(step)}" if step else "")
        case WeightedSize(choices=choices):
            return ",".join(f"{exact_size(found)}:{weight!r}" for found, weight in choices)
        case LogNormalSize(mean=mean, sigma=sigma, min=low, max=high, step=step):
            text = f"log-normal:mean={mean:g},sigma={sigma!r},min={exact_size(low)},max={exact_size(high)}"
            return text + (f",step={exact_size(step)}" if step else "")


def _place(place: Place) -> str:
    if isinstance(place, BytesPlace):
        return exact_size(place.bytes)
    return f"{place.fraction * 100:.10g}%"


def _optional_bytes(value: int | None) -> str:
    return "none" if value is None else exact_size(value)


def _ns(value: int) -> str:
    for unit, factor in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if value % factor == 0:
            return f"{value // factor}{unit}"
    return f"{value}ns"


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _tag(value: Any) -> str:
    return str(type(value).__struct_config__.tag)
