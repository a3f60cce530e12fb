"""Settings that are changed while a load runs, also those that are as before again at its end.

The files of all settings stay open and are read again at each look; only when one of them has another text than at the
last look are the settings worked out again. sysfs tells nobody of changes (neither inotify nor uevents), so a setting
that is changed and put back between two looks is not seen.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from .. import groups, settings
from ..devices import HERE, Device, Machine

LONGEST_BYTES = 4096
MOST_FILES = 1000
"""Of more, on machines with hundreds of devices in the stack, the rest is compared before and after only."""
MOST_CHANGES = 1000


@dataclass
class Passing:
    """A setting that was another one for a while. Times in s from the beginning of the load."""

    name: str
    before: str | None
    during: str | None
    """Its value when the change was seen."""
    from_s: float
    to_s: float | None = None
    """When it was seen to be as before again; None: not by the end."""


class SettingsWatch:
    """Looks at the settings again and again, until `close`."""

    def __init__(self, devices: Collection[Device], machine: Machine = HERE) -> None:
        self._devices, self._machine = devices, machine
        self._before = settings.settings_of(devices, machine)
        self._open: dict[str, Passing] = {}
        self.seen: list[Passing] = []
        self._files: list[int] = []
        self._texts: list[bytes] = []
        self._open_files()

    def look(self, at_s: float) -> None:
        """Cheap where nothing has changed: one read a file."""
        if self._read() != self._texts:
            self._compare(at_s)
            self._close_files()
            self._open_files()  # a change of the scheduler replaces the files of its parameters

    def close(self) -> None:
        """No more looks."""
        self._close_files()

    def _compare(self, at_s: float) -> None:
        changes = {one.name: one for one in settings.diff(self._before, self._now())}
        for name in [name for name in self._open if name not in changes]:
            self._open.pop(name).to_s = at_s
        for name, change in changes.items():
            if name not in self._open and len(self.seen) < MOST_CHANGES:
                self._open[name] = Passing(name, change.before, change.after, at_s)
                self.seen.append(self._open[name])

    def _now(self) -> dict[str, str]:
        return settings.settings_of(self._devices, self._machine)

    def _open_files(self) -> None:
        paths = [*groups.files_of(self._machine)]
        paths += [path for _, path in settings.files_of(self._devices, self._machine)]
        for path in paths[:MOST_FILES]:
            with suppress(OSError):
                self._files.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
        self._texts = self._read()

    def _read(self) -> list[bytes]:
        return [_text(file) for file in self._files]

    def _close_files(self) -> None:
        while self._files:
            os.close(self._files.pop())


def _text(file: int) -> bytes:
    """Empty where it cannot be read, as of a device that has gone."""
    try:
        return os.pread(file, LONGEST_BYTES, 0)
    except OSError:
        return b""
