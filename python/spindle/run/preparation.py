"""What is done before a run: dirty pages written out, caches dropped, the machine looked at, and refused if it must be
quiet and is not."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import overload

from msgspec.structs import replace

from spindle.host import conditions, syncing
from spindle.host.caches import may_drop_caches
from spindle.host.devices import Device
from spindle.host.guard import OpenTarget
from spindle.host.quiet import Quiet, quieting
from spindle.host.stack import below, devices_under
from spindle.result.record import QuickRecord, Quieted, Record, RunRecord
from spindle.result.rules import judged
from spindle.result.rules.conditions import ADVICE
from spindle.run.errors import RunFailed
from spindle.run.watch import Watch


@dataclass(frozen=True)
class Care:
    """How much is done for a quiet machine."""

    strict: bool = False
    """Refuse to run when a condition is bad."""
    sync_machine: bool = False
    """Write out all that is dirty, not only on the target's own devices."""
    drop_caches: bool = False
    """Drop everything that the page cache can let go, not only the target's own pages."""
    wait_idle_s: float = 0.0
    """Wait up to so long for the machine to become idle."""
    quiet_machine: bool = False
    """Pause checks of arrays, switch off swap, and have the CPUs at full clock meanwhile."""


AS_IT_IS = Care()
WINDOW_S = 1.0
"""For how long the machine is looked at before a run."""


class NotQuiet(RunFailed):
    """The machine must be quiet, and is not."""


def check_rights(care: Care) -> None:
    """Before a test file is written. Raises `RunFailed`."""
    if care.drop_caches and not may_drop_caches():
        raise RunFailed(
            "`drop_caches=`: only root may drop the whole page cache; try as root, or leave it out: the pages of the "
            "target itself are dropped anyway"
        )


def write_out(target: OpenTarget, devices: Sequence[Device], care: Care) -> list[str]:
    """Everything dirty on the target's devices, or on the machine. The mount points that were written out."""
    if care.sync_machine:
        os.sync()
    return syncing.sync_stack(target.files[0].fd, devices)


@dataclass(frozen=True)
class Looked:
    """The check before the run."""

    idle: conditions.Idle
    waited_s: float


@dataclass(frozen=True)
class Calm:
    """How quiet the machine was to be, and what was changed for it."""

    care: Care = AS_IT_IS
    quiet: Quiet = field(default_factory=Quiet)

    @property
    def quieted(self) -> list[Quieted]:
        """For the record."""
        return [Quieted(**asdict(change)) for change in self.quiet.changes]

    @overload
    def outcome_in(self, record: QuickRecord) -> QuickRecord: ...
    @overload
    def outcome_in(self, record: Record) -> Record: ...
    def outcome_in(self, record: Record) -> Record:
        """The record with what became of the changes in the end."""
        if isinstance(record, RunRecord):
            return self._in_run(record)
        return replace(record, runs=[self._in_run(run) for run in record.runs])

    def _in_run(self, run: RunRecord) -> RunRecord:
        if not self.quiet.changes:
            return run
        return judged(replace(run, prepared=replace(run.prepared, quieted=self.quieted)))


@contextmanager
def calm_machine(place: Path | None, care: Care, watch: Watch) -> Iterator[Calm]:
    """For the time of the `with`, quiet if asked for. Says what could not be put back."""
    if not care.quiet_machine:
        yield Calm(care)
        return
    watch.step("having the machine quiet")
    with quieting(devices_under_place(place) if place is not None else []) as quiet:
        yield Calm(care, quiet)
    for change in quiet.changes:
        if not change.put_back:
            watch.say(
                f"spindle: {change.name} is not {change.before} again: {change.why_not}; see `spindle knobs diff`"
            )


def look_at_place(place: Path, care: Care, watch: Watch) -> None:
    """Before a test file is written there, which takes its time: would the run be refused anyway?"""
    if not care.strict:
        return
    look(devices_under_place(place), care, watch)


def devices_under_place(place: Path) -> list[Device]:
    """Under a path that may not be there yet; none where it cannot be told: whoever opens it says what is wrong."""
    try:
        top = devices_under(place if place.exists() else place.absolute().parent)
    except OSError:
        return []
    return list({device.name: device for upper in top for device in (upper, *below(upper))}.values())


def look(
    devices: Sequence[Device],
    care: Care,
    watch: Watch,
    own: conditions.Own | None = None,
    window_s: float = WINDOW_S,
) -> Looked:
    """Is the machine idle, but for a load of its own processes? Waits for it if asked to. Raises `NotQuiet` after a
    line for each bad condition."""

    def check() -> conditions.Idle:
        return conditions.idle_check(devices) if own is None else conditions.idle_check(devices, window_s, own=own)

    watch.step("is the device idle?")
    start = time.monotonic()
    found = check()
    waited = 0.0
    while found.level != "ok" and (left := care.wait_idle_s - (time.monotonic() - start)) > 0:
        watch.step(f"waiting for an idle machine, {left:.0f} s more: {found.bad[0].text}")
        found = check()
        waited = time.monotonic() - start
    if care.strict and found.bad:
        for finding in found.bad:
            advice = ADVICE.get(finding.check, "")
            watch.say(f"spindle: {finding.text}{f'; {advice}' if advice else ''}")
        count = len(found.bad)
        raise NotQuiet(
            f"not measured: {count} condition{'s are' if count > 1 else ' is'} bad; mend "
            f"{'them' if count > 1 else 'it'}, wait for it (`wait_idle=`), or leave `strict=` out"
        )
    return Looked(found, waited)
