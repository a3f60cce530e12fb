"""Preparation of a run: write out dirty pages, drop caches, check the machine, and refuse if it must be quiet and is
not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import overload

from msgspec.structs import replace

from spindle import conditions
from spindle.conditions.caches import may_drop_caches
from spindle.conditions.quiet import QuietLog, quieting
from spindle.host import syncing
from spindle.host.devices import Device
from spindle.host.guard import OpenTarget
from spindle.host.stack import below, devices_under
from spindle.result.record import QuickRecord, QuietSetting, Record, RunRecord
from spindle.result.rules import judged
from spindle.result.rules.conditions import ADVICE
from spindle.run.errors import RunFailed
from spindle.run.watch import Watch


@dataclass(frozen=True)
class PreflightOptions:
    """Options of the preflight checks and of the preparation."""

    strict: bool = False
    """Refuse to run if a condition is bad."""
    sync_machine: bool = False
    """Write out all dirty pages, not only those of the target's devices."""
    drop_caches: bool = False
    """Drop the whole page cache, not only the target's own pages."""
    wait_idle_s: float = 0.0
    """Longest wait for the machine to become idle."""
    quiet_machine: bool = False
    """Pause checks of arrays, switch off swap, and run the CPUs at full clock meanwhile."""


AS_IT_IS = PreflightOptions()
WINDOW_S = 1.0
"""Length of the check before a run."""


class NotQuiet(RunFailed):
    """The machine must be quiet, and is not."""


def check_rights(preflight_options: PreflightOptions) -> None:
    """Check rights before a test file is written. Raises `RunFailed`."""
    if preflight_options.drop_caches and not may_drop_caches():
        raise RunFailed(
            "`drop_caches=`: only root may drop the whole page cache; try as root, or leave it out: the pages of the "
            "target itself are dropped anyway"
        )


def write_out(target: OpenTarget, devices: Sequence[Device], preflight_options: PreflightOptions) -> list[str]:
    """Write out dirty pages of the target's devices, or of the machine. Returns the mount points."""
    if preflight_options.sync_machine:
        os.sync()
    return syncing.sync_stack(target.files[0].fd, devices)


@dataclass(frozen=True)
class Preflight:
    """The checks of the machine before a run."""

    idle: conditions.IdleCheck
    waited_s: float


@dataclass(frozen=True)
class QuietMachine:
    """The settings that were changed to make the machine quiet."""

    preflight_options: PreflightOptions = AS_IT_IS
    quiet: QuietLog = field(default_factory=QuietLog)

    @property
    def changed_settings(self) -> list[QuietSetting]:
        """The changed settings, for the record."""
        return self.quiet.changes

    @overload
    def outcome_in(self, record: QuickRecord) -> QuickRecord: ...
    @overload
    def outcome_in(self, record: Record) -> Record: ...
    def outcome_in(self, record: Record) -> Record:
        """The record with the final state of the changed settings."""
        if isinstance(record, RunRecord):
            return self._in_run(record)
        return replace(record, runs=[self._in_run(run) for run in record.runs])

    def _in_run(self, run: RunRecord) -> RunRecord:
        if not self.quiet.changes:
            return run
        return judged(replace(run, preparation=replace(run.preparation, changed_settings=self.changed_settings)))


@contextmanager
def calm_machine(place: Path | None, preflight_options: PreflightOptions, watch: Watch) -> Iterator[QuietMachine]:
    """Keep the machine quiet during the `with`, if requested. Warns about settings that could not be restored."""
    if not preflight_options.quiet_machine:
        yield QuietMachine(preflight_options)
        return
    watch.step("making the machine quiet")
    with quieting(devices_under_place(place) if place is not None else []) as quiet:
        yield QuietMachine(preflight_options, quiet)
    for change in quiet.changes:
        if not change.restored:
            watch.say(f"spindle: {change.name} is not {change.before} again: {change.reason}; see `spindle knobs diff`")


def look_at_place(place: Path, preflight_options: PreflightOptions, watch: Watch) -> None:
    """Check the machine before a test file is written there, as the run might be refused anyway."""
    if not preflight_options.strict:
        return
    look(devices_under_place(place), preflight_options, watch)


def devices_under_place(place: Path) -> list[Device]:
    """Devices under a path that may not exist yet; empty if unknown: opening it reports the problem."""
    try:
        top = devices_under(place if place.exists() else place.absolute().parent)
    except OSError:
        return []
    return list({device.name: device for upper in top for device in (upper, *below(upper))}.values())


def look(
    devices: Sequence[Device],
    preflight_options: PreflightOptions,
    watch: Watch,
    own: conditions.OwnLoad | None = None,
    window_s: float = WINDOW_S,
) -> Preflight:
    """Check that the machine is idle, apart from a load of its own processes. Waits for it if requested. Raises
    `NotQuiet` after a line for each bad condition.
    """

    def check() -> conditions.IdleCheck:
        return conditions.idle_check(devices) if own is None else conditions.idle_check(devices, window_s, own=own)

    watch.step("is the device idle?")
    start = time.monotonic()
    found = check()
    waited = 0.0
    while found.level != "ok" and (left := preflight_options.wait_idle_s - (time.monotonic() - start)) > 0:
        watch.step(f"waiting for an idle machine, {left:.0f} s more: {found.bad[0].text}")
        found = check()
        waited = time.monotonic() - start
    if preflight_options.strict and found.bad:
        for finding in found.bad:
            advice = ADVICE.get(finding.check, "")
            watch.say(f"spindle: {finding.text}{f'; {advice}' if advice else ''}")
        count = len(found.bad)
        raise NotQuiet(
            f"not measured: {count} condition{'s are' if count > 1 else ' is'} bad; mend "
            f"{'them' if count > 1 else 'it'}, wait for it (`wait_idle=`), or leave `strict=` out"
        )
    return Preflight(found, waited)
