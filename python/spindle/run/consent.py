"""What a person allowed to be destroyed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from spindle.host.guard import OpenTarget, StreamAccess, hold_device, open_target
from spindle.host.held import HeldDevice
from spindle.host.identity import Identity
from spindle.host.several import Several
from spindle.host.testfile import TestFile
from spindle.host.testfiles import TestFiles


@dataclass
class Agreement:
    """Which device a consent was given for: the first one that was opened with it. Names may change their meaning."""

    device: Identity | None = None


@dataclass(frozen=True)
class Consent:
    """What a person allowed to be destroyed."""

    erase: str | None = None
    """The device they named, again."""
    erase_signature: str | None = None
    """The signature they saw, again."""
    erase_stacked: bool = False
    """It may be built of other devices."""
    erase_shared: bool = False
    """It may be a partition of a disk whose other partitions are in use."""
    confirm: Callable[[str], bool] | None = None
    """Asks them; None: they said yes beforehand."""
    erased_before: bool = False
    """It was written to with this consent already: signatures that are gone are not missed."""
    agreement: Agreement = field(default_factory=Agreement, compare=False)
    """Shared by all that is derived from this consent."""

    def after_writing(self) -> Consent:
        """For the next run on the same target, which nobody is asked about again."""
        return replace(self, erased_before=True, confirm=None)

    @contextmanager
    def opened(
        self, target: str | os.PathLike[str] | TestFile | TestFiles | Several, streams: Sequence[StreamAccess]
    ) -> Iterator[OpenTarget]:
        """The target, open for those streams as far as this allows it. Raises `host.errors.TargetError`."""
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
