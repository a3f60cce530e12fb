"""A run that is asked for in full, and carried out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spindle.formats.fio_json import ReportOptions
from spindle.host.outputs import Output
from spindle.library.jobfile import PreparedRun, prepared
from spindle.library.outputs import keep_apart
from spindle.result.record import Record, Variation
from spindle.run import order, varied
from spindle.run.consent import NO_CONSENT, Consent
from spindle.run.engine import AS_USUAL, EngineOptions
from spindle.run.errors import Usage
from spindle.run.order import Order
from spindle.run.precondition import Preconditioning
from spindle.run.preparation import AS_IT_IS, PreflightOptions
from spindle.run.searching import Search
from spindle.run.status import StatusReports
from spindle.run.targets import on_kernel
from spindle.run.watch import Watch


@dataclass(frozen=True)
class Measurement:
    """One order, with each combination of the varied keys if there are some."""

    order: Order
    prepared: PreparedRun
    varied: Sequence[Variation] = ()

    @property
    def shape(self) -> ReportOptions | None:
        """The shape of fio's JSON that its job file asks for; None: the usual one."""
        return self.prepared.shape

    def carry_out(self, watch: Watch, status: StatusReports | None = None, *, force: bool = False) -> Record:
        """Run it from start to end. Raises errors of one line each, all of them `SpindleError`.

        `status`: receives reports while the load runs. `force`: logs of a job file replace files of other programs.
        """
        with self.prepared.logging(force=force) as engine_options:
            wanted = replace(self.order, engine_options=replace(engine_options, status=status))
            return varied.carry_out(wanted, self.varied, watch) if self.varied else order.carry_out(wanted, watch)


def variations_of(texts: Sequence[str]) -> list[Variation]:
    """The varied keys of `KEY=VALUE,VALUE`, `KEY=FIRST..LAST` ... Raises `Usage`."""
    return varied.parse(texts)


def measurement(
    workload: str,
    target: str | None,
    *,
    overrides: Sequence[tuple[str, str]] = (),
    sections: Sequence[str] = (),
    varied: Sequence[Variation] = (),
    create: str | None = None,
    keep: bool = False,
    consent: Consent = NO_CONSENT,
    engine_options: EngineOptions = AS_USUAL,
    preflight_options: PreflightOptions = AS_IT_IS,
    search: Search | None = None,
    precondition: Preconditioning | None = None,
    trace: Output | None = None,
    log: Output | None = None,
    verify_state: Output | None = None,
    output: Output | None = None,
    status_interval: float | None = None,
    kernel: str | None = None,
) -> Measurement:
    """Put together a run. Nothing is opened yet; the files to be written are compared with each other and the target.

    `workload`: a preset, a TOML file or a job file of fio. `target`: a file, a block device, a folder, a modelled
    machine or null:SIZE; None: the one that the job file names. `kernel`: run a modelled machine under the real kernel
    of this version, or the `newest` that is built. Raises errors of one line each.
    """
    found = prepared(workload, target, replace(engine_options, log=log), sections)
    if kernel is not None:
        found = replace(found, target=on_kernel(found.target, kernel))
    keep_apart(
        [each for each in (trace, log, verify_state, output) if each is not None], [(found.target.asked, "the target")]
    )
    if varied and status_interval is not None:
        raise Usage("`status_interval=`: `vary=` is many runs, and their progress says where they are; leave it out")
    return Measurement(
        Order(
            workload=found.source or workload,
            target=found.target,
            text=found.text,
            overrides=(*found.overrides, *overrides),
            create=create or found.create,
            keep=keep,
            search=search or found.search,
            precondition=precondition,
            consent=consent,
            engine_options=found.engine_options,
            preflight_options=preflight_options,
            verify_state=verify_state,
            trace=trace,
        ),
        found,
        varied,
    )
