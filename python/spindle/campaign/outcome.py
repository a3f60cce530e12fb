"""Results of a campaign so far: each cell's mean with its interval, also as a multiple of a reference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spindle.base.plain import Plain
from spindle.base.suggestions import meant
from spindle.campaign.cells import IGNORED, key_of
from spindle.campaign.hosts import on_hosts, stored_hosts
from spindle.campaign.plan import Plan
from spindle.campaign.source import read_plan
from spindle.run.errors import Usage
from spindle.stats import names
from spindle.stats.estimate import kind_of_mean, mean_of_trials, of_trials
from spindle.stats.metric import main_metrics, value, values
from spindle.stats.names import Metric, metric
from spindle.store import Campaign, Store, Trial


@dataclass(frozen=True, kw_only=True)
class CellOutcome(Plain):
    """The result of one combination."""

    cell: Mapping[str, str]
    done: int
    planned: int
    """Trials still to run."""
    given_up: int
    attempts: int
    values: tuple[float, ...]
    """Values of the metric, in order of time."""
    mean: float | None
    """Geometric if every value is above 0."""
    low: float | None
    high: float | None
    """Upper end of the confidence interval; None: fewer than two trials."""
    multiple: float | None
    """Multiple of the reference cell's mean."""
    reasons: tuple[str, ...]
    """Reasons of failed or invalid attempts."""

    @property
    def levels(self) -> list[str]:
        """Its levels in the order of the plan."""
        return list(self.cell.values())


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The results of a campaign."""

    campaign: Campaign
    about: str
    factors: Mapping[str, list[str]]
    """Factor -> its levels, in the order of the plan."""
    metric: Metric | None
    """None: there is no result yet."""
    confidence: float
    relative_to: Mapping[str, str]
    cells: Sequence[CellOutcome]

    @property
    def means(self) -> str:
        """Kind of the cells' means: `geometric means`."""
        return kind_of_mean(*(one.values for one in self.cells))

    @property
    def done(self) -> int:
        """Number of finished trials."""
        return sum(one.done for one in self.cells)

    @property
    def planned(self) -> int:
        """Number of trials still to run."""
        return sum(one.planned for one in self.cells)

    @property
    def given_up(self) -> int:
        """Number of trials given up."""
        return sum(one.given_up for one in self.cells)

    def to_dict(self) -> dict[str, Any]:
        """The outcome as plain data."""
        campaign = self.campaign
        return {
            "campaign": campaign.name,
            "id": campaign.id,
            "about": self.about,
            "state": campaign.state,
            "created": campaign.created,
            "factors": dict(self.factors),
            "metric": self.metric.name if self.metric is not None else None,
            "unit": self.metric.unit if self.metric is not None else None,
            "confidence": self.confidence,
            "means": self.means,
            "relative_to": dict(self.relative_to),
            "done": self.done,
            "planned": self.planned,
            "given_up": self.given_up,
            "cells": [one.to_dict() for one in self.cells],
        }


def plan_of(campaign: Campaign) -> Plan:
    """The plan as it was begun. Raises Usage."""
    try:
        detail = campaign.detail
        plan = read_plan(campaign.plan, detail["source"], detail["plan"], detail["assignments"])
        return on_hosts(plan, stored_hosts(detail))
    except (KeyError, TypeError):
        raise Usage(
            f"campaign {campaign.name}: was not made by `spindle campaign run`; its plan cannot be read"
        ) from None


def outcome_of(campaign: Campaign, store: Store, metric_name: str | None = None) -> Outcome:
    """Read every result. Raises Usage for a missing metric."""
    plan = plan_of(campaign)
    trials = store.campaigns.trials(campaign.name)
    found, name = _values(store, trials, metric_name or plan.trials.metric)
    attempts = store.campaigns.attempts(campaign.name)
    reasons: dict[int, list[str]] = {}
    for attempt in attempts:
        if attempt.reason:
            reasons.setdefault(attempt.trial, []).append(f"{attempt.state}: {attempt.reason}")
    cells: dict[str, list[Trial]] = {}
    for trial in sorted(trials, key=lambda one: _rank(plan, one.cell)):
        cells.setdefault(key_of(trial.cell), []).append(trial)
    means = {key: _mean([found[one.number] for one in rows if one.number in found]) for key, rows in cells.items()}
    return Outcome(
        campaign=campaign,
        about=plan.about,
        factors={factor.name: factor.labels for factor in plan.all_factors},
        metric=metric(name) if name is not None else None,
        confidence=plan.trials.confidence,
        relative_to=plan.trials.relative_to,
        cells=[_cell(plan, rows, found, means, reasons) for rows in cells.values()],
    )


def _rank(plan: Plan, cell: Mapping[str, str]) -> tuple[int, ...]:
    return tuple(
        factor.labels.index(cell[factor.name]) if cell[factor.name] != IGNORED else -1 for factor in plan.all_factors
    )


def _values(store: Store, trials: Sequence[Trial], name: str | None) -> tuple[dict[int, float], str | None]:
    """Trial -> value, and the metric."""
    found: dict[int, float] = {}
    known: set[str] = set()
    done = [one for one in trials if one.state == "done" and one.run_id is not None]
    for trial in done:
        assert trial.run_id is not None
        record = store.record(trial.run_id)
        if name is None:
            there = values(record)
            name = main_metrics(list(there), there)[0]
        number = value(record, name)
        if number is not None:
            found[trial.number] = number
        else:
            known |= set(values(record))
    if done and not found:
        they_have = f"they have {', '.join(sorted(known))}"
        hint = they_have if names.known(str(name)) else meant(str(name), known, they_have)
        raise Usage(f"metric {name}: the results do not have it; {hint}")
    return found, name


def _mean(numbers: Sequence[float]) -> float | None:
    return mean_of_trials(numbers) if numbers else None


def _cell(
    plan: Plan,
    rows: Sequence[Trial],
    found: Mapping[int, float],
    means: Mapping[str, float | None],
    reasons: Mapping[int, list[str]],
) -> CellOutcome:
    numbers = [found[one.number] for one in rows if one.number in found]
    known = of_trials(numbers, plan.trials.confidence) if numbers else None
    bounds = known is not None and known.n > 1 and math.isfinite(known.high)
    mean = means[key_of(rows[0].cell)]
    base = _reference(plan, rows[0].cell, means)
    return CellOutcome(
        cell={factor.name: rows[0].cell[factor.name] for factor in plan.all_factors},
        done=sum(one.state == "done" for one in rows),
        planned=sum(one.state in ("planned", "running") for one in rows),
        given_up=sum(one.state in ("failed", "invalid") for one in rows),
        attempts=sum(one.attempts for one in rows),
        values=tuple(numbers),
        mean=mean,
        low=known.low if known is not None and bounds else None,
        high=known.high if known is not None and bounds else None,
        multiple=mean / base if mean is not None and base else None,
        reasons=tuple(reason for one in rows for reason in reasons.get(one.number, [])),
    )


def _reference(plan: Plan, cell: Mapping[str, str], means: Mapping[str, float | None]) -> float | None:
    """The mean of the cell with the reference's levels and otherwise this one's levels."""
    wanted = plan.trials.relative_to
    if not wanted:
        return None
    like = {**cell, **wanted}
    ignored = {
        name
        for factor in plan.factors
        for level in factor.levels
        if level.label == like[factor.name]
        for name in level.ignores
    }
    return means.get(key_of({name: IGNORED if name in ignored else label for name, label in like.items()}))
