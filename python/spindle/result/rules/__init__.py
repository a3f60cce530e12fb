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
    """A modelled machine: no other load and no hidden caches."""
    NULL = auto()
    """Nothing is stored: the figures are those of the load generator."""
    THIS_MACHINE = DATA | NAMES | COMMAND


DATA, NAMES, MODEL, NULL = RunKinds.DATA, RunKinds.NAMES, RunKinds.MODEL, RunKinds.NULL
THIS_MACHINE = RunKinds.THIS_MACHINE

RULES: tuple[tuple[Rule, RunKinds], ...] = (
    (completeness.null_target, NULL),
    (completeness.interrupted, DATA | NAMES | MODEL),
    (completeness.errors, DATA | NAMES | MODEL),
    (verification.verified, DATA),
    (conditions.target_changed, DATA | NAMES),
    (completeness.long_enough, DATA | MODEL),
    (names.enough, NAMES),
    (completeness.late, DATA | NAMES),
    (cache.cache_share, DATA),
    (names.in_memory, NAMES),
    (cache.discards, DATA),
    (cache.working_set, DATA | MODEL),
    (cache.sample_size, DATA),
    (consistency.littles_law, DATA | NAMES | MODEL),
    (steadiness.steady, DATA | MODEL),
    (limits.group_limits, THIS_MACHINE),
    (load.generator_bound, DATA | NAMES),
    (load.saturated, DATA | MODEL),
    (load.achieved_depth, DATA | MODEL),
    (load.on_time, DATA | NAMES | MODEL),
    (starved.starved, DATA | MODEL),
    (traffic.other_io, DATA),
    (log.whole_log, DATA | NAMES | NULL),
    (conditions.preconditioned, DATA),
    (conditions.settings_changed, THIS_MACHINE),
    (conditions.before_the_run, THIS_MACHINE),
    (conditions.during_the_run, THIS_MACHINE | MODEL),
    (conditions.quiet_machine, THIS_MACHINE),
)
"""In reading order."""


def ground_of(record: RunRecord) -> RunKinds:
    """The kind of a run."""
    if record.figures.generator.engine == COMMAND:
        return RunKinds.COMMAND
    if not record.target.traits.does_io:
        return RunKinds.NULL
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
