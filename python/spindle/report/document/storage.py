"""Storage under a run, from its record: a modelled machine's file, a real array's settings."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spindle import _core
from spindle.result.record import RunRecord

_MD_RAID5 = {"0": "left-asymmetric", "1": "right-asymmetric", "2": "left-symmetric", "3": "right-symmetric"}
_DEFAULT_LAYOUT = {"raid5": "left-symmetric", "raid6": "left-symmetric", "raid10": "n2"}
_DEFAULT_CHUNK = 512 << 10
"""mdadm's."""
STRIPED = ("raid0", "raid4", "raid5", "raid6", "raid10")
"""Levels that have chunks."""


@dataclass(frozen=True)
class Array:
    """An md array."""

    level: str
    layout: str
    """Name of mdadm: `f2`, `left-symmetric`; empty if the level has none."""
    chunk: int | None
    """Bytes; None if the level has none."""
    drives: int

    @property
    def name(self) -> str:
        """`raid10 f2`, `raid0`."""
        return f"{self.level} {self.layout}".strip()


def machine_file(run: RunRecord) -> Mapping[str, Any]:
    """Return the file of a modelled machine as tables; empty for real storage."""
    text = run.target.detail.get("machine") if run.target.traits.is_modelled else None
    if not isinstance(text, str):
        return {}
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


def array_of(run: RunRecord) -> Array | None:
    """Return the array under a run; None: there is none, or it is unknown."""
    if run.target.traits.is_modelled:
        return _modelled(run)
    return _real(run)


def drives_of(run: RunRecord) -> list[str]:
    """Return the models of the drives of a modelled machine."""
    listed = run.target.detail.get("drives") if run.target.traits.is_modelled else None
    return [str(drive) for drive in listed] if isinstance(listed, list) else []


def scheduler_of(run: RunRecord) -> str | None:
    """Return the elevator of the target."""
    if run.target.traits.is_modelled:
        names = sorted({str(name) for name in run.target.detail.get("schedulers") or []})
        return "+".join(names) or None
    return setting_of(run, "scheduler")


def setting_of(run: RunRecord, name: str) -> str | None:
    """Return a setting of the device under test."""
    counters = next((device for device in run.devices if device.role == "target"), None)
    return run.settings.before.get(f"{counters.name}.{name}") if counters is not None else None


def _modelled(run: RunRecord) -> Array | None:
    found = machine_file(run).get("array")
    if not isinstance(found, dict) or not isinstance(found.get("level"), str):
        return None
    level = found["level"]
    chunk = None
    if level in STRIPED:
        chunk = _DEFAULT_CHUNK
        if isinstance(found.get("chunk"), str):
            try:
                chunk = _core.parse_size(found["chunk"])
            except _core.ConfigError:
                return None
    layout = str(found.get("layout") or _DEFAULT_LAYOUT.get(level, ""))
    return Array(level, layout, chunk, len(drives_of(run)))


def _real(run: RunRecord) -> Array | None:
    before = run.settings.before
    counters = next((device for device in run.devices if device.role == "target"), None)
    names = [counters.name] if counters is not None else []
    names += sorted(name.removesuffix(".md.level") for name in before if name.endswith(".md.level"))
    name = next((name for name in names if f"{name}.md.level" in before), None)
    if name is None:
        return None
    level = before[f"{name}.md.level"]
    chunk = before.get(f"{name}.md.chunk_size", "")
    drives = before.get(f"{name}.md.raid_disks", "")
    return Array(
        level,
        _layout_words(level, before.get(f"{name}.md.layout", "")),
        int(chunk) if level in STRIPED and chunk.isdecimal() else None,
        int(drives) if drives.isdecimal() else 0,
    )


def _layout_words(level: str, number: str) -> str:
    """Return mdadm's name of the kernel's layout number (md(4))."""
    if level in ("raid5", "raid6"):
        return _MD_RAID5.get(number, number)
    if level == "raid10" and number.isdecimal():
        near, far = int(number) & 0xFF, int(number) >> 8 & 0xFF
        if far > 1:
            return f"{'o' if int(number) & 1 << 16 else 'f'}{far}"
        return f"n{near}"
    return ""
