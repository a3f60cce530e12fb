"""What is said about an option of a job file: one line, with its place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spindle.base.errors import SpindleError


class Level(StrEnum):
    """What becomes of the job."""

    ERROR = "error"
    """It would measure something else: refused."""
    DIFFERS = "differs"
    """Carried out, but not exactly as fio does it; the line says how."""
    NOTE = "note"
    """What is measured is the same."""


@dataclass(frozen=True)
class Place:
    """Where it stands."""

    file: str
    line: int
    """From 1; 0: the file as a whole."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True)
class Finding:
    """One line."""

    level: Level
    place: Place
    option: str
    """The option's own name, whatever alias was written; empty: the file or the job as a whole."""
    text: str

    @property
    def is_error(self) -> bool:
        """Whether the job file is refused for it."""
        return self.level is Level.ERROR

    def __str__(self) -> str:
        return ": ".join(part for part in (str(self.place), self.level.value, self.option, self.text) if part)


class JobFileRefused(SpindleError, ValueError):
    """A job file cannot be run; each finding is a line of its own."""

    exit_code = 2

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("; ".join(map(str, findings)))
        self.findings = findings

    @property
    def lines(self) -> list[str]:
        """The findings."""
        return [str(finding) for finding in self.findings]
