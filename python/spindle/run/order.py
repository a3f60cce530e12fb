"""Carries out one `spindle run` from start to end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from spindle import _core
from spindle.host.outputs import Output
from spindle.host.testfile import TestFile
from spindle.host.testfiles import TestFiles
from spindle.result.record import Record
from spindle.run import phases, targets
from spindle.run.consent import Consent
from spindle.run.engine import EngineOptions
from spindle.run.errors import Usage
from spindle.run.files import OF_A_RUN, ChosenSize, own_file, own_files, sized_file
from spindle.run.precondition import Preconditioning
from spindle.run.preparation import AS_IT_IS, PreflightOptions, calm_machine, check_rights, look_at_place
from spindle.run.resolve import ResolvedWorkload, resolve, resolve_text
from spindle.run.runner import LoadRunner
from spindle.run.searching import Search, refuse, with_intervals, with_length
from spindle.run.targets import Opening, Target
from spindle.run.verification import keep_state
from spindle.run.watch import Watch

FILES = "files"
AUTO = "auto"
"""For `create`: the size that the caches require."""


@dataclass(frozen=True)
class Order:
    """Workload, target and all options."""

    workload: str
    """A preset, a TOML file or a job file of fio."""
    target: Target
    overrides: tuple[tuple[str, str], ...] = ()
    """Options that change workload keys: (`size`, `64KiB`) or (`log.size`, `64KiB`)."""
    create: str | None = None
    """Make the target, a test file of this size (or `auto`), and remove it at the end."""
    keep: bool = False
    """Leave the test file in place."""
    precondition: Preconditioning | None = None
    """Bring flash to its state in use first."""
    search: Search | None = None
    """Many runs instead of one."""
    consent: Consent = field(default_factory=Consent)
    engine_options: EngineOptions = field(default_factory=EngineOptions)
    preflight_options: PreflightOptions = AS_IT_IS
    verify_state: Output | None = None
    """File for the state that must be on the target, to be checked later."""
    trace: Output | None = None
    """Modelled machines: file for every command of every drive."""
    text: str | None = None
    """The workload as TOML, if it was converted; None: `workload` names it."""

    def resolved(self, overrides: tuple[tuple[str, str], ...]) -> ResolvedWorkload:
        """The workload with these options. Raises as `resolve`."""
        if self.text is not None:
            return resolve_text(self.text, self.workload, Path(self.workload).stem, overrides)
        return resolve(self.workload, overrides, self.target.asked)


def carry_out(order: Order, watch: Watch) -> Record:
    """Carry out an order. Raises as `resolve`, `host` and the core: one line each."""
    resolved = order.resolved(order.overrides)
    if order.search is not None:
        refuse(order.search, resolved)
        resolved = with_length(order.search, resolved, order.overrides)
        order = replace(order, engine_options=with_intervals(order.search, resolved, order.engine_options))
    _check(order, resolved)
    check_rights(order.preflight_options)
    with ExitStack() as stack:
        calm = stack.enter_context(calm_machine(order.target.place, order.preflight_options, watch))
        file, sized = _made(order, resolved, stack, watch)
        how = Opening(order.consent, order.engine_options, calm, file, sized, order.precondition, order.trace)
        opened = stack.enter_context(order.target.open(resolved, watch, how))
        record = _measured(order, resolved, opened)
        if order.verify_state is not None and opened.written is not None:
            keep_state(opened.written, opened.place, order.verify_state)
        if file is not None and order.keep:
            file.keep()
        watch.end()
    return calm.outcome_in(record)


def _measured(order: Order, resolved: ResolvedWorkload, opened: LoadRunner) -> Record:
    if order.search is not None:
        return order.search.carry_out(opened, resolved)
    if order.engine_options.status is not None:
        order.engine_options.status.begin(resolved.spec)
    return phases.whole(opened, resolved).record


def _made(
    order: Order, resolved: ResolvedWorkload, stack: ExitStack, watch: Watch
) -> tuple[TestFile | TestFiles | None, ChosenSize | None]:
    """The files that are made for the run, and the choice of their size."""
    makes, place = _makes(order, resolved), order.target.place
    if makes is None or place is None:
        return None, None
    look_at_place(place, order.preflight_options, watch)
    if makes == FILES:
        return stack.enter_context(own_files(place, resolved, OF_A_RUN, watch))
    if makes == AUTO:
        return stack.enter_context(sized_file(place, resolved.spec, OF_A_RUN, watch))
    return stack.enter_context(own_file(place, _size(makes), watch)), None


def _makes(order: Order, resolved: ResolvedWorkload) -> str | None:
    """The files to make: those of the workload's sets (`FILES`), or one test file of this size."""
    place = order.target.place
    if place is None or order.target.several is not None:
        return None
    if resolved.spec.makes_files:
        return FILES
    return AUTO if order.create is None and os.path.isdir(place) else order.create


