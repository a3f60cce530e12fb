"""dm-crypt's flags for `cryptsetup refresh`, which sets all at once: a flag that is not named is dropped."""

from __future__ import annotations

from collections.abc import Iterable

from spindle.base.commands import shell
from spindle.inspect.model import Device

FLAGS = {
    "allow_discards": "--allow-discards",
    "no_read_workqueue": "--perf-no_read_workqueue",
    "no_write_workqueue": "--perf-no_write_workqueue",
    "same_cpu_crypt": "--perf-same_cpu_crypt",
    "submit_from_crypt_cpus": "--perf-submit_from_crypt_cpus",
}
"""The kernel's name (dm-crypt.rst) -> the option of cryptsetup-refresh(8)."""


def refresh(device: Device, more: Iterable[str]) -> str:
    """The command that adds flags to the current ones, now and (LUKS2) permanently."""
    dm = device.dm
    now = {word for segment in (dm.segments if dm is not None else []) for word in segment.options}
    flags = [flag for word, flag in FLAGS.items() if word in now | set(more)]
    name = dm.name if dm is not None and dm.name else device.id
    return shell("cryptsetup", *flags, "--persistent", "refresh", name)
