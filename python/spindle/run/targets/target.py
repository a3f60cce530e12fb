"""The protocol of targets: the name, refused options, and opening."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from spindle.host.outputs import Output
from spindle.host.several import PathSets
from spindle.host.testfile import TestFile
from spindle.host.testfiles import TestFiles
from spindle.run.consent import NO_CONSENT, Consent
from spindle.run.engine import AS_USUAL, EngineOptions
from spindle.run.files import ChosenSize
from spindle.run.precondition import Preconditioning
from spindle.run.preparation import QuietMachine
from spindle.run.resolve import ResolvedWorkload
from spindle.run.runner import LoadRunner
from spindle.run.watch import Watch


@dataclass(frozen=True)
class Opening:
    """Options for opening a target."""

    consent: Consent = NO_CONSENT
    engine_options: EngineOptions = AS_USUAL
    calm: QuietMachine = field(default_factory=QuietMachine)
    file: TestFile | TestFiles | None = None
    """The test file, or the files of the workload's sets, made for this run: the only files that may be written."""
    sized: ChosenSize | None = None
    """The size of the test file with its reason, if Spindle chose it."""
    precondition: Preconditioning | None = None
    """Bring flash to its state in use first."""
    trace: Output | None = None
    """File for every command of every drive."""
    known: Mapping[str, str] | None = None
    """A modelled machine: loads (JSON of the core) whose figures were computed elsewhere, with these."""


AS_IT_IS = Opening()


class Target(Protocol):
    """One kind of target; `targets.KINDS` lists them."""

    @property
    def asked(self) -> str:
        """Its name, as given."""

    @property
    def is_modelled(self) -> bool:
        """True for a modelled machine: this machine does not affect it, and several runs do not disturb each other."""

    @property
    def place(self) -> Path | None:
        """The device, file or folder of this machine; None: there is none."""

    @property
    def several(self) -> PathSets | None:
        """The existing devices and files, if there are several."""

    @property
    def refusals(self) -> Mapping[str, str]:
        """Refused options and keys of plans -> the reason and the remedy."""

    def open(
        self, resolved: ResolvedWorkload, watch: Watch, how: Opening = AS_IT_IS
    ) -> AbstractContextManager[LoadRunner]:
        """Open it for the streams of a workload and all its phases. Everything is closed at the end. Raises `Usage`,
        `RunFailed`, `_core.ConfigError` or `host.errors.TargetError`, one line each.
        """
