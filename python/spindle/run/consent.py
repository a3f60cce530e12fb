"""Consent of a person to destroy data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from spindle.host.guard import OpenTarget, StreamAccess, hold_device, open_target
from spindle.host.held import HeldDevice
from spindle.host.identity import Identity
from spindle.host.several import PathSets
from spindle.host.testfile import TestFile
from spindle.host.testfiles import TestFiles


@dataclass
class Agreement:
    """The device of a consent: the first one that was opened with it. Names may change their meaning."""

    device: Identity | None = None


@dataclass(frozen=True)
class Consent:
    """Consent of a person to destroy data."""

    erase: str | None = None
    """The device, named again."""
    erase_signature: str | None = None
    """The signature, named again."""
    erase_stacked: bool = False
    """True if it may consist of other devices."""
    erase_shared: bool = False
    """True if it may be a partition of a disk whose other partitions are in use."""
    confirm: Callable[[str], bool] | None = None
    """Asks the person; None: they agreed beforehand."""
    erased_before: bool = False
    """True if this consent was used before: signatures may be gone since."""
    agreement: Agreement = field(default_factory=Agreement, compare=False)
    """Shared by all consents derived from this one."""

    def after_writing(self) -> Consent:
        """The consent for the next run on the same target, without another question."""
        return replace(self, erased_before=True, confirm=None)

    @contextmanager
    def opened(
        self, target: str | os.PathLike[str] | TestFile | TestFiles | PathSets, streams: Sequence[StreamAccess]
    ) -> Iterator[OpenTarget]:
        """Open the target for those streams as far as the consent allows. Raises `host.errors.TargetError`."""
        with open_target(target, streams, **self._given()) as opened:
            self.agreement.device = self.agreement.device or opened.identity
            yield opened

    @contextmanager
    def held(self, device: str) -> Iterator[HeldDevice]:
        """A device that tools may write to. Raises `host.errors.TargetError`."""
        with hold_device(device, **self._given()) as held:
            self.agreement.device = self.agreement.device or held.identity
            yield held

    def _given(self) -> dict[str, Any]:
        return {
            "erase": self.erase,
            "erase_signature": self.erase_signature,
            "erase_stacked": self.erase_stacked,
            "erase_shared": self.erase_shared,
            "erased_before": self.erased_before,
            "agreed": self.agreement.device,
            "confirm": self.confirm,
        }


NO_CONSENT = Consent()
