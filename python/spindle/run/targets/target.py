"""A target by its name: what the name means, what makes no sense on it, and how it is opened."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from spindle.host.outputs import Output
from spindle.host.several import Several
from spindle.host.testfile import TestFile
from spindle.host.testfiles import TestFiles
from spindle.run.bench import Bench
from spindle.run.consent import NO_CONSENT, Consent
from spindle.run.files import Sized
from spindle.run.making import AS_USUAL, Making
from spindle.run.precondition import Preconditioning
from spindle.run.preparation import Calm
from spindle.run.resolve import Resolved
from spindle.run.watch import Watch


@dataclass(frozen=True)
class Opening:
    """How a target is opened."""

    consent: Consent = NO_CONSENT
    making: Making = AS_USUAL
    calm: Calm = field(default_factory=Calm)
    file: TestFile | TestFiles | None = None
    """The test file, or the files of the workload's sets, made for this run: the only files that may be written."""
    sized: Sized | None = None
    """How the size of the test file was chosen, where nobody asked for one."""
    precondition: Preconditioning | None = None
    """Bring flash into the state it has in use first."""
    trace: Output | None = None
    """Every command of every drive goes to this file."""


AS_IT_IS = Opening()


class Target(Protocol):
    """One kind of target; `targets.KINDS` lists them."""

    @property
    def asked(self) -> str:
        """Its name, as it was given."""

    @property
    def is_modelled(self) -> bool:
        """It is computed: nothing of this machine matters, and several at the same time do not disturb each other."""

    @property
    def place(self) -> Path | None:
        """The device, file or folder of this machine that it is; None: there is none."""

    @property
    def several(self) -> Several | None:
        """Devices and files that are there, where it is more than one."""

    @property
    def refusals(self) -> Mapping[str, str]:
        """Options and keys of plans that make no sense on it -> why, and what to do instead."""

    def open(self, resolved: Resolved, watch: Watch, how: Opening = AS_IT_IS) -> AbstractContextManager[Bench]:
        """Open it for the streams of a workload, of all its phases if it has some. Everything is closed at the end.
        Raises `Usage`, `RunFailed`, `_core.ConfigError` or `host.errors.TargetError`, one line each."""
