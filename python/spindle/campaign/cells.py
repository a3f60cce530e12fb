"""Combinations of levels: those that the plan asks for, and the settings of each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar, cast

from spindle import _core
from spindle.campaign.pairwise import covering
from spindle.campaign.plan import HOST, FactorLevel, Kind, Plan, Settings
from spindle.run.errors import Usage

T = TypeVar("T")

MOST_CELLS = 10_000
IGNORED = "-"
"""Label of a factor that has no effect in a cell."""


@dataclass(frozen=True)
class Cell:
    """One combination."""

    number: int
    """Number from 0, in the order of the plan."""
    levels: Mapping[str, str]
    """Factor -> label, in the order of the plan."""
    settings: Settings

    @property
    def key(self) -> str:
        """`scheduler=bfq,size=4KiB`, as in a selection of the store."""
        return key_of(self.levels)

    @property
    def without_host(self) -> str:
        """The key that the cells of all hosts share."""
        return key_of({name: label for name, label in self.levels.items() if name != HOST})

    @property
    def label(self) -> str:
        """`bfq`, the level alone if one factor is varied; else as `key`."""
        return next(iter(self.levels.values())) if len(self.levels) == 1 else self.key

    def __str__(self) -> str:
        return ", ".join(f"{name} {label}" for name, label in self.levels.items() if label != IGNORED) or "all alike"


def key_of(levels: Mapping[str, str]) -> str:
    """Name of a cell within its campaign, independent of the order of the factors."""
    return ",".join(f"{name}={label}" for name, label in sorted(levels.items()))


def cells_of(plan: Plan) -> list[Cell]:
    """The cells of a plan. Raises Usage if there are none, or too many."""
    found: dict[str, Mapping[str, str]] = {}
    for labels in _combinations(plan):
        levels = _without_ignored(plan, labels)
        found.setdefault(key_of(levels), levels)
    if not found:
        raise Usage(f"{plan.source}: no combination is left: `exclude` removes all")
    settings = [(levels, _settings(plan, levels)) for levels in found.values()]
    if plan.hosts:
        settings = [({**levels, HOST: one.name}, always) for levels, always in settings for one in plan.hosts]
    return [Cell(number, levels, always) for number, (levels, always) in enumerate(settings)]


def cell_of(plan: Plan, labels: Mapping[str, str]) -> Cell:
    """One cell by its levels, that of a search. Factors without effect may be `IGNORED`."""
    given = {
        factor.name: labels[factor.name] if labels[factor.name] != IGNORED else factor.labels[0]
        for factor in plan.factors
    }
    levels = _without_ignored(plan, given)
    return Cell(0, levels, _settings(plan, levels))


def start_of(plan: Plan) -> dict[str, str]:
    """The baseline: factor -> label, the first level where the plan names none."""
    return {factor.name: factor.labels[0] for factor in plan.factors} | dict(plan.design.baseline)


def is_allowed(plan: Plan, labels: Mapping[str, str]) -> bool:
    """True if no exclusion of the plan applies."""
    return _Exclusions(plan)(labels)


def _combinations(plan: Plan) -> Iterator[dict[str, str]]:
    names = [factor.name for factor in plan.factors]
    allowed = _Exclusions(plan)
    first = start_of(plan)
    match plan.design.kind:
        case Kind.LIST:
            for cell in plan.design.cells:
                yield {**first, **cell}
        case Kind.ONE_AT_A_TIME | Kind.SEARCH:  # of a search: these have every level, so all are checked beforehand
            if not allowed(first):
                raise Usage(f"{plan.source}: design.baseline: the baseline itself is excluded; choose another")
            yield first
            for factor in plan.factors:
                for label in factor.labels:
                    if label != first[factor.name] and allowed(one := {**first, factor.name: label}):
                        yield from _with_effect(plan, one, factor.name) if plan.search is not None else [one]
        case Kind.FULL:
            number = math.prod(len(factor.levels) for factor in plan.factors)
            if number > 100 * MOST_CELLS:
                raise Usage(_too_many(plan, number))
            count = 0
            for labels in product(*(factor.labels for factor in plan.factors)):
                one = dict(zip(names, labels, strict=True))
                if allowed(one):
                    count += 1
                    if count > MOST_CELLS:
                        raise Usage(_too_many(plan, number))
                    yield one
        case Kind.PAIRWISE:
            rows = covering([factor.labels for factor in plan.factors], _allowed_rows(plan), plan.seed)
            for row in rows:
                yield dict(zip(names, row, strict=True))


def _with_effect(plan: Plan, labels: Mapping[str, str], factor: str) -> Iterator[dict[str, str]]:
    """The combination; where its factor has no effect, with the first levels of another one where it has."""
    if _without_ignored(plan, labels)[factor] != IGNORED:
        yield dict(labels)
        return
    for other in plan.factors:
        for label in other.labels:
            one = {**labels, other.name: label}
            if _without_ignored(plan, one)[factor] != IGNORED and _Exclusions(plan)(one):
                yield one
                return


def _too_many(plan: Plan, number: int) -> str:
    return (
        f"{plan.source}: {number} combinations, more than {MOST_CELLS}; "
        'write kind = "pairwise" in [design], or fewer levels'
    )


class _Exclusions:
    """True unless an exclusion applies. In a partial combination, missing levels exclude nothing."""

    def __init__(self, plan: Plan) -> None:
        self._exclude = plan.design.exclude

    def __call__(self, labels: Mapping[str, str]) -> bool:
        return not any(
            all(name in labels and labels[name] in taken for name, taken in one.items()) for one in self._exclude
        )


def _allowed_rows(plan: Plan) -> _Rows:
    return _Rows([factor.name for factor in plan.factors], _Exclusions(plan))


@dataclass(frozen=True)
class _Rows:
    names: Sequence[str]
    allowed: _Exclusions

    def __call__(self, row: Sequence[str | None]) -> bool:
        return self.allowed({name: one for name, one in zip(self.names, row, strict=True) if one is not None})


# --- settings of a cell ----------------------------------------------------------------------------------------


def _without_ignored(plan: Plan, labels: Mapping[str, str]) -> dict[str, str]:
    ignored = {name for factor in plan.factors for name in _level(plan, factor.name, labels).ignores}
    return {name: IGNORED if name in ignored else label for name, label in labels.items()}


def _level(plan: Plan, factor: str, labels: Mapping[str, str]) -> FactorLevel:
    return next(level for level in plan.factor(factor).levels if level.label == labels[factor])


def _settings(plan: Plan, levels: Mapping[str, str]) -> Settings:
    found = plan.always
    for name, label in levels.items():
        if label != IGNORED:
            found = found.under(_level(plan, name, levels).settings)
    return _filled(found, levels, plan)


_PLACE = re.compile(r"\{([A-Za-z0-9][A-Za-z0-9_.-]*)(?:\s*\*\s*([0-9]{1,9}))?\}")


def _filled(settings: Settings, levels: Mapping[str, str], plan: Plan) -> Settings:
    """Fill in levels: `{chunk}` is the level of the factor `chunk`, `{chunk*3}` three times that size in bytes."""

    def fill(text: str) -> str:
        return _PLACE.sub(lambda found: _place(found, levels, plan), text)

    def filled(values: Mapping[str, T]) -> dict[str, T]:
        return {name: _deep(value, fill) for name, value in values.items()}

    def of(text: str | None) -> str | None:
        return fill(text) if text is not None else None

    return Settings(
        target=of(settings.target),
        workload=of(settings.workload),
        options=filled(settings.options),
        knobs=filled(settings.knobs),
        kernel=settings.kernel,
        machine=filled(settings.machine),
        filesystem=filled(settings.filesystem),
        create=of(settings.create),
        setup=_deep(settings.setup, fill),
        teardown=_deep(settings.teardown, fill),
        load=filled(settings.load),
    )


def _deep(value: T, fill: Callable[[str], str]) -> T:
    """Fill in texts, in lists as well."""
    if isinstance(value, str):
        return cast(T, fill(value))
    if isinstance(value, list | tuple):
        return cast(T, type(value)(_deep(one, fill) for one in value))
    return value


def _place(found: re.Match[str], levels: Mapping[str, str], plan: Plan) -> str:
    name, times = found[1], found[2]
    if name not in levels:
        return found[0]  # `{target}` and the like are filled in by the trial
    label = levels[name]
    if times is None:
        return label
    try:
        return str(_core.parse_size(label) * int(times))
    except _core.ConfigError as error:
        raise Usage(f"{plan.source}: {found[0]}: {label!r} is not a size ({error})") from None
