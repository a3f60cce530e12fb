"""A machine file's array, queues and file system as the lab's first commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from spindle import _core
from spindle.base.decoding import decode_json

from .setup import KernelSetup, RebuildCommand

FOLDER = "/mnt"
"""Where the file system is mounted."""
BITMAP_S = 25
"""mdadm makes a write-intent bitmap with all bits set; md looks at them each 5 s, and the fourth time they are cleared
on the drives (`md_bitmap_daemon_work`)."""
_MKFS = {
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "ext4": ("mkfs.ext4", "-q", "-F"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}


class Setup(KernelSetup, frozen=True, kw_only=True):
    """The commands of a machine."""

    @property
    def device(self) -> str:
        """Name of the device under test: the array, or the only drive."""
        return "md0" if self.array is not None else self.drives[0].device

    @property
    def memory_mib(self) -> int:
        """Memory of the lab."""
        return self.memory_bytes >> 20

    def script(self) -> list[str]:
        """Commands that make it, in order. Each fails if the kernel does not take it."""
        return [*self._queues(), *self._assembly(), *self._file_system()]

    def again(self) -> list[str]:
        """Commands that find it again on drives where it was made, in order."""
        created = self.array.create if self.array is not None else []
        return [*self._queues(), *map(_assemble, created), *self._mounted()]

    def text(self) -> str:
        """The same for the shell (`in_order`). Only for the lab: this system may have drives of these names."""
        return in_order(self.script())

    def _queues(self) -> Iterator[str]:
        for name, value in self.vm.items():
            yield f"echo {value} >/proc/sys/vm/{name}"
        for drive in self.drives:
            queue = f"/sys/block/{drive.device}/queue"
            # md reads it when the array starts.
            yield f"echo {int(drive.rotational)} >{queue}/rotational"
            yield f"echo {drive.scheduler} >{queue}/scheduler"
            for name, value in drive.iosched.items():
                yield f"echo {value} >{queue}/iosched/{name}"
            # After the scheduler, which sets it again.
            if drive.nr_requests is not None:
                yield f"echo {drive.nr_requests} >{queue}/nr_requests"
            if drive.max_sectors_kib is not None:
                yield f"echo {drive.max_sectors_kib} >{queue}/max_sectors_kb"

    def _assembly(self) -> Iterator[str]:
        array = self.array
        if array is not None:
            yield from array.create
            groups = range(1, len(array.create)) or range(1)
            if array.stripe_cache_size is not None:
                for md in groups:
                    yield f"echo {array.stripe_cache_size} >/sys/block/md{md}/md/stripe_cache_size"
            if array.has_bitmap:
                yield f"sleep {BITMAP_S}"
            if array.rebuild is not None:
                yield from self._synchronisation(array.rebuild, groups)
        if self.read_ahead_kib is not None:
            yield f"echo {self.read_ahead_kib} >/sys/block/{self.device}/queue/read_ahead_kb"

    def _synchronisation(self, of: RebuildCommand, groups: range) -> Iterator[str]:
        """A rebuild of a member in its group, or a check of all groups."""
        slots = [at for at, drive in enumerate(self.drives) if drive.device == of.device]
        for md in [groups[slot * len(groups) // len(self.drives)] for slot in slots] or groups:
            attributes = f"/sys/block/md{md}/md"
            yield f"echo {of.max_kib} >{attributes}/sync_speed_max"
            yield f"echo {of.min_kib} >{attributes}/sync_speed_min"
            yield f"mdadm /dev/md{md} --add /dev/{of.device}" if of.device else f"echo check >{attributes}/sync_action"

    def _file_system(self) -> Iterator[str]:
        made = self.filesystem
        if made is not None:
            yield shlex.join([*_MKFS[made.kind], *made.mkfs, f"/dev/{self.device}"])
        yield from self._mounted()

    def _mounted(self) -> Iterator[str]:
        made = self.filesystem
        if made is not None:
            options = ["-o", made.mount] if made.mount else []
            yield shlex.join(["mount", "-t", made.kind, *options, f"/dev/{self.device}", FOLDER])


def _assemble(create: str) -> str:
    """The command that assembles what another one of mdadm created."""
    array, *members = (word for word in shlex.split(create) if word.startswith("/dev/"))
    return f"mdadm --assemble --run {array} {' '.join(members)}"


def in_order(commands: Iterable[str]) -> str:
    """Commands for the shell, which ends at the first that fails, with its message."""
    return "".join(f'said=$({{ {command}; }} 2>&1) || {{ echo "$said" >&2; exit 1; }}\n' for command in commands)


def setup_of(machine: _core.Machine) -> Setup:
    """The setup of a machine. Raises `_core.ConfigError`."""
    return decode_json(machine.kernel_setup(), Setup)
