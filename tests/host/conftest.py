"""A machine made of files: sysfs and procfs trees that tests lay out."""

from __future__ import annotations

from pathlib import Path

import pytest

from spindle.host.devices import Machine


class FakeSys:
    """Lays out block devices as sysfs does: real folders under devices/, links from class/block and dev/block."""

    def __init__(self, root: Path) -> None:
        self.machine = Machine(sys=root / "sys", proc=root / "proc")
        for folder in ("sys/class/block", "sys/dev/block", "sys/devices/virtual/block", "proc/self"):
            (root / folder).mkdir(parents=True)
        self.file(self.machine.proc / "self/mountinfo", "")

    @staticmethod
    def file(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def device(self, name: str, number: str, *, size: int, disk: str | None = None, dm: str | None = None) -> Path:
        """`size` in sectors; a partition names its disk."""
        base = self.machine.sys / "devices/virtual/block"
        place = base / disk / name if disk else base / name
        self.file(place / "dev", number)
        self.file(place / "size", str(size))
        (place / "holders").mkdir()
        if disk:
            self.file(place / "partition", name.removeprefix(disk).lstrip("p"))
        else:
            (place / "slaves").mkdir()
        if dm:
            self.file(place / "dm/name", dm)
        (self.machine.sys / "class/block" / name).symlink_to(place)
        (self.machine.sys / "dev/block" / number).symlink_to(place)
        return place

    def link(self, upper: str, lower: str) -> None:
        """`upper` is built of `lower`."""
        block = self.machine.sys / "class/block"
        above, below = (block / upper).resolve(), (block / lower).resolve()
        (above / "slaves" / lower).symlink_to(below)
        (below / "holders" / upper).symlink_to(above)

    def proc(self, name: str, text: str) -> None:
        self.file(self.machine.proc / name, text)


@pytest.fixture
def fake_sys(tmp_path: Path) -> FakeSys:
    return FakeSys(tmp_path / "machine")
