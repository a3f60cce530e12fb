"""The plan of a search: a campaign's plan, as TOML that `spindle campaign run` reads too."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spindle.campaign.goal import limit_of, metric_of
from spindle.campaign.plan import Method
from spindle.run.errors import Usage
from spindle.stats.names import Direction, metric
from spindle.tune.space import AS_FOUND, Dimension


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The goal of a search, checked."""

    metric: str
    higher: bool
    also: tuple[str, ...] = ()
    """Further objectives: `minimise read.p99_ns`."""
    bounds: tuple[str, ...] = ()


def goal_of(maximise: Sequence[str], minimise: Sequence[str], bounds: Sequence[str]) -> Goal:
    """The goal of a search; several make a front. Raises Usage."""
    asked = [*((name, True) for name in maximise), *((name, False) for name in minimise)] or [("iops", True)]
    objectives = [(_objective(name, higher), higher) for name, higher in asked]
    if len({name for name, _ in objectives}) < len(objectives):
        raise Usage("`maximise=` and `minimise=`: a metric is named twice")
    for text in bounds:
        try:
            limit_of(text)
        except Usage as error:
            raise Usage(f"`bound=` {error}") from None
    (first, higher), *others = objectives
    also = tuple(f"{'maximise' if up else 'minimise'} {name}" for name, up in others)
    return Goal(metric=first, higher=higher, also=also, bounds=tuple(bounds))


def _objective(asked: str, higher: bool) -> str:
    try:
        name = metric_of(asked)
    except Usage as error:
        raise Usage(f"{'`maximise=`' if higher else '`minimise=`'} {error}") from None
    better = metric(name).better
    if better is not Direction.NEITHER and (better is Direction.HIGHER) != higher:
        raise Usage(f"{asked}: {better} is better; write `{'maximise' if better is Direction.HIGHER else 'minimise'}=`")
    return name


TRIALS, WITH_MODEL = 48, 16
"""Trials of a search."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How many trials."""

    trials: int | None = None
    """None: `TRIALS`, or `WITH_MODEL` where a model screens the settings."""
    confirm: int = 12
    method: Method = Method.GUIDED
    seed: int = 1


def plan_text(
    *,
    target: str,
    workload: str | None,
    load: str | None,
    kernel: bool,
    dimensions: Sequence[Dimension],
    goal: Goal,
    effort: Effort,
    machine: str | None,
) -> str:
    """The plan. `machine`: a model of the target. Raises Usage if there is nothing to move."""
    moved = [one for one in dimensions if one.moves]
    if not moved:
        raise Usage(f"{target}: there is no setting to move; `knob=` adds some, `space=` shows what there is")
    lines = [f"target = {_text(target)}"]
    lines += [f"workload = {_text(workload)}"] if workload is not None else []
    lines += ["kernel = true"] if kernel else []
    lines += [f"seed = {effort.seed}"]
    lines += ["", "[load]", f"command = {_text(load)}"] if load is not None else []
    for one in moved:
        lines += ["", f"[factors.{_text(one.name)}.levels]", *_levels(one, moved)]
    lines += ["", "[design]", 'kind = "search"', f"baseline = {_table({one.name: _label(one.start) for one in moved})}"]
    lines += ["", "[trials]", f"metric = {_text(goal.metric)}"]
    lines += ["", "[search]", f'goal = "{"maximise" if goal.higher else "minimise"}"']
    lines += [f"also = [{', '.join(map(_text, goal.also))}]"] if goal.also else []
    lines += [f"bounds = [{', '.join(map(_text, goal.bounds))}]"] if goal.bounds else []
    trials = effort.trials or (TRIALS if machine is None else WITH_MODEL)
    lines += [f'method = "{effort.method}"', f"trials = {trials}", f"screen = {max(2, trials // 4)}"]
    lines += [f"prior = {_text(machine)}"] if machine is not None else []
    lines += [f"confirm = {effort.confirm}"]
    return "\n".join(lines) + "\n"


def _levels(one: Dimension, moved: Sequence[Dimension]) -> list[str]:
    lines = []
    for level in one.levels:
        ignored = [
            other.name for other in moved if one.name in other.only_with and level not in other.only_with[one.name]
        ]
        parts = [_setting(one, level)] if level != AS_FOUND else []
        parts += [f"ignores = [{', '.join(map(_text, ignored))}]"] if ignored else []
        lines.append(f"{_text(_label(level))} = {{ {', '.join(parts)} }}")
    return lines


def _setting(one: Dimension, level: str) -> str:
    kind, _, path = one.sets.partition(".")
    is_number = kind == "machine" and level.isdigit()
    return f"{kind} = {{ {_text(path)} = {level if is_number else _text(level)} }}"


def _label(level: str) -> str:
    """A level without characters that selections of the store use."""
    return level.replace(",", ";").replace("=", ":")


def _table(values: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f"{_text(name)} = {_text(value)}" for name, value in values.items()) + " }"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
