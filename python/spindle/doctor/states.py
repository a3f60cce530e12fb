"""States of the parts that a step touches, and the steps that do harm in each state.

A step on a part also touches all parts below it and all parts on the same drives: a check of one array reads drives on
which another is being rebuilt. Sources for md: Documentation/admin-guide/md.rst (array_state,
sync_action, dev-*/state), md(4); for dm-raid: Documentation/admin-guide/device-mapper/dm-raid.rst.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from spindle.inspect.model import Device, DmRaid, Drive, Md, Pool, Smart

from .finding import Finding, Step, StepEffect
from .stack import Stack


class State(StrEnum):
    """States in which a step may do harm."""

    INACTIVE = "is not running"
    FAILED = "has lost more members than it tolerates"
    READ_ONLY = "is read-only"
    DEGRADED = "is degraded"
    FAULTY_MEMBER = "has a faulty member"
    JOURNAL_FAILED = "has lost its journal"
    REBUILDING = "is being rebuilt"
    RESYNCING = "is being resynced"
    CHECKING = "is being checked"
    REPAIRING = "is being repaired"
    RESHAPING = "is being restructured"
    FROZEN = "is frozen"
    FAILING = "shows signs of failing"
    TESTING = "tests itself"
    OFFLINE = "is offline"
    DAMAGED = "has counted errors"
    UNKNOWN = "is in a state that is not known"


_GONE = {State.INACTIVE, State.FAILED, State.OFFLINE, State.UNKNOWN}
_WEAK = {State.DEGRADED, State.FAULTY_MEMBER, State.JOURNAL_FAILED}
_SICK = {State.FAILING, State.DAMAGED}
_BUSY = {
    State.REBUILDING,
    State.RESYNCING,
    State.CHECKING,
    State.REPAIRING,
    State.RESHAPING,
    State.FROZEN,
}

FORBIDS: dict[StepEffect, set[State]] = {
    StepEffect.LOOK: set(),
    StepEffect.MEND: set(),
    StepEffect.SAFEGUARD: {State.INACTIVE, State.FAILED, State.OFFLINE},
    StepEffect.PACE: _GONE | {State.FROZEN, State.JOURNAL_FAILED},
    StepEffect.SETTING: _GONE | _WEAK | _BUSY | _SICK,
    StepEffect.METADATA: _GONE | _WEAK | _BUSY | _SICK | {State.READ_ONLY},
    # A member that fails while every block is read destroys the redundancy; a self-test is disturbed by the load.
    StepEffect.READ_ALL: _GONE | _WEAK | _BUSY | {State.FAILING, State.READ_ONLY, State.TESTING},
    # A faulty member may have the only copy of data, once too many members are gone.
    StepEffect.DROP: _GONE | {State.JOURNAL_FAILED, State.FROZEN, State.RESHAPING},
    # A rebuild reads all other members completely: a failing one is copied first.
    StepEffect.ADD: _GONE | {State.JOURNAL_FAILED, State.FROZEN, State.RESHAPING, State.READ_ONLY, State.FAILING},
    # A new member would fill the missing place instead.
    StepEffect.REPLACE: _GONE | _BUSY | {State.DEGRADED, State.JOURNAL_FAILED, State.READ_ONLY},
    StepEffect.REWORK: _GONE | _WEAK | _BUSY | {State.FAILING},
}
"""States in which each act is forbidden."""

_ARRAY_STATES = {
    "inactive": State.INACTIVE,
    "broken": State.FAILED,
    "readonly": State.READ_ONLY,
    "read-auto": State.READ_ONLY,
    "suspended": State.FROZEN,
}
_WORKING = ("clean", "active", "write-pending", "active-idle", "clear")
_ACTIONS = {
    "recover": State.REBUILDING,
    "resync": State.RESYNCING,
    "check": State.CHECKING,
    "repair": State.REPAIRING,
    "reshape": State.RESHAPING,
    "frozen": State.FROZEN,
}
_RESTING = ("idle", "none")
UNIT_WELL = (
    "OK",
    "OPTL",
    "OPTIMAL",
    "ONLN",
    "ONLINE",
    "VERIFYING",
    "GHS",
    "DHS",
    "SPARE",
    "JBOD",
    "UGOOD",
    "UGUNSP",
    "UGSHLD",
)
"""Words of tw_cli and storcli for a working unit; VERIFYING is the regular check."""
UNIT_BUSY = {
    "REBUILDING": State.REBUILDING,
    "RBLD": State.REBUILDING,
    "RECOVERY": State.REBUILDING,
    "CPYBCK": State.REBUILDING,
    "REBUILD-PAUSED": State.REBUILDING,
    "INITIALIZING": State.RESYNCING,
    "INIT": State.RESYNCING,
    "MIGRATING": State.RESHAPING,
    "VERIFYING": State.CHECKING,
}
"""Their words for a unit with activity of its own."""
OFFLINE = ("offline", "transport-offline", "deleted")
"""From sdev_states in drivers/scsi/scsi_sysfs.c."""


def decide(stack: Stack, findings: Iterable[Finding]) -> None:
    """Add the states to wait for to each step that would do harm now."""
    known: dict[tuple[str, ...], list[tuple[str, State]]] = {}
    for found in findings:
        found.steps = [_decided(stack, step, tuple(step.on or [found.object]), known) for step in found.steps]


def _decided(
    stack: Stack, step: Step, on: tuple[str, ...], known: dict[tuple[str, ...], list[tuple[str, State]]]
) -> Step:
    if on not in known:
        known[on] = list(dict.fromkeys(_near(stack, on)))
    forbidden = FORBIDS[step.does]
    waits = [f"{name} {state}" for name, state in known[on] if state in forbidden]
    return msgspec.structs.replace(step, waits=waits) if waits else step


def _near(stack: Stack, on: Iterable[str]) -> Iterator[tuple[str, State]]:
    """States of all parts that share a drive with these parts."""
    names: set[str] = set()
    for name in on:
        names |= stack.around(name)
    dropped = {member.device for device in stack.seen() if device.md for member in device.md.members if _gone(member)}
    for device in stack.seen():
        if device.id in names:
            yield from ((device.id, state) for state in states(stack, device) if _counts(state, device, dropped))
    for pool in stack.inventory.pools:
        if names & set(pool.below) or pool.id in on:
            yield from ((pool.id, state) for state in _of_pool(pool))
    for found in stack.inventory.file_systems:
        if names & set(found.below):
            if "degraded" in found.super_options:
                yield found.id, State.DEGRADED
            if found.errors and found.id in on:  # its members cannot change that
                yield found.id, State.DAMAGED
            if found.exclusive_operation not in (None, "none"):
                yield found.id, State.RESHAPING


def _gone(member: object) -> bool:
    return "faulty" in getattr(member, "state", [])


def _counts(state: State, device: Device, dropped: set[str]) -> bool:
    """False for a failing drive that no array uses any more."""
    own = {device.id, *device.above}
    return not (state in (State.FAILING, State.OFFLINE) and own & dropped)


def states(stack: Stack, device: Device) -> Iterator[State]:
    """States of one device alone."""
    if device.md is not None:
        yield from _of_array(device.md)
    if device.dm is not None and any(segment.target == "raid" for segment in device.dm.segments):
        yield from _of_dm_raid(device.dm.raid)
    if device.drive is not None:
        yield from _of_drive(stack, device, device.drive)


def container(md: Md) -> bool:
    """True if it only contains the members of other arrays (IMSM, DDF): always `inactive`, with arrays named
    external:/md127/0 in it (Documentation/admin-guide/md.rst, metadata_version).
    """
    return bool(
        md.metadata and md.metadata.startswith("external:") and not md.metadata.startswith(("external:/", "external:-"))
    )


def _of_array(md: Md) -> Iterator[State]:
    if container(md):
        return
    if (state := _ARRAY_STATES.get(md.array_state or "")) is not None:
        yield state
    elif md.array_state not in _WORKING:
        yield State.UNKNOWN
    if md.level in ("raid0", "linear"):
        return
    if lost(md):
        yield State.FAILED
    if md.degraded is None:
        yield State.UNKNOWN
    elif md.degraded > 0:
        yield State.DEGRADED
    faulty = [member for member in md.members if {"faulty", "blocked"} & set(member.state)]
    if any("journal" not in member.state for member in faulty):
        yield State.FAULTY_MEMBER
    if journal_lost(md):
        yield State.JOURNAL_FAILED
    if (busy := _ACTIONS.get(md.sync_action or "")) is not None:
        yield busy
    elif md.sync_action not in _RESTING and md.array_state not in ("inactive", "clear"):
        yield State.UNKNOWN


def lost(md: Md) -> bool:
    """True if more members are missing than the level always tolerates. RAID10 tolerates at most the loss of all but
    one copy of each block; md itself then reports `broken` (since Linux 5.13).
    """
    missing = md.degraded or 0
    tolerated = {"raid1": (md.raid_disks or missing + 1) - 1, "raid6": 2, "raid4": 1, "raid5": 1}.get(md.level or "")
    if md.level == "raid10" and md.raid_disks and md.layout_number:
        copies = (md.layout_number & 0xFF) * (md.layout_number >> 8 & 0xFF)
        tolerated = md.raid_disks - -(-md.raid_disks // copies) if copies else None
    return md.array_state == "broken" or (tolerated is not None and missing > tolerated)


def journal_lost(md: Md) -> bool:
    """True if an array with a write journal has no working journal device."""
    journals = [member for member in md.members if "journal" in member.state]
    if md.consistency_policy != "journal" and not journals:
        return False
    return all("faulty" in member.state for member in journals)


def _of_pool(pool: Pool) -> Iterator[State]:
    if pool.state in ("SUSPENDED", "UNAVAIL", "FAULTED"):
        yield State.FAILED
    elif pool.state == "DEGRADED":
        yield State.DEGRADED
    elif pool.state != "ONLINE":
        yield State.UNKNOWN
    if pool.scanning is not None:
        yield State.REBUILDING if pool.scanning == "resilver" else State.CHECKING


def _of_dm_raid(raid: DmRaid | None) -> Iterator[State]:
    if raid is None:
        yield State.UNKNOWN
        return
    if set(raid.health) & set("D-"):
        yield State.DEGRADED
    if (busy := _ACTIONS.get(raid.sync_action)) is not None:
        yield busy
    elif raid.sync_action not in _RESTING:
        yield State.UNKNOWN


def _of_drive(stack: Stack, device: Device, drive: Drive) -> Iterator[State]:
    if drive.state in OFFLINE:
        yield State.OFFLINE
    if drive.smart is not None:
        if failing(drive.smart):
            yield State.FAILING
        if drive.smart.self_test_running:
            yield State.TESTING
    unit = stack.unit(device, drive)
    yield from _of_unit(unit.state if unit is not None else None, State.DEGRADED)
    for behind in stack.unit_drives(device, drive):
        yield from _of_unit(behind.state, State.FAILING)
        if behind.smart is not None and failing(behind.smart):
            yield State.FAILING


def _of_unit(word: str | None, otherwise: State) -> Iterator[State]:
    if word is not None and (busy := UNIT_BUSY.get(word.upper())) is not None:
        yield busy
    elif word is not None and word.upper() not in UNIT_WELL:
        yield otherwise


def failing(smart: Smart) -> bool:
    """True if the drive may fail during a full read."""
    return bool(
        smart.healthy is False
        or smart.failing
        or smart.critical_warning
        or any((count or 0) > 0 for count in (smart.pending, smart.uncorrectable, smart.media_errors))
    )
