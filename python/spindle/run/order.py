"""What a person ordered with `spindle run`, carried out from start to end."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from spindle import _core
from spindle.host.outputs import Output
from spindle.host.several import Several
from spindle.host.testfile import TestFile
from spindle.host.testfiles import TestFiles
from spindle.result.record import Record
from spindle.run import phases, precondition
from spindle.run.bench import NULL, Bench, Consent, Making, bench
from spindle.run.errors import Usage
from spindle.run.files import OF_A_RUN, own_file, own_files, sized_file
from spindle.run.modelled import ModelledBench, modelled, refuse_what_makes_no_sense
from spindle.run.precondition import Preconditioning
from spindle.run.preparation import AS_IT_IS, Care, calm_machine, check_rights, look_at_place
from spindle.run.resolve import Resolved, resolve, resolve_text
from spindle.run.searching import Search, refuse, with_intervals, with_length
from spindle.run.simulate import is_machine
from spindle.run.verification import keep_state
from spindle.run.watch import Watch

FILES = "files"
AUTO = "auto"
"""For `create`: the size that the caches ask for."""


@dataclass(frozen=True)
class Order:
    """Workload, target and everything said about them."""

    workload: str
    """A preset, a TOML file or a job file of fio."""
    target: str
    overrides: tuple[tuple[str, str], ...] = ()
    """Workload keys by option: (`size`, `64KiB`) or (`log.size`, `64KiB`)."""
    create: str | None = None
    """Make the target, a test file of this size (or `auto`), and remove it at the end."""
    keep: bool = False
    """Leave the test file in place."""
    precondition: Preconditioning | None = None
    """Bring flash into the state it has in use first."""
    search: Search | None = None
    """Many runs instead of one."""
    consent: Consent = field(default_factory=Consent)
    making: Making = field(default_factory=Making)
    care: Care = AS_IT_IS
    verify_state: Output | None = None
    """Keep what must be on the target here, to be read back on another day."""
    trace: Output | None = None
    """Modelled machines: write every command of every drive to this file."""
    text: str | None = None
    """The workload as TOML, where it was made of something else; None: `workload` says where it is."""

    several: Several | None = None
    """What the sets of files of the workload stand for, where nothing is made; `target` says them all."""

    def resolved(self, overrides: tuple[tuple[str, str], ...]) -> Resolved:
        """The workload with these options. Raises what `resolve` raises."""
        if self.text is not None:
            return resolve_text(self.text, self.workload, Path(self.workload).stem, overrides)
        return resolve(self.workload, overrides, self.target)


def carry_out(order: Order, watch: Watch) -> Record:
    """Raises what `resolve`, `host` and the core raise: one line each."""
    resolved = order.resolved(order.overrides)
    if order.search is not None:
        refuse(order.search, resolved)
        resolved = with_length(order.search, resolved, order.overrides)
        order = replace(order, making=with_intervals(order.search, resolved, order.making))
    if is_machine(order.target):
        return _on_model(order, resolved, watch)
    _check(order, resolved)
    check_rights(order.care)
    first = order.several.paths[0] if order.several is not None else order.target
    place = None if order.target.startswith(NULL) else Path(first)
    with ExitStack() as stack:
        calm = stack.enter_context(calm_machine(place, order.care, watch))
        file: TestFile | TestFiles | None = None
        sized = None
        makes = _makes(order, resolved)
        if makes is not None:
            path = Path(order.target)
            look_at_place(path, order.care, watch)
            if makes == FILES:
                file, sized = stack.enter_context(own_files(path, resolved, OF_A_RUN, watch))
            elif makes == AUTO:
                file, sized = stack.enter_context(sized_file(path, resolved.spec, OF_A_RUN, watch))
            else:
                file = stack.enter_context(own_file(path, _size(makes), watch))
        opened = stack.enter_context(
            bench(
                order.target,
                resolved.spec,
                watch,
                consent=order.consent,
                making=order.making,
                file=file if order.several is None else order.several,
                calm=calm,
                sized=sized,
                also=[] if order.precondition is None else precondition.streams(order.precondition, resolved),
            )
        )
        if order.precondition is not None:
            opened.precondition = precondition.carry_out(opened, order.precondition, resolved)
        record = _measured(order, resolved, opened)
        if order.verify_state is not None and opened.written is not None:
            keep_state(opened.written, opened.place, order.verify_state)
        if file is not None and order.keep:
            file.keep()
        watch.end()
    return calm.outcome_in(record)


def _makes(order: Order, resolved: Resolved) -> str | None:
    """What is made for the run: the files of the workload's sets (`FILES`), or one test file of this size."""
    if order.target.startswith(NULL) or order.several is not None:
        return None
    if resolved.spec.makes_files:
        return FILES
    return AUTO if order.create is None and os.path.isdir(order.target) else order.create


