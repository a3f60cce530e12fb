"""A job file of fio where a workload is expected."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from spindle.formats.fio_job import Conversion, Finding
    from spindle.formats.fio_json import Shape
    from spindle.host.outputs import Output
    from spindle.run.making import Making
    from spindle.run.searching import Search
    from spindle.run.targets import Target

section_option = click.option(
    "--section",
    "sections",
    multiple=True,
    metavar="NAME",
    help="Only this job of a job file of fio. May be repeated.",
)


@dataclass(frozen=True)
class Prepared:
    """What a workload asks for where the command line leaves it open."""

    target: Target
    making: Making
    conversion: Conversion | None = None
    """Of a job file."""

    @property
    def source(self) -> str | None:
        """Of a job file: where its jobs are from."""
        return self.conversion.file if self.conversion is not None else None

    @property
    def text(self) -> str | None:
        """Of a job file: the workload that it became, as TOML."""
        if self.conversion is None:
            return None
        from spindle.formats.fio_job import toml_of

        return toml_of(self.conversion)

    @property
    def overrides(self) -> tuple[tuple[str, str], ...]:
        """A set of files that stands for several targets, in a workload that says nothing of them."""
        if self.conversion is not None or self.target.several is None:
            return ()
        return (("nrfiles", str(len(self.target.several.paths))),)

    @property
    def create(self) -> str | None:
        """Size of the file that is made for the run, as fio would: where its jobs name one that is not there."""
        place = self.target.place
        if self.conversion is None or not self.conversion.needs_bytes or place is None:
            return None
        if self.target.asked.startswith("/dev/") or place.exists():
            return None
        return str(self.conversion.needs_bytes)

    @property
    def search(self) -> Search | None:
        """What a job file looks for."""
        if self.conversion is None or self.conversion.search is None:
            return None
        from spindle.run.latency_search import fio_latency_target
        from spindle.run.searching import FindTarget

        asked = self.conversion.search
        wanted = fio_latency_target(asked.target_us * 1000, asked.window_us * 1000, asked.percent, asked.depth)
        return FindTarget(wanted)

    @property
    def shape(self) -> Shape | None:
        """Of fio's JSON; None: the usual one."""
        if self.conversion is None:
            return None
        from spindle.formats.fio_job import shape_of

        return shape_of(self.conversion)

    @contextmanager
    def logging(self) -> Iterator[Making]:
        """How the load is made so that the logs which a job file asks for can be written: at the end they are."""
        if self.conversion is None or not any(each.job.logs for each in self.conversion.jobs):
            yield self.making
            return
        from spindle.cli.writing import output_of
        from spindle.formats import fio_log
        from spindle.formats.fio_job import logged_jobs

        names = {name for jobs in logged_jobs(self.conversion) for name in fio_log.names_of(jobs)}
        logs = [output_of(Path(name), "fio-log", "log of the job") for name in sorted(names)]
        for each in logs:
            each.check()
        with tempfile.TemporaryDirectory(prefix="spindle-log-") as folder:
            log = self.making.log or output_of(Path(folder) / "completions.csv", "log", "--log")
            yield replace(self.making, log=log)
            _write_logs(self.conversion, log, logs)


def tell(findings: Iterable[Finding]) -> None:
    """What differs, on stderr, a line each."""
    from spindle.cli.failure import one_line

    for finding in findings:
        print(f"spindle: {one_line(str(finding))}", file=sys.stderr)


def prepared(workload: str, target: str | None, making: Making, sections: Sequence[str] = ()) -> Prepared:
    """The target and the engine that a workload asks for, where the command line leaves them open. `sections`: only
    these jobs of a job file."""
    from spindle.run.resolve import is_job_file
    from spindle.run.targets import parse

    if not is_job_file(workload):
        if sections:
            raise click.UsageError(f"--section: {workload} is not a job file of fio; leave it out")
        if target is None:
            raise click.UsageError(
                "missing argument 'TARGET'; name a file, a block device, a modelled machine or null:SIZE"
            )
        return Prepared(parse(target), making)
    from spindle.formats.fio_job import convert

    return of_jobs(convert(workload, target, only=sections), making)


def of_jobs(conversion: Conversion, making: Making) -> Prepared:
    """The same of jobs of fio, whose findings are told. Raises JobFileRefused."""
    conversion.runnable()
    if conversion.target is None:
        raise click.UsageError(f"{conversion.file}: its jobs name no file; give TARGET behind it")
    tell(conversion.findings)
    target = _target(conversion)
    if target.place is not None:
        making = replace(
            making,
            engine=conversion.engine if making.engine == "auto" else making.engine,
            cpus=making.cpus or conversion.cpus or None,
            cpus_shared=making.cpus_shared if making.cpus else conversion.cpus_shared,
            iopoll=making.iopoll or conversion.iopoll,
            sqpoll=making.sqpoll or conversion.sqpoll,
        )
    return Prepared(target, making, conversion)


def _target(conversion: Conversion) -> Target:
    """A job's name of a file is never one of a device."""
    from spindle.host.several import Several
    from spindle.run.targets import Paths, parse

    name = str(conversion.target)
    if conversion.listed:
        return Paths(name, Several(conversion.listed))
    return parse(name, devices_by_name=False)


def _write_logs(conversion: Conversion, log: Output, logs: list[Output]) -> None:
    """fio's logs, each complete before it takes its name."""
    from spindle.formats import fio_log
    from spindle.formats.fio_job import logged_jobs
    from spindle.result.completions import completions
    from spindle.run.errors import RunFailed
    from spindle.run.making import Part

    several = len(conversion.phases) > 1
    with ExitStack() as stack:
        drafts = {str(each.path): stack.enter_context(each.draft()) for each in logs}
        files = {name: io.TextIOWrapper(draft.file, "ascii") for name, draft in drafts.items()}
        try:
            for phase, jobs in zip(conversion.phases, logged_jobs(conversion), strict=True):
                found = Part(name=str(phase.head["name"]) if several else None).file_of(log)
                if found is not None and found.path.exists():
                    fio_log.write(completions(found.path), jobs, files)
            for file in files.values():
                file.flush()
        except OSError as error:
            raise RunFailed(f"{error.filename or '.'}: the logs cannot be written ({error.strerror})") from None
        for draft in drafts.values():
            draft.commit()
