"""Jobs given as fio's own command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spindle.formats import fio_output
from spindle.formats.fio_job import JobFileRefused, arguments, convert_sections
from spindle.formats.fio_job.arguments import CommandLine, sections_of, source_of
from spindle.formats.fio_job.options import option_of
from spindle.formats.fio_output import OutputFormats
from spindle.library.conversion import ConvertedJob
from spindle.library.jobfile import of_jobs
from spindle.library.measurement import Measurement
from spindle.run.consent import Consent
from spindle.run.engine import EngineOptions
from spindle.run.errors import Usage
from spindle.run.order import Order
from spindle.run.preparation import PreflightOptions


def command_line(words: Sequence[str], own: Mapping[str, bool]) -> CommandLine:
    """Parse fio's command line. `own`: Spindle's options as they are typed, True if a value follows; a name that fio
    has too is fio's. Raises `Usage`."""
    only_ours = {name: takes for name, takes in own.items() if not _is_of_fio(name.lstrip("-"))}
    try:
        return arguments.parsed(words, only_ours)
    except JobFileRefused as refused:
        raise Usage(str(refused.findings[0])) from None


def _is_of_fio(name: str) -> bool:
    return option_of(name) is not None or name in arguments.WITH_VALUE


def shown(line: CommandLine) -> str:
    """The jobs as one command line of fio: each with all its options. Raises `JobFileRefused`."""
    return arguments.shown(sections_of(line))


def converted(line: CommandLine, target: str | None) -> ConvertedJob:
    """The jobs as a workload, on `target` if one is given. Raises `JobFileRefused`."""
    return ConvertedJob(convert_sections(sections_of(line), source_of(line), target))


def formats_of(line: CommandLine) -> OutputFormats:
    """The formats that it asks for. Raises `Usage`."""
    return fio_output.parse(line.format, line.terse_version)


def measurement_of(
    job: ConvertedJob, consent: Consent, engine_options: EngineOptions, preflight_options: PreflightOptions
) -> Measurement:
    """Put together the run of converted jobs. Nothing is opened yet. Raises `Usage` or `JobFileRefused`."""
    prepared = of_jobs(job.conversion, engine_options)
    order = Order(
        workload=job.conversion.file,
        target=prepared.target,
        text=prepared.text,
        create=prepared.create,
        search=prepared.search,
        consent=consent,
        engine_options=prepared.engine_options,
        preflight_options=preflight_options,
    )
    return Measurement(order, prepared)
