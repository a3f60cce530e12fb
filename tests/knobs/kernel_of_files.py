"""A kernel made of files, which clamps, refuses and resets as the real one does."""

from __future__ import annotations

import errno
import re
from pathlib import Path

from spindle.host.devices import Machine
from spindle.knobs.files import Files

ELEVATORS = ("none", "mq-deadline", "kyber", "bfq")
DEFAULTS = {
    "none": {},
    "mq-deadline": {"read_expire": "500", "write_expire": "5000", "fifo_batch": "16", "async_depth": "256"},
    "kyber": {"read_lat_nsec": "2000000", "write_lat_nsec": "10000000"},
    "bfq": {"slice_idle": "8", "slice_idle_us": "8000", "low_latency": "1"},
}
QUEUE = {
    "scheduler": "[none] mq-deadline kyber bfq",
    "nr_requests": "128",
    "wbt_lat_usec": "2000",
    "read_ahead_kb": "128",
    "max_sectors_kb": "1280",
    "nomerges": "0",
    "write_cache": "write back",
    "io_poll": "0",
    "rotational": "1",
    "iostats": "1",
}
LIMITS = ("max_sectors_kb", "write_cache", "rotational", "iostats")
"""Each write to one of these works out the read-ahead anew; it never makes it smaller."""
VM = {
    "dirty_ratio": "20",
    "dirty_bytes": "0",
    "dirty_background_ratio": "10",
    "dirty_background_bytes": "0",
    "swappiness": "60",
    "min_free_kbytes": "67584",
}


class Killed(BaseException):
    """The process ends here, as by kill -9: no clean-up runs."""


class FakeKernel(Files):
    """Side effects measured on Linux 6.18; `fuse` counts the writes and reads until the process dies."""

    def __init__(self, root: Path) -> None:
        self.machine = Machine(sys=root / "sys", proc=root / "proc", dev=root / "dev")
        self.writes: list[tuple[str, str]] = []
        self.fuse: int | None = None
        for name, text in VM.items():
            self._lay(self.machine.proc / "sys/vm" / name, text)
        self._lay(self.machine.proc / "meminfo", "MemTotal:       16000000 kB")
        self.add("sdx", "8:16")

    def add(self, name: str, number: str, *, diskseq: str | None = "7", serial: str | None = "S1") -> Path:
        place = self.machine.sys / "devices/virtual/block" / name
        for file, text in {"dev": number, "size": "2048", **{f"queue/{k}": v for k, v in QUEUE.items()}}.items():
            self._lay(place / file, text)
        self.identify(name, diskseq=diskseq, serial=serial)
        for folder, link in (("class/block", name), ("dev/block", number)):
            (self.machine.sys / folder).mkdir(parents=True, exist_ok=True)
            (self.machine.sys / folder / link).symlink_to(place)
        return place

    def identify(self, name: str, *, diskseq: str | None, serial: str | None) -> None:
        place = self.machine.sys / "devices/virtual/block" / name
        for file, text in (("diskseq", diskseq), ("device/serial", serial)):
            if text is not None:
                self._lay(place / file, text)
            else:
                (place / file).unlink(missing_ok=True)

    @staticmethod
    def _lay(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def state(self) -> dict[str, str]:
        """All values."""
        roots = (self.machine.sys / "devices", self.machine.proc / "sys")
        return {str(p): p.read_text() for root in roots for p in sorted(root.rglob("*")) if p.is_file()}

    def _burn(self) -> None:
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                raise Killed

    def read(self, path: Path) -> str | None:
        self._burn()
        return super().read(path)

    def write(self, path: Path, text: str) -> None:
        self._burn()
        self.writes.append((path.name, text))
        self.other_program_writes(path, text)
        self._burn()

    def other_program_writes(self, path: Path, text: str) -> None:
        """Apply the effects of a write by any program."""
        match path.name:
            case "scheduler":
                self._switch(path, text)
            case "nr_requests":
                if int(text) > 256:
                    raise OSError(errno.EINVAL, "Invalid argument")
                value = str(max(4, int(text)))
                self._lay(path, value)
                if (depth := path.parent / "iosched/async_depth").exists():
                    self._lay(depth, value)
            case "read_ahead_kb":
                self._lay(path, str(int(text) // 4 * 4))
            case "io_poll":
                pass  # "writes to the poll attribute are ignored"
            case "slice_idle":
                self._lay(path, text)
                self._lay(path.with_name("slice_idle_us"), str(int(text) * 1000))
            case "slice_idle_us":
                self._lay(path, text)
                self._lay(path.with_name("slice_idle"), str(int(text) // 1000))
            case "dirty_bytes" | "dirty_background_bytes" if int(text) == 0:
                raise OSError(errno.EINVAL, "Invalid argument")
            case name if found := re.fullmatch(r"(dirty|dirty_background)_(ratio|bytes)", name):
                changed = path.read_text().strip() != text
                self._lay(path, text)
                if changed or found[1] == "dirty_background":
                    other = "bytes" if found[2] == "ratio" else "ratio"
                    self._lay(path.with_name(f"{found[1]}_{other}"), "0")
            case _:
                self._lay(path, text)
        if path.name in LIMITS:
            queue = path.parent
            held = {
                name: (queue / name).read_text().strip() for name in ("read_ahead_kb", "max_sectors_kb", "rotational")
            }
            twice = 2 * int(held["max_sectors_kb"]) if held["rotational"] == "1" else 0
            self._lay(queue / "read_ahead_kb", str(max(int(held["read_ahead_kb"]), twice, 128)))

    def _switch(self, path: Path, text: str) -> None:
        if text not in ELEVATORS:
            raise OSError(errno.EINVAL, "Invalid argument")
        if f"[{text}]" in path.read_text():
            return
        self._lay(path, " ".join(f"[{one}]" if one == text else one for one in ELEVATORS))
        folder = path.parent / "iosched"
        for old in folder.glob("*"):
            old.unlink()
        for name, value in DEFAULTS[text].items():
            self._lay(folder / name, value)
        self._lay(path.parent / "nr_requests", "128" if text == "none" else "256")
        self._lay(path.parent / "wbt_lat_usec", "0" if text == "bfq" else "2000")

    def queue(self, name: str, device: str = "sdx") -> Path:
        return self.machine.sys / "devices/virtual/block" / device / "queue" / name

    def vm(self, name: str) -> Path:
        return self.machine.proc / "sys/vm" / name
