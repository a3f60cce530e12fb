"""Settings that change while a load runs, including those that change back before its end.

The files of all settings stay open and are read again at each look. Only when the text of a file has changed are the
settings worked out again. sysfs reports no changes (neither inotify nor uevents), so a setting that changes and
changes back between two looks is not seen.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from spindle.host import groups, settings
from spindle.host.devices import HERE, Device, Machine, text_of
from spindle.result.record import SettingChange, TemporaryChange, changed

LONGEST_BYTES = 4096
MOST_FILES = 1000
"""Most files that are watched. Machines with hundreds of devices have more: the rest is compared before and after."""
MOST_CHANGES = 1000


class SettingsWatch:
    """Watches the settings until `close`."""

    def __init__(self, devices: Collection[Device], machine: Machine = HERE) -> None:
        self._devices, self._machine = devices, machine
        self._open: dict[str, tuple[SettingChange, float]] = {}
        """Settings that differ now, with the time when that was first seen."""
        self.seen: list[TemporaryChange] = []
        """Settings that changed and changed back."""
        self._files: dict[Path, int] = {}
        self._texts: dict[Path, bytes] = {}
        files = list(settings.files_of(devices, machine))
        self._open_files(files)
        self._before = settings.values_of(files, self._text_of) | groups.settings(devices, machine, self._text_of)

    def look(self, at_s: float) -> None:
        """Read each file once; cheap where nothing has changed."""
        if self._read() != self._texts:
            self._compare(at_s)
            self._close_files()
            # Opened anew: a change of the scheduler replaces the files of its parameters.
            self._open_files(settings.files_of(self._devices, self._machine))

    def close(self) -> None:
        """Close the files; no looks after this."""
        self._close_files()

    def _compare(self, at_s: float) -> None:
        changes = {one.name: one for one in changed(self._before, self._now())}
        for name in [name for name in self._open if name not in changes]:
            change, since_s = self._open.pop(name)
            self.seen.append(
                TemporaryChange(name=name, before=change.before, during=change.after, from_s=since_s, to_s=at_s)
            )
        for name, change in changes.items():
            if len(self.seen) + len(self._open) < MOST_CHANGES:
                self._open.setdefault(name, (change, at_s))

    def _now(self) -> dict[str, str]:
        return settings.settings_of(self._devices, self._machine)

    def _open_files(self, files: Iterable[tuple[str, Path]]) -> None:
        paths = [*groups.files_of(self._machine), *(path for _, path in files)]
        for path in paths[:MOST_FILES]:
            with suppress(OSError):
                self._files[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self._texts = self._read()

    def _read(self) -> dict[Path, bytes]:
        return {path: _text(file) for path, file in self._files.items()}

    def _text_of(self, path: Path) -> str | None:
        """The text of a file, which is read already if it is watched and not long."""
        seen = self._texts.get(path)
        return seen.decode(errors="replace") if seen is not None and len(seen) < LONGEST_BYTES else text_of(path)

    def _close_files(self) -> None:
        while self._files:
            os.close(self._files.popitem()[1])


def _text(file: int) -> bytes:
    """The content; empty where the file cannot be read, as of a device that has gone."""
    try:
        return os.pread(file, LONGEST_BYTES, 0)
    except OSError:
        return b""
