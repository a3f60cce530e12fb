"""`spindle.run`, `spindle.sweep` and `spindle.simulate`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from spindle import _core
from spindle.host.outputs import Output
from spindle.library.arguments import public
from spindle.library.measurement import Measurement, measurement
from spindle.library.options import (
    consent_of,
    engine_of,
    overrides_of,
    preconditioning_of,
    preflight_of,
    search_of,
    several,
    text_of,
    within,
)
from spindle.library.outputs import output_of
from spindle.library.result import Result, Sweep
from spindle.library.session import Progress, watched
from spindle.library.stores import Store, keeping
from spindle.result.record import PhasesRecord, Record, Variation
from spindle.run.errors import Usage
from spindle.run.resolve import ResolvedWorkload, resolve
from spindle.run.simulate import SimulatedRun, machine_text, read_figures
from spindle.run.targets.kernel import DEFAULT
from spindle.run.trace import started

Name = str | os.PathLike[str]
Kept = Store | Name | bool | None
"""Where a result is stored: a store, its place, or True for the default one."""
_LISTED = (list, tuple, range)
"""Values of a key that a sweep takes for several."""


@public
def run(
    workload: Name,
    target: Name | None = None,
    *,
    create: Name | int | None = None,
    keep: bool = False,
    erase: Name | None = None,
    erase_signature: str | None = None,
    erase_stacked: bool = False,
    erase_shared: bool = False,
    confirm: Callable[[str], bool] | None = None,
    section: str | Sequence[str] = (),
    find_knee: bool = False,
    latency_target: str | Sequence[str] = (),
    search: Literal["depth", "rate"] | None = None,
    curve: bool = False,
    rates: str | None = None,
    precondition: bool = False,
    precondition_anyway: bool = False,
    precondition_time: str | None = None,
    engine: Literal["auto", "io_uring", "pread"] = "auto",
    sqpoll: bool = False,
    iopoll: bool = False,
    timestamps: Literal["request", "batch"] = "request",
    tolerate_errors: bool = False,
    cpus: Sequence[int] | None = None,
    cpus_shared: bool = False,
    strict: bool = False,
    wait_idle: float = 0.0,
    quiet_machine: bool = False,
    sync: Literal["target", "machine"] = "target",
    drop_caches: bool = False,
    kernel: bool | str = False,
    trace: Name | None = None,
    log: Name | None = None,
    verify_state: Name | None = None,
    force: bool = False,
    store: Kept = None,
    tags: Sequence[str] = (),
    progress: Progress = False,
    vary: Mapping[str, Sequence[object]] | None = None,
    **keys: object,
) -> Result:
    """Run a workload on a target and return its figures and verdicts.

    `workload`: a preset, a TOML file or a job file of fio. `target`: a file, a block device, a folder, a modelled
    machine (of the catalogue, or a machine file), or `null:SIZE`; a job file may name it. `**keys`: workload keys, as
    `workers=48, size="64KiB"`, of one stream as `**{"log.size": "64KiB"}`; values are as in a workload file, times with
    their unit (`ramp="2s"`), sizes with theirs or in bytes.

    Reading is the default, as on the command line. A block device is written to only if `erase` names it as well; a
    file only if `create` (its size, or "auto") makes it, and it is removed at the end unless `keep`. `confirm` is asked
    before a device is overwritten; without it, `erase` is enough.

    `kernel`: run a modelled machine under the real kernel in virtual time (`spindle lab`), True or a version ("6.1").
    `strict`: refuse a machine that is not quiet; `wait_idle`: seconds to wait for that. `trace`, `log`, `verify_state`:
    files to be written; `force` replaces files that are not Spindle's. `store`, `tags`: keep the result. `progress`:
    a live line on stderr. The rest is as the options of `spindle run` of the same names.

    Raises `spindle.Error`: one line; nothing was written to then, or what was made is removed.
    """
    asked = measurement(
        os.fspath(workload),
        None if target is None else os.fspath(target),
        sections=several(section),
        consent=consent_of(erase, erase_signature, erase_stacked, erase_shared, confirm),
        search=search_of(
            find_knee=find_knee,
            latency_target=several(latency_target),
            search=search,
            curve=curve,
            rates=rates,
            spacing=None if not (curve or rates or search == "rate") else _taken(keys, "spacing"),
        ),
        precondition=preconditioning_of(
            precondition=precondition, precondition_anyway=precondition_anyway, precondition_time=precondition_time
        ),
        engine_options=engine_of(
            engine=engine,
            sqpoll=sqpoll,
            iopoll=iopoll,
            timestamps=timestamps,
            tolerate_errors=tolerate_errors,
            cpus=cpus,
            cpus_shared=cpus_shared,
        ),
        preflight_options=preflight_of(
            strict=strict, sync=sync, drop_caches=drop_caches, wait_idle=wait_idle, quiet_machine=quiet_machine
        ),
        overrides=overrides_of(keys),
        varied=_variations(vary or {}),
        create=None if create is None else str(create),
        keep=keep,
        trace=_output(trace, "trace", force),
        log=_output(log, "log", force),
        verify_state=_output(verify_state, "verify_state", force),
        kernel=DEFAULT if kernel is True else kernel or None,
    )
    return Result(_carried_out(asked, store, tags, progress=progress, force=force))


@public
def sweep(workload: Name, target: Name | None = None, **options: Any) -> Sweep:
    """Run a workload once for each combination of values: a key with a list of values is varied.

    `spindle.sweep("oltp", "six-sata-f2", workers=[1, 8, 64], size=["4KiB", "64KiB"])` makes 6 runs; the last key
    changes fastest. The other options are those of `run`. Each run opens its target anew and makes its own files.
    """
    vary = {key: list(values) for key, values in options.items() if isinstance(values, _LISTED) and key not in _LISTS}
    if not vary:
        raise Usage("nothing is varied; give a key a list of values, as workers=[1, 8, 64]")
    if empty := [key for key, values in vary.items() if not values]:
        raise Usage(f"`{empty[0]}=`: the list of its values is empty")
    rest = {key: value for key, value in options.items() if key not in vary}
    record = run(workload, target, vary=vary, **rest).record
    assert isinstance(record, PhasesRecord)
    return Sweep(record)


_LISTS = ("section", "latency_target", "cpus", "tags")
"""Options of `run` that are lists themselves."""


@public
def simulate(
    workload: _core.Workload | ResolvedWorkload | Name,
    machine: _core.Machine | Name,
    *,
    trace: Name | None = None,
    interval_ns: int = 1_000_000_000,
    **keys: object,
) -> SimulatedRun:
    """Run a workload on a modelled machine and return what each of its drives did, beside the figures.

    `run` gives the record of such a run, with verdicts; this gives the times inside the drives: seeks, rotation,
    transfer (ns, sums over the run). `workload`: a preset or a file, with workload keys (`size="64KiB", workers=48`),
    or one that was parsed. `machine`: a name of the catalogue, a machine file, or a `spindle.Machine`. `trace`: a file
    for every command of every drive. `interval_ns`: length of an interval of the series. Raises `spindle.Error`.
    """
    within(interval_ns, "`interval_ns=`", 1_000_000, 1e18)
    if not isinstance(machine, _core.Machine):
        machine = _core.Machine.parse(machine_text(os.fspath(machine)), os.fspath(machine))
    if isinstance(workload, str | os.PathLike):
        workload = resolve(os.fspath(workload), overrides_of(keys))
    elif keys:
        raise Usage("workload keys go with a workload that is given by name; this one is resolved already")
    core = workload.core if isinstance(workload, ResolvedWorkload) else workload
    load = started(machine, core, _output(trace, "trace", False), interval_ns)
    try:
        while not load.wait(0.2):
            pass
    finally:
        load.stop()
    return read_figures(load.figures())


def _carried_out(asked: Measurement, store: Kept, tags: Sequence[str], *, progress: Progress, force: bool) -> Record:
    with keeping(store, tags) as keep:  # before a minute of work: can it be stored there?
        with watched(progress) as watch:
            record = asked.carry_out(watch, force=force)
        keep(record)
    return record


def _output(path: Name | None, name: str, force: bool) -> Output | None:
    if path is None:
        return None
    output = output_of(path, {"verify_state": "state"}.get(name, name), f"`{name}=`", force=force)
    output.check()
    return output


def _variations(vary: Mapping[str, Sequence[object]]) -> list[Variation]:
    if empty := [key for key, values in vary.items() if isinstance(values, str) or not values]:
        raise Usage(f"`vary=` {empty[0]}: has no list of values")
    return [Variation(key=key, values=list(map(text_of, values))) for key, values in vary.items()]


def _taken(keys: dict[str, object], name: str) -> str | None:
    return text_of(keys.pop(name)) if name in keys else None