def _given(order: Order, resolved: ResolvedWorkload) -> Iterator[str]:
    """Options that some targets refuse."""
    given = {
        "create": order.create is not None,
        "keep": order.keep,
        "erase": order.consent.erase is not None,
        "iopoll": order.engine_options.iopoll,
        "sqpoll": order.engine_options.sqpoll,
        "cpus": order.engine_options.cpus is not None,
        "engine": order.engine_options.engine != "auto",
        "log": order.engine_options.log is not None,
        "status_interval": order.engine_options.status is not None
        and order.engine_options.status.interval_s is not None,
        "verify": _verifies(resolved),
        "verify_state": order.verify_state is not None,
        "drop_caches": order.preflight_options.drop_caches,
        "sync": order.preflight_options.sync_machine,
        "wait_idle": order.preflight_options.wait_idle_s > 0,
        "quiet_machine": order.preflight_options.quiet_machine,
        "precondition": order.precondition is not None,
        "trace": order.trace is not None,
    }
    return (name for name, is_given in given.items() if is_given)


def _check(order: Order, resolved: ResolvedWorkload) -> None:
    """Check that the options fit together. Raises `Usage`."""
    refused = targets.refusal(order.target, _given(order, resolved))
    if refused is not None:
        raise Usage(f"`{refused[0]}=`: {refused[1]}")
    _check_outputs(order, resolved)
    _check_files(order, resolved)
    if order.search is not None and "status_interval" in _given(order, resolved):
        raise Usage("`status_interval=`: a search is many runs, and its progress says where it is; leave it out")
    if order.search is not None and resolved.spec.works_on_names:
        raise Usage(f"{resolved.spec.name} ends when every name was taken: nothing can be searched; vary `workers=`")
    if order.engine_options.iopoll and not all(stream.direct for stream in resolved.spec.all_streams):
        raise Usage("`iopoll=`: polling needs direct I/O; leave `direct=False` out")


def _check_outputs(order: Order, resolved: ResolvedWorkload) -> None:
    """Check the files that are written in addition to the record."""
    if order.trace is not None and (order.search is not None or resolved.spec.phases):
        raise Usage(f"`trace=`: {'phases are' if resolved.spec.phases else 'a search is'} many runs; trace one of them")
    if order.engine_options.log is not None and order.search is not None:
        raise Usage("`log=`: a search is many runs; log one of them")
    if order.engine_options.log is not None:
        for part in phases.parts_of(resolved.spec):
            if (log := part.file_of(order.engine_options.log)) is not None:
                log.check()
    if order.verify_state is not None and not _verifies(resolved):
        raise Usage("`verify_state=`: there is no state unless the run verifies; use it with `verify=`")
    if order.verify_state is not None and _makes(order, resolved) is not None and not order.keep:
        raise Usage("`verify_state=`: the test file is removed at the end; `keep=` keeps it")


def _check_files(order: Order, resolved: ResolvedWorkload) -> None:
    """Check the files that the load uses."""
    target, name = order.target, resolved.spec.name
    if order.precondition is not None and resolved.spec.makes_files:
        raise Usage("`precondition=`: files are made for this run; precondition a device, or one test file")
    if target.several is not None and {each.name for each in resolved.spec.filesets} != set(target.several.sets):
        raise Usage(f"{target.asked}: these are several, but {name} makes its own files; name a folder")
    if resolved.spec.makes_files and target.place is not None and target.several is None:
        if order.consent.erase is not None:
            raise Usage("`erase=`: this workload's files are made in TARGET, nothing else is written; leave it out")
        if order.create is not None:
            raise Usage("`create=`: makes one test file; this workload's files are made in TARGET anyway; leave it out")
        if not os.path.isdir(target.place):
            raise Usage(f"{target.asked}: {name} makes files of its own; name a folder to make them in")
    if order.keep and _makes(order, resolved) is None:
        raise Usage("`keep=`: there is no test file to keep; use it with `create=` SIZE")


def _verifies(resolved: ResolvedWorkload) -> bool:
    return any(stream.verify for stream in resolved.spec.all_streams)


def _size(text: str) -> int:
    try:
        return _core.parse_size(text)
    except _core.ConfigError as error:
        raise Usage(f"`create=`: {error}; write for example 4GiB, or auto") from None
