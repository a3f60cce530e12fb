"""Recipe to repeat a run: the command line, and the workload file if a preset with options is not enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from spindle import _core
from spindle.assess.need import words_of
from spindle.assess.purpose import PURPOSES
from spindle.base.commands import given, option, shell, switched_off
from spindle.base.numbers import written
from spindle.base.units import exact_size
from spindle.result.record import (
    CurveRecord,
    KneeRecord,
    PhasesRecord,
    QuickRecord,
    Record,
    RunRecord,
    TargetRecord,
    Variation,
    WorkloadRequest,
)
from spindle.result.search import Curve, TargetSearch
from spindle.result.workload import Workload

USUAL_SEED = 1
"""The default seed."""

SWEPT = ("workers", "depth")
"""Keys that a search sets itself."""


@dataclass(frozen=True)
class Recipe:
    """A command and the files it names."""

    command: str
    files: tuple[tuple[str, str], ...] = ()
    """(name, text)."""
    seed: int = USUAL_SEED
    """The seed; not part of the command, so that repetitions have the same command."""


def recipe_of(record: Record) -> Recipe | None:
    """Return the recipe; None: the record does not have enough data."""
    match record:
        case RunRecord() if record.workload.streams:
            return _run(record, record.workload, record.request)
        case PhasesRecord(runs=[first, *_]):
            return _run(first, record.workload, record.request, varied=record.varied)
        case KneeRecord(runs=[first, *_]) if first.workload.streams:
            return _run(first, first.workload, None, tuple(given(find_knee=True)))
        case TargetRecord(search=search) if search.variable == "need":
            return _assess(record)
        case TargetRecord(runs=[first, *_], search=search) if first.workload.streams:
            return _run(first, record.workload, record.request, (*_target_options(search), *_spacing(record)))
        case CurveRecord(runs=[first, *_], curve=curve) if first.workload.streams:
            return _run(first, record.workload, record.request, (*_curve_options(curve), *_spacing(record)))
        case QuickRecord(target=target):
            return Recipe(shell("spindle", "quick", target.asked))
        case _:
            return None


def _assess(record: TargetRecord) -> Recipe | None:
    """None: without the need, or of a machine that the catalogue does not have."""
    answer = next((one for one in record.verdicts if one.check == "need"), None)
    purpose = next((one for one in PURPOSES.values() if one.preset == record.workload.name), None)
    target, machine = record.target, record.target.detail.get("machine")
    if answer is None or purpose is None or (isinstance(machine, str) and not _in_catalogue(target.asked, machine)):
        return None
    words = [*given(**{"for": purpose.name, **words_of(purpose, answer.numbers)})]
    words += given(**{key: f"{answer.numbers[key]:.12g}" for key in ("data", "seconds") if key in answer.numbers})
    if target.traits.is_device and record.workload.writes:
        words += given(erase=target.asked)
    return Recipe(shell("spindle", "assess", target.asked, *words))


def _run(
    run: RunRecord,
    workload: Workload,
    request: WorkloadRequest | None,
    more: tuple[str, ...] = (),
    varied: Sequence[Variation] = (),
) -> Recipe | None:
    """`more`: options of a search, which has concurrency and length of its own."""
    files: list[tuple[str, str]] = []
    workload = _seeded(workload, USUAL_SEED)
    name = workload.name
    options = _options(workload, SWEPT if more else ())
    if options is None:
        name = f"{_file_name(workload.name)}.toml"
        found = _as_requested(request, workload) or _written_out(workload)
        if found is None:
            return None  # better none than a wrong one
        text, options = found
        files.append((name, text))
    target = run.target.asked
    machine = run.target.detail.get("machine")
    if run.target.traits.is_modelled and isinstance(machine, str) and not _in_catalogue(target, machine):
        target = f"{_file_name(target.rpartition('/')[2].removesuffix('.toml'))}-machine.toml"
        files.append((target, machine))
    if more and option("seconds") not in options and workload.end.time_ns is not None:
        options += given(seconds=_core.format_duration(workload.end.time_ns))  # a search has a length of its own
    words = ["spindle", "run", name, target, *options, *more]
    if run.target.traits.has_kernel:
        words += given(kernel=_series(run.target.detail.get("kernel")) or True)
    for variation in varied:
        separator = ";" if any("," in value for value in variation.values) else ","
        words += given(vary=f"{variation.key}={separator.join(variation.values)}")
    if run.target.traits.is_one_file and run.target.created:
        words += given(create=exact_size(run.target.size_bytes))
    elif run.target.traits.is_device and workload.writes:
        words += given(erase=target)
    return Recipe(shell(*words), tuple(files), run.seed)


def _series(release: object) -> str:
    """Return the series of a kernel, `6.1` of `6.1.192`: another machine may have another one of them."""
    return ".".join(str(release or "").split(".")[:2])


def _target_options(search: TargetSearch) -> tuple[str, ...]:
    return tuple(given(latency_target=tuple(bound.asked for bound in search.bounds), search=search.variable))


def _spacing(record: TargetRecord | CurveRecord) -> tuple[str, ...]:
    """Return the options if the search used another spacing of requests than the workload."""
    asked = {getattr(stream.arrival, "spacing", "constant") for stream in record.workload.streams}
    used = {getattr(stream.arrival, "spacing", "constant") for stream in record.runs[-1].workload.streams}
    return () if used <= asked else tuple(given(spacing=used.pop()))


def _curve_options(curve: Curve) -> tuple[str, ...]:
    if curve.capacity is not None:
        return tuple(given(curve=True))
    return tuple(given(rates=",".join(written(point.offered_iops) for point in curve.points)))


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


def _core_of(workload: Workload) -> _core.Workload:
    return _core.Workload.from_json(msgspec.json.encode(workload).decode())


def _options(workload: Workload, free: Sequence[str]) -> list[str] | None:
    """Return options that turn the preset of its name into this workload, without `free` keys; None: impossible."""
    if workload.name not in _core.preset_names():
        return None
    found = _core_of(workload).options(_core.preset_text(workload.name), free)
    return None if found is None else [word for key, value in found for word in _option(key, value)]


def _option(key: str, value: str) -> tuple[str, ...]:
    if "." in key:
        return tuple(given(set=f"{key}={value}"))
    if value == "false":
        return (switched_off(key),)
    return tuple(given(**{key: value == "true" or value}))


def toml(workload: Workload) -> str:
    """The shortest workload file that resolves to this workload."""
    return _core_of(workload).to_toml()


def _as_requested(request: WorkloadRequest | None, workload: Workload) -> tuple[str, list[str]] | None:
    """The workload file as it was given, with the options that were given beside it; None: they are not known, or they
    do not resolve to this workload.
    """
    if request is None:
        return None
    given = [(key, value) for key, value in request.options if key != "seed"]
    if not _resolves(request.toml, workload, [*given, ("seed", str(workload.seed))]):
        return None
    return request.toml, [word for key, value in given for word in _option(key, value)]


def _written_out(workload: Workload) -> tuple[str, list[str]] | None:
    """A file with all of the workload; None: no file resolves to it."""
    text = toml(workload)
    return (text, []) if _resolves(text, workload) else None


def _resolves(text: str, workload: Workload, options: Sequence[tuple[str, str]] = ()) -> bool:
    try:
        found = _core.Workload.parse(text, workload.name, workload.name, list(options))
    except _core.ConfigError:
        return False
    return found.to_json() == _core_of(workload).to_json()
