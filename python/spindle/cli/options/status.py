"""Status reports during a run, on the standard output or in the output file."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import click

if TYPE_CHECKING:
    from types import FrameType

    from spindle.formats.fio_json import ReportOptions
    from spindle.formats.fio_output import OutputFormats
    from spindle.host.outputs import Output
    from spindle.result.record import PhasesRecord, RunRecord
    from spindle.run.status import Report, StatusReports
    from spindle.run.watch import Watch

OPTION = "status-interval"


def status_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--status-interval`."""
    return click.option(
        f"--{OPTION}",
        metavar="TIME",
        callback=_interval,
        help="Print the figures so far at this interval (`1`, `500ms`), in the --output-format.",
    )(command)


def _interval(_context: click.Context, _parameter: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    from spindle.formats.fio_job.arguments import status_interval

    try:
        return status_interval(text)
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from None


class GrowingOutput:
    """An output that status reports are appended to during the run. Without any, the result is saved as usual."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._file: IO[bytes] | None = None

    def add(self, data: bytes) -> None:
        """Append a status report. Raises as `Output.check`."""
        import os

        if self._file is None:
            self._file = os.fdopen(self._output.create(), "wb")
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise self._output.failed(error) from None

    def save(self, data: bytes) -> None:
        """Write the result after the status reports. Raises as `Output.check`."""
        if self._file is None:
            self._output.save(data)
        else:
            self.add(data)
            self._file.close()


class Status:
    """The format and the output of status reports."""

    def __init__(
        self, wanted: OutputFormats | None, shape: ReportOptions | None, into: GrowingOutput | None = None
    ) -> None:
        self._wanted, self._shape, self._into = wanted, shape, into

    @contextmanager
    def reports(self, watch: Watch, interval_s: float | None) -> Iterator[StatusReports]:
        """Yield the reports of a run's loads. SIGUSR1 asks for one more, as with fio."""
        from spindle.run.status import StatusReports

        def write(report: Report) -> None:
            watch.end()
            self._write(report)

        made = StatusReports(write, interval_s)

        def ask(_signum: int, _frame: FrameType | None) -> None:
            made.ask()

        before = signal.signal(signal.SIGUSR1, ask)
        try:
            yield made
        finally:
            signal.signal(signal.SIGUSR1, before)

    def _write(self, report: Report) -> None:
        from spindle.cli.output import put

        put(
            _record(report),
            output_format=self._wanted,
            shape=self._shape,
            into=self._into,
            runs=[*report.runs, *report.waiting],
            is_last=False,
        )


def _record(report: Report) -> RunRecord | PhasesRecord:
    """Return the figures so far as a record that says that the run goes on."""
    from msgspec.structs import replace

    from spindle.result.phases import figures_of
    from spindle.result.record import Level, PhasesRecord, Verdict

    *done, current = report.runs
    goes_on = Verdict(check="status", level=Level.WARN, evidence="the run goes on: these are its figures so far")
    current = replace(current, verdicts=[goes_on])
    if not report.workload.phases:
        return current
    runs = [*done, current]
    return PhasesRecord(
        id=runs[0].id,
        started=runs[0].started,
        tool=current.tool,
        workload=report.workload,
        target=current.target,
        phases=[figures_of(run) for run in runs],
        runs=runs,
        verdicts=[goes_on],
    )