def _measured(order: Order, resolved: Resolved, opened: Bench | ModelledBench) -> Record:
    return phases.whole(opened, resolved).record if order.search is None else order.search.carry_out(opened, resolved)


def _on_model(order: Order, resolved: Resolved, watch: Watch) -> Record:
    consent = order.consent
    refuse_what_makes_no_sense(
        {
            "--create": order.create is not None,
            "--keep": order.keep,
            "--erase": consent.erase is not None,
            "--iopoll": order.making.iopoll,
            "--sqpoll": order.making.sqpoll,
            "--cpus": order.making.cpus is not None,
            "--engine": order.making.engine != "auto",
            "--log": order.making.log is not None,
            "--verify": _verifies(resolved),
            "--verify-state": order.verify_state is not None,
            "--drop-caches": order.care.drop_caches,
            "--sync": order.care.sync_machine,
            "--wait-idle": order.care.wait_idle_s > 0,
            "--quiet-machine": order.care.quiet_machine,
        }
    )
    if order.precondition is not None:
        raise Usage(
            "--precondition: a modelled flash drive always finds erased pages, whatever was written before, and a disk "
            "does not care; leave it out"
        )
    if order.trace is not None and (order.search is not None or resolved.spec.phases):
        raise Usage(f"--trace: {'phases are' if resolved.spec.phases else 'a search is'} many runs; trace one of them")
    with modelled(order.target, watch, trace=order.trace, interval_ns=order.making.interval_ns) as opened:
        record = _measured(order, resolved, opened)
        watch.end()
        return record


def _check(order: Order, resolved: Resolved) -> None:
    null = order.target.startswith(NULL)
    if order.trace is not None:
        raise Usage("--trace: only a modelled machine tells what each drive does; give a machine file as target")
    if order.making.log is not None and order.search is not None:
        raise Usage("--log: a search is many runs; log one of them")
    if order.making.log is not None:
        for part in phases.parts_of(resolved.spec):
            if (log := part.file_of(order.making.log)) is not None:
                log.check()
    if null and _verifies(resolved):
        raise Usage("--verify: the null target stores nothing; leave it out")
    if order.verify_state is not None and not _verifies(resolved):
        raise Usage("--verify-state: there is nothing to keep unless the run verifies; it goes with --verify")
    if order.verify_state is not None and _makes(order, resolved) is not None and not order.keep:
        raise Usage("--verify-state: the test file is removed at the end; --keep leaves it to be read back")
    if order.precondition is not None and null:
        raise Usage("--precondition: the null target keeps nothing; leave it out")
    if order.precondition is not None and order.several is not None:
        raise Usage("--precondition: several targets are named; precondition each by itself")
    if order.precondition is not None and resolved.spec.makes_files:
        raise Usage("--precondition: files are made for this run; precondition a device, or one test file")
    if order.search is not None and resolved.spec.works_on_names:
        raise Usage(f"{resolved.spec.name} ends when every name was taken: nothing can be searched; vary --workers")
    if order.several is not None and {each.name for each in resolved.spec.filesets} != set(order.several.sets):
        raise Usage(f"{order.target}: are several, but {resolved.spec.name} makes files of its own; name a folder")
    if order.several is not None and order.create is not None:
        raise Usage("--create: makes one test file, and several targets are named; leave it out")
    if resolved.spec.makes_files and not null and order.several is None:
        if order.consent.erase is not None:
            raise Usage("--erase: this workload's files are made in TARGET, nothing else is written; leave it out")
        if order.create is not None:
            raise Usage("--create: makes one test file; this workload's files are made in TARGET anyway; leave it out")
        if not os.path.isdir(order.target):
            raise Usage(f"{order.target}: {resolved.spec.name} makes files of its own; name a folder to make them in")
    if order.consent.erase is not None and null:
        raise Usage("--erase: the null target keeps nothing; leave it out")
    if order.create is not None and null:
        raise Usage("--create: the null target needs no file; leave it out")
    if order.keep and _makes(order, resolved) is None:
        raise Usage("--keep: there is no test file to keep; it goes with --create SIZE")
    if order.making.iopoll and not all(stream.direct for stream in resolved.spec.all_streams):
        raise Usage("--iopoll: polling needs direct I/O; leave --buffered out")


def _verifies(resolved: Resolved) -> bool:
    return any(stream.verify for stream in resolved.spec.all_streams)


def _size(text: str) -> int:
    try:
        return _core.parse_size(text)
    except _core.ConfigError as error:
        raise Usage(f"--create: {error}; write for example 4GiB, or auto for what the caches ask") from None
