"""A real loop device's queue, and virtual memory, read straight from the kernel's files."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path


class Queue:
    """The queue of a device, by its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = Path("/sys/block") / name / "queue"

    def __getitem__(self, name: str) -> str:
        text = (self.folder / name).read_text().strip()
        found = re.search(r"\[(\S+)\]", text)
        return found[1] if found else text

    def __setitem__(self, name: str, value: str) -> None:
        (self.folder / name).write_text(value)

    def drop_elevator(self) -> None:
        """Its settings, and those that follow from it, go with it."""
        if (self.folder / "scheduler").exists() and self["scheduler"] != "none":
            self["scheduler"] = "none"

    def settings(self) -> dict[str, str]:
        """Values of the queue's own writable files."""
        return {path: value for path, value in self.values().items() if path.startswith(str(self.folder))}

    def put_back(self, before: dict[str, str]) -> None:
        """Write the settings that have changed."""
        self.drop_elevator()
        for path, value in before.items():
            if not path.endswith("/scheduler"):
                with suppress(OSError):
                    if Path(path).read_text() != value:
                        Path(path).write_text(value.strip())

    def values(self) -> dict[str, str]:
        """Values of all writable files, and of virtual memory."""
        files = [*self.folder.glob("*"), *self.folder.glob("iosched/*"), *Path("/proc/sys/vm").glob("*dirty*")]
        found = {}
        for path in (*files, Path("/proc/sys/vm/swappiness")):
            if path.is_file() and path.stat().st_mode & 0o222:
                with suppress(OSError):
                    found[str(path)] = path.read_text()
        return found
