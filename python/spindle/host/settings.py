"""The settings in force: of a device and all devices below, of virtual memory, of the CPUs. Read only."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from . import groups, queue_files
from .devices import HERE, Device, Machine, names_in, text_of, whole

QUEUE = queue_files.NAMES
"""Files of `queue/`."""

DEVICE = ("queue_depth", "queue_type", "ncq_prio_enable", "cache_type")
"""Files of `device/` (SCSI)."""

MD = (
    "level",
    "layout",
    "chunk_size",
    "raid_disks",
    "degraded",
    "stripe_cache_size",
    "group_thread_cnt",
    "preread_bypass_threshold",
    "skip_copy",
    "consistency_policy",
    "sync_speed_min",
    "sync_speed_max",
    "bitmap/location",
    "bitmap/chunksize",
    "safe_mode_delay",
)
"""Files of `md/` (md(4)). `sync_action` is a state, not a setting."""

OTHER = (
    "cache_type",  # virtio
    "loop/dio",
    "loop/offset",
    "loop/sizelimit",
    "comp_algorithm",  # zram
    "disksize",
    "mem_limit",
    "dm/uuid",
    "alignment_offset",
    "ro",
)

VM = (
    "dirty_ratio",
    "dirty_bytes",
    "dirty_background_ratio",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
    "swappiness",
    "page-cluster",
    "min_free_kbytes",
    "vfs_cache_pressure",
    "laptop_mode",
)
"""Files of /proc/sys/vm (Documentation/admin-guide/sysctl/vm.rst)."""


def settings_of(devices: Collection[Device], machine: Machine = HERE) -> dict[str, str]:
    """All settings in force: 'sda.scheduler', 'md0.md.chunk_size', 'vm.dirty_ratio', 'cpu0.governor',
    'cgroup.io.rbps:/group:sda'."""
    return values_of(files_of(devices, machine)) | groups.settings(devices, machine)


def values_of(files: Iterable[tuple[str, Path]], read: Callable[[Path], str | None] = text_of) -> dict[str, str]:
    """The settings that have files of their own; `read` returns the text of a file, None without it."""
    return {name: chosen(value.strip()) for name, path in files if (value := read(path)) is not None and value.strip()}


def files_of(devices: Iterable[Device], machine: Machine = HERE) -> Iterator[tuple[str, Path]]:
    """(name, file) of each setting with a file of its own; some files may not exist."""
    for device in devices:
        yield from _of_device(whole(device))
        if device.partition is not None:
            for name in ("start", "alignment_offset", "ro"):
                yield f"{device.name}.{name}", device.sysfs / name
    yield from _of_kernel(machine)
    yield from _governor_files(machine)


@lru_cache(maxsize=8)
def _of_kernel(machine: Machine) -> tuple[tuple[str, Path], ...]:
    memory = [(f"vm.{name}", machine.proc / "sys/vm" / name) for name in VM]
    raid = [(f"raid.{name}", machine.proc / "sys/dev/raid" / name) for name in ("speed_limit_min", "speed_limit_max")]
    return (*memory, *raid)


def _of_device(device: Device) -> Iterator[tuple[str, Path]]:
    for folder, names, prefix in (("queue", QUEUE, ""), ("device", DEVICE, ""), ("md", MD, "md."), ("", OTHER, "")):
        for name in names:
            yield f"{device.name}.{prefix}{name.replace('/', '.')}", device.sysfs / folder / name
    for parameter in _files(device.sysfs / "queue/iosched"):
        yield f"{device.name}.iosched.{parameter.name}", parameter


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file())
    except OSError:
        return []


def chosen(value: str) -> str:
    """The selected word of a list such as 'none [mq-deadline] kyber'."""
    found = re.search(r"(?:^|\s)\[([^\]]+)\](?:\s|$)", value)
    return found[1] if found else value


def governors(machine: Machine = HERE) -> dict[str, str]:
    """Frequency governor of each CPU that has one."""
    return {name: value.strip() for name, path in _governor_files(machine) if (value := text_of(path)) is not None}


def _governor_files(machine: Machine) -> Iterator[tuple[str, Path]]:
    for folder in cpu_folders(machine):
        if (path := folder / "cpufreq/scaling_governor").exists():
            yield f"{folder.name}.governor", path


def cpu_folders(machine: Machine = HERE) -> list[Path]:
    """The folder of each CPU in sysfs."""
    folder = machine.sys / "devices/system/cpu"
    return [folder / name for name in names_in(folder) if name.startswith("cpu") and name[3:4].isdigit()]
