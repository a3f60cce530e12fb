"""A job file of fio where a workload is expected."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from spindle.host.several import PathSets
from spindle.library.outputs import output_of
from spindle.run.errors import RunFailed, Usage
from spindle.run.resolve import is_job_file
from spindle.run.targets import PathTarget, parse

if TYPE_CHECKING:  # what only job files need is imported for them
    from spindle.formats.fio_job import Conversion, JobFinding
    from spindle.formats.fio_json import ReportOptions
    from spindle.host.outputs import Output
    from spindle.run.engine import EngineOptions
    from spindle.run.searching import Search
    from spindle.run.targets import Target


@dataclass(frozen=True)
class PreparedRun:
    """The target and the engine of a run; a job file decides what the caller leaves open."""

    target: Target
    engine_options: EngineOptions
    conversion: Conversion | None = None
    """None: the workload is not a job file."""

    @property
    def findings(self) -> Sequence[JobFinding]:
        """Differences from fio."""
        return self.conversion.findings if self.conversion is not None else ()

    @property
    def source(self) -> str | None:
        """The job file; None: there is none."""
        return self.conversion.file if self.conversion is not None else None

    @property
    def text(self) -> str | None:
        """The workload that a job file became, as TOML; None: there is no job file."""
        if self.conversion is None:
            return None
        from spindle.formats.fio_job import toml_of

        return toml_of(self.conversion)

    @property
    def overrides(self) -> tuple[tuple[str, str], ...]:
        """Several targets are a set of files, in a workload that does not mention them."""
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
        """The search that a job file asks for."""
        if self.conversion is None or self.conversion.search is None:
            return None
        from spindle.run.latency_search import fio_latency_target
        from spindle.run.searching import FindTarget

        asked = self.conversion.search
        wanted = fio_latency_target(asked.target_us * 1000, asked.window_us * 1000, asked.percent, asked.depth)
        return FindTarget(wanted)

    @property
    def shape(self) -> ReportOptions | None:
        """The shape of fio's JSON; None: the usual one."""
        if self.conversion is None:
            return None
        from spindle.formats.fio_job import shape_of

        return shape_of(self.conversion)

    @contextmanager
    def logging(self, *, force: bool = False) -> Iterator[EngineOptions]:
        """Have the load write a log of completions if a job file asks for logs; at the end they are made of it.

        `force`: replace files that are not Spindle's.
        """
        if self.conversion is None or not any(each.job.logs for each in self.conversion.jobs):
            yield self.engine_options
            return
        from spindle.formats import fio_log
        from spindle.formats.fio_job import logged_jobs

        names = {name for jobs in logged_jobs(self.conversion) for name in fio_log.names_of(jobs)}
        logs = [output_of(name, "fio-log", "log of the job", force=force) for name in sorted(names)]
        for each in logs:
            each.check()
        with tempfile.TemporaryDirectory(prefix="spindle-log-") as folder:
            log = self.engine_options.log or output_of(Path(folder) / "completions.csv", "log", "`log=`")
            yield replace(self.engine_options, log=log)
            _write_logs(self.conversion, log, logs)


def prepared(
    workload: str, target: str | None, engine_options: EngineOptions, sections: Sequence[str] = ()
) -> PreparedRun:
    """Find the target and the engine that a workload asks for, where the caller leaves them open.

    `sections`: only these jobs of a job file. Raises `Usage` or `JobFileRefused`.
    """
    if not is_job_file(workload):
        if sections:
            raise Usage(f"`section=`: {workload} is not a job file of fio; leave it out")
        if target is None:
            raise Usage("which target? name a file, a block device, a modelled machine or null:SIZE")
        return PreparedRun(parse(target), engine_options)
    from spindle.formats.fio_job import convert

    return of_jobs(convert(workload, target, only=sections), engine_options)


def of_jobs(conversion: Conversion, engine_options: EngineOptions) -> PreparedRun:
    """The same of jobs of fio. Raises `Usage` or `JobFileRefused`."""
    conversion.runnable()
    if conversion.target is None:
        raise Usage(f"{conversion.file}: its jobs name no file; give TARGET behind it")
    target = _target(conversion)
    if target.place is not None:
        engine_options = replace(
            engine_options,
            engine=conversion.engine if engine_options.engine == "auto" else engine_options.engine,
            cpus=engine_options.cpus or conversion.cpus or None,
            cpus_shared=engine_options.cpus_shared if engine_options.cpus else conversion.cpus_shared,
            iopoll=engine_options.iopoll or conversion.iopoll,
            sqpoll=engine_options.sqpoll or conversion.sqpoll,
        )
    return PreparedRun(target, engine_options, conversion)


def _target(conversion: Conversion) -> Target:
    """A job's name of a file is never one of a device."""
    name = str(conversion.target)
    if conversion.listed:
        return PathTarget(name, PathSets(conversion.listed))
    return parse(name, devices_by_name=False)


def _write_logs(conversion: Conversion, log: Output, logs: list[Output]) -> None:
    """Write fio's logs; each is complete before it takes its name."""
    from spindle.formats import fio_log
    from spindle.formats.fio_job import logged_jobs
    from spindle.result.completions import completions
    from spindle.run.engine import LoadPart

    several = len(conversion.phases) > 1
    with ExitStack() as stack:
        drafts = {str(each.path): stack.enter_context(each.draft()) for each in logs}
        files = {name: io.TextIOWrapper(draft.file, "ascii") for name, draft in drafts.items()}
        try:
            for phase, jobs in zip(conversion.phases, logged_jobs(conversion), strict=True):
                found = LoadPart(name=str(phase.head["name"]) if several else None).file_of(log)
                if found is not None and found.path.exists():
                    fio_log.write(completions(found.path), jobs, files)
            for file in files.values():
                file.flush()
        except OSError as error:
            raise RunFailed(f"{error.filename or '.'}: the logs cannot be written ({error.strerror})") from None
        for draft in drafts.values():
            draft.commit()
