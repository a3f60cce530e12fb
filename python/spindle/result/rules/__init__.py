"""The verdicts: each rule reads a finished record and says, with evidence, how reliable its figures are.

A rule is a function from the record to verdicts. No option loosens one. Limits: docs/reference/verdicts.md.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Flag, auto

from msgspec.structs import replace

from spindle.result.figures_properties import COMMAND
from spindle.result.record import Level, RunRecord, Verdict
from spindle.result.rules import (
    cache,
    completeness,
    conditions,
    consistency,
    limits,
    load,
    log,
    names,
    starved,
    steadiness,
    traffic,
    verification,
)

Rule = Callable[[RunRecord], list[Verdict]]


class RunKinds(Flag):
    """The kinds of runs that a rule applies to."""

    DATA = auto()
    """Data on storage of this machine."""
    NAMES = auto()
    """Metadata operations: bytes moved and requests at the device mean nothing."""
    COMMAND = auto()
    """The load is a separate program, whose figures are unknown."""
    MODEL = auto()
    """A modelled machine: no other load, and a page cache whose traffic is known."""
    KERNEL = auto()
    """A modelled machine under the real kernel: its caches and settings count, and no other load."""
    NULL = auto()
    """Nothing is stored: the figures are those of the load generator."""
    THIS_MACHINE = DATA | NAMES | COMMAND


DATA, NAMES, MODEL, NULL = RunKinds.DATA, RunKinds.NAMES, RunKinds.MODEL, RunKinds.NULL
KERNEL = RunKinds.KERNEL
THIS_MACHINE = RunKinds.THIS_MACHINE

RULES: tuple[tuple[Rule, RunKinds], ...] = (
    (completeness.null_target, NULL),
    (completeness.interrupted, DATA | NAMES | MODEL | KERNEL),
    (completeness.errors, DATA | NAMES | MODEL | KERNEL),
    (verification.verified, DATA | KERNEL),
    (conditions.target_changed, DATA | NAMES),
    (completeness.long_enough, DATA | MODEL | KERNEL),
    (names.enough, NAMES),
    (completeness.late, DATA | NAMES),
    (cache.cache_share, DATA | KERNEL),
    (cache.modelled_cache_share, MODEL),
    (names.in_memory, NAMES),
    (cache.discards, DATA | KERNEL),
    (cache.working_set, DATA | MODEL | KERNEL),
    (cache.sample_size, DATA | KERNEL),
    (consistency.littles_law, DATA | NAMES | MODEL | KERNEL),
    (steadiness.steady, DATA | MODEL | KERNEL),
    (limits.group_limits, THIS_MACHINE),
    (load.generator_bound, DATA | NAMES),
    (load.saturated, DATA | MODEL | KERNEL),
    (load.achieved_depth, DATA | MODEL | KERNEL),
    (load.on_time, DATA | NAMES | MODEL | KERNEL),
    (starved.starved, DATA | MODEL | KERNEL),
    (traffic.other_io, DATA | KERNEL),
    (log.whole_log, DATA | NAMES | NULL),
    (conditions.preconditioned, DATA),
    (conditions.fresh_drive, MODEL | KERNEL),
    (conditions.settings_changed, THIS_MACHINE | KERNEL),
    (conditions.before_the_run, THIS_MACHINE),
    (conditions.during_the_run, THIS_MACHINE | MODEL | KERNEL),
    (conditions.quiet_machine, THIS_MACHINE),
)
"""In reading order."""


def ground_of(record: RunRecord) -> RunKinds:
    """The kind of a run."""
    if record.figures.generator.engine == COMMAND:
        return RunKinds.COMMAND
    if not record.target.traits.does_io:
        return RunKinds.NULL
    if record.target.traits.has_kernel:
        return RunKinds.KERNEL
    if record.target.traits.is_modelled:
        return RunKinds.MODEL
    return RunKinds.NAMES if any(stream.names is not None for stream in record.workload.streams) else RunKinds.DATA


def judge(record: RunRecord) -> list[Verdict]:
    """Every verdict on this run."""
    ground = ground_of(record)
    # The observer of a command has decided whether it used the device.
    watched = [verdict for verdict in record.verdicts if verdict.check == "load"] if ground is RunKinds.COMMAND else []
    return [*watched, *(verdict for rule, grounds in RULES if ground in grounds for verdict in rule(record))]


def judged(record: RunRecord) -> RunRecord:
    """The same record with its verdicts."""
    return replace(record, verdicts=judge(record))


__all__ = ["RULES", "Level", "RunKinds", "judge", "judged"]
