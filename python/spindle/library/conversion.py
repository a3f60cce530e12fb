"""`spindle.convert`: job files of fio as workloads."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from spindle.formats.fio_job import Conversion, JobFileRefused, JobFinding, as_json, toml_of
from spindle.formats.fio_job import convert as converted
from spindle.library.arguments import public
from spindle.library.options import several


class ConvertedJob:
    """A job file as a workload for `spindle.run`, with each option that is not converted exactly."""

    def __init__(self, conversion: Conversion) -> None:
        self.conversion = conversion
        """Its jobs, phases and files."""

    @property
    def findings(self) -> Sequence[JobFinding]:
        """Differences from fio; those of level `error` are why it cannot be run."""
        return self.conversion.findings

    @property
    def remarks(self) -> list[JobFinding]:
        """The findings with which it can still be run."""
        return [finding for finding in self.findings if not finding.is_error]

    def require(self) -> None:
        """Raise `spindle.Error` if it cannot be run: a line for each reason."""
        if errors := [finding for finding in self.findings if finding.is_error]:
            raise JobFileRefused(errors)

    def to_toml(self, spelled: Callable[[str], str] = str) -> str:
        """The workload, with the findings in front. Raises `spindle.Error` if it cannot be run. `spelled`: how keywords
        are shown."""
        self.require()
        return toml_of(self.conversion, spelled)

    def to_json(self) -> str:
        """Jobs as read (bytes, microseconds), converted phases and findings, also of one that cannot be run."""
        return as_json(self.conversion)

    def to_dict(self) -> dict[str, Any]:
        """The same as dicts and lists."""
        found: dict[str, Any] = json.loads(self.to_json())
        return found

    def __repr__(self) -> str:
        return f"<ConvertedJob {self.conversion.file}: {len(self.findings)} findings>"


@public
def convert(
    job: str | os.PathLike[str], target: str | os.PathLike[str] | None = None, *, section: str | Sequence[str] = ()
) -> ConvertedJob:
    """Convert a job file of fio to a workload; nothing is run.

    `target`: in place of the file or device that its jobs name. `section`: of these jobs only. Raises `spindle.Error`
    if it is not a job file; one that fio would run and Spindle cannot has findings of level `error`.
    """
    return ConvertedJob(converted(os.fspath(job), None if target is None else os.fspath(target), only=several(section)))
