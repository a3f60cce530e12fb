"""A write-back cache on one device. See docs/reference/doctor."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from spindle.base.commands import shell
from spindle.inspect.model import Device

from ..finding import Finding, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..stack import Stack

ORIGIN, CACHE = {"cache": 2, "writecache": 0}, {"cache": 1, "writecache": 1}
"""Index of each device in a table (Documentation/admin-guide/device-mapper/cache.rst, writecache.rst)."""


def _check(case: RuleInput) -> Results:
    for device in case.stack.inventory.devices:
        for cache, origin, words, step in (*_bcache(case.stack, device), *_dm(case.stack, device)):
            if case.stack.redundant(cache):
                continue
            kept = case.stack.redundant(origin)
            yield Finding(
                rule=RULE.name,
                object=device.id,
                severity=Severity.CRITICAL,
                summary=f"{device.id} keeps writes on {cache.id} alone",
                evidence=f"{words} on {cache.id}"
                + (f", over {origin.id}, which has redundancy" if kept else f", over {origin.id}"),
                why="In write-back mode a write completes when it is in the cache. Data not yet written back, "
                "including metadata of the file system, is nowhere else.",
                effect=f"If {cache.id} fails or wears out, {device.id} is lost with it"
                + (", despite the redundancy below." if kept else "."),
                steps=[step],
            )


CacheSetup = Iterator[tuple[Device, Device, str, Step]]
"""The cache device, the cached device, the evidence, and the remedy."""


def _bcache(stack: Stack, device: Device) -> CacheSetup:
    found = device.bcache
    if found is None or found.cache_mode != "writeback":
        return
    origin = next((one for name in device.below if name not in found.caches and (one := stack.device(name))), device)
    for name in found.caches:
        cache = stack.device(name)
        if cache is not None:
            dirty = f", {found.dirty} not yet written back" if found.dirty else ""
            yield (
                cache,
                origin,
                f"bcache writeback{dirty}",
                Step(
                    phase=Phase.PROTECT,
                    about=f"write through until the cache has redundancy (then mirror it and switch back); {device.id}",
                    commands=[f"echo writethrough > {quote(f'/sys/block/{device.id}/bcache/cache_mode')}"],
                ),
            )


def _dm(stack: Stack, device: Device) -> CacheSetup:
    for segment in device.dm.segments if device.dm is not None else []:
        through = {"writethrough", "passthrough"} & set(segment.options)
        areas = [area.device for area in segment.areas]
        if segment.target not in CACHE or through or len(areas) <= max(ORIGIN[segment.target], CACHE[segment.target]):
            continue
        cache, origin = stack.device(areas[CACHE[segment.target]]), stack.device(areas[ORIGIN[segment.target]])
        if cache is not None and origin is not None:
            words = "dm-writecache" if segment.target == "writecache" else "dm-cache writeback"
            yield cache, origin, words, _lvm(device, segment.target)


def _lvm(device: Device, target: str) -> Step:
    dm = device.dm
    if dm is None or dm.volume_group is None or dm.logical_volume is None:
        about = f"mirror the cache of {device.id}, or set it up as write through"
        return Step(phase=Phase.PROTECT, act=StepEffect.MEND, about=about)
    name = f"{dm.volume_group}/{dm.logical_volume}"
    if target == "writecache":
        about, words = "remove the cache: its content is written back first", ["lvconvert", "--splitcache", name]
    else:
        about, words = "write through until the cache is a mirror", ["lvchange", "--cachemode", "writethrough", name]
    return Step(phase=Phase.PROTECT, act=StepEffect.METADATA, about=f"{about} ({device.id})", commands=[shell(*words)])


RULE = Rule(
    "cache-redundancy",
    "A write-back cache has the redundancy of the data it caches.",
    _check,
    ("bcache.cache_mode", "bcache.caches", "dm.segments"),
)
