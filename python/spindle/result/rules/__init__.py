"""The verdicts: each rule looks at a finished record and says whether a figure can be believed, with its evidence.

A rule is a function from the record to verdicts. None is loosened by a flag; docs/verdicts.md names every limit and
why.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from spindle.result.figures import COMMAND
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

RULES: tuple[Rule, ...] = (
    completeness.interrupted,
    completeness.errors,
    verification.verified,
    conditions.target_changed,
    completeness.long_enough,
    completeness.late,
    cache.cache_share,
    cache.discards,
    cache.working_set,
    cache.sample_size,
    consistency.littles_law,
    steadiness.steady,
    limits.group_limits,
    load.generator_bound,
    load.saturated,
    load.achieved_depth,
    load.on_time,
    starved.starved,
    traffic.other_io,
    log.whole_log,
    conditions.preconditioned,
    conditions.settings_changed,
    conditions.before_the_run,
    conditions.during_the_run,
    conditions.quiet_machine,
)
"""In the order in which a person should read them."""


MODELLED: tuple[Rule, ...] = (
    completeness.interrupted,
    completeness.errors,
    completeness.long_enough,
    cache.working_set,
    consistency.littles_law,
    steadiness.steady,
    load.saturated,
    load.achieved_depth,
    load.on_time,
    starved.starved,
    conditions.during_the_run,
)
"""Those that make sense on a modelled machine: nothing else runs there, and nothing is cached unseen."""


NAMES: tuple[Rule, ...] = (
    completeness.interrupted,
    completeness.errors,
    conditions.target_changed,
    names.enough,
    completeness.late,
    names.in_memory,
    consistency.littles_law,
    limits.group_limits,
    load.generator_bound,
    load.on_time,
    log.whole_log,
    conditions.settings_changed,
    conditions.before_the_run,
    conditions.during_the_run,
    conditions.quiet_machine,
)
"""Those that make sense where names are worked on: bytes moved and requests outstanding at the device tell nothing."""


BESIDE_A_LOAD: tuple[Rule, ...] = (
    limits.group_limits,
    conditions.settings_changed,
    conditions.before_the_run,
    conditions.during_the_run,
    conditions.quiet_machine,
)
"""Those on the machine, where the load is a program of its own whose figures are not known."""


def judge(record: RunRecord) -> list[Verdict]:
    """Every verdict on this run."""
    if record.figures.generator.engine == COMMAND:
        served = [verdict for verdict in record.verdicts if verdict.check == "load"]  # told by who watched it
        return [*served, *(verdict for rule in BESIDE_A_LOAD for verdict in rule(record))]
    if not record.target.traits.does_io:
        return [*completeness.null_target(record), *log.whole_log(record)]
    if record.target.traits.is_modelled:
        return [verdict for rule in MODELLED for verdict in rule(record)]
    if any(stream.names is not None for stream in record.workload.streams):
        return [verdict for rule in NAMES for verdict in rule(record)]
    return [verdict for rule in RULES for verdict in rule(record)]


def judged(record: RunRecord) -> RunRecord:
    """The same record with its verdicts."""
    return replace(record, verdicts=judge(record))


__all__ = ["RULES", "Level", "judge", "judged"]
