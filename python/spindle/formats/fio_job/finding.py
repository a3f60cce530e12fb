"""Findings about options of a job file: one line each, with its place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spindle.base.errors import SpindleError


class Level(StrEnum):
    """Consequence for the job."""

    ERROR = "error"
    """Refused: it would measure something else."""
    DIFFERS = "differs"
    """Run, but not exactly as in fio; the line says how."""
    NOTE = "note"
    """The measurement is the same."""


@dataclass(frozen=True)
class SourceLine:
    """Its line in the job file."""

    file: str
    line: int
    """From 1; 0: the file as a whole."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True)
class JobFinding:
    """One line."""

    level: Level
    place: SourceLine
    option: str
    """The option's own name, whatever alias was written; empty: the file or the job as a whole."""
    text: str

    @property
    def is_error(self) -> bool:
        """True if the job file is refused for it."""
        return self.level is Level.ERROR

    def __str__(self) -> str:
        return ": ".join(part for part in (str(self.place), self.level.value, self.option, self.text) if part)


class JobFileRefused(SpindleError, ValueError):
    """A job file cannot be run; each finding is a separate line."""

    exit_code = 2

    def __init__(self, findings: list[JobFinding]) -> None:
        super().__init__("; ".join(map(str, findings)))
        self.findings = findings

    @property
    def lines(self) -> list[str]:
        """The findings."""
        return [str(finding) for finding in self.findings]
