"""`spindle.compare`: alternatives against each other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from spindle.library.arguments import public
from spindle.library.options import between, several
from spindle.library.result import Result, Sweep
from spindle.library.shown import Printable
from spindle.library.stores import Selection, Store
from spindle.library.table import Table, html_table
from spindle.result.record import Level, Record
from spindle.run.errors import RunFailed, Usage
from spindle.stats.compare import common_metrics
from spindle.stats.metric import values
from spindle.stats.study import Study, study
from spindle.stats.trial import Side, Trial, valid
from spindle.store import SelectedRecord, in_memory, needs_store, open_store, select
from spindle.store import Store as Stored
from spindle.store.selection import parse

if TYPE_CHECKING:
    from spindle.library.plot import Plot
    from spindle.report.terminal.style import Style

FEW = 3
"""Results that are read in full, to learn which metrics exist."""

Alternative = str | os.PathLike[str] | Selection | Result | Sweep | Sequence[Result]


class Comparison(Printable):
    """Differences between alternatives, with their intervals. A notebook shows it as a table."""

    def __init__(self, study: Study, selections: Sequence[Selection]) -> None:
        self.study = study
        """All that was found: findings, ranking, effects of factors, distributions."""
        self._selections = selections

    @property
    def notes(self) -> list[str]:
        """Remarks: runs that were left out, trials that do not fit each other."""
        return self.study.comparison.notes

    @property
    def differences(self) -> Table:
        """A row for each metric and each alternative after the first.

        Columns: `metric`, `a`, `b` (labels), `mean_a`, `mean_b` (units of the metric), `change` (relative: 0.1 is 10 %
        more; absolute if `is_relative` is False), `low`, `high` (interval of the change; None: not known), `p`,
        `significant` (1 or 0).
        """
        found = [finding.difference for finding in self.study.comparison.findings]
        names = ("metric", "a", "b", "mean_a", "mean_b", "change", "low", "high", "p")
        columns: dict[str, list[Any]] = {name: [getattr(each, name) for each in found] for name in names}
        columns["is_relative"] = [int(each.relative) for each in found]
        columns["significant"] = [int(each.significant) for each in found]
        return Table(columns)

    def to_json(self) -> bytes:
        """As `Printable`."""
        from spindle.report.terminal.compare import encode

        return encode(self.study).encode()

    def report(self, path: str | os.PathLike[str], *, title: str | None = None, force: bool = False) -> None:
        """Write a report of all its results; the ending of the name is its format: .html, .md, .csv, .txt ..."""
        from spindle.library.report import report

        report(*self._selections, path=path, title=title, force=force)

    def plot(self) -> Plot:
        """The charts of a report of all its results."""
        from spindle.library.report import plot

        return plot(*self._selections)

    def page(self, style: Style) -> list[str]:
        """As `Printable`."""
        from spindle.report.terminal.compare import page

        return list(page(self.study, style))

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.study.comparison.sides)}>"

    def _repr_html_(self) -> str:
        from html import escape

        from spindle.report.terminal.compare import amount

        rows = [
            (
                row["metric"],
                f"{row['a']} - {row['b']}",
                amount(row["mean_a"], row["metric"]),
                amount(row["mean_b"], row["metric"]),
                _shown(row["change"], row["is_relative"]),
                _interval(row),
                "yes" if row["significant"] else "no",
            )
            for row in self.differences
        ]
        heads = ("metric", "alternatives", "first", "other", "change", "interval", "significant")
        words = "".join(f"<p>{escape(finding.words)}</p>" for finding in self.study.comparison.findings)
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<div>{html_table(heads, rows)}{words}{f'<ul>{notes}</ul>' if notes else ''}</div>"


@public
def compare(
    *alternatives: Alternative,
    store: Store | str | os.PathLike[str] | None = None,
    metrics: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    percentiles: bool = False,
    confidence: float = 0.95,
    apart: float = 0.05,
    power: float = 0.9,
    across_time: bool = False,
    with_invalid: bool = False,
) -> Comparison:
    """Compare each alternative with the first.

    An alternative is a selection of a store (`store["tag:old"]`), its text (`"tag:old"`, then `store` says which one),
    a file, a `Result`, or a list of them. A campaign alone is compared within itself; `by` takes some of its factors.
    `metrics`: names of `spindle metrics`; without them the few that matter most. `confidence`: of all statements
    together, 0.95 is 95 %. `apart`: a relative difference; the number of trials that finds it with probability `power`
    is computed. `percentiles`: compare whole distributions of latency as well. `across_time`: the machine is
    assumed to have been the same all the time. `with_invalid`: count runs whose verdict is invalid.

    Raises `spindle.Error`, among others if the results cannot be compared.
    """
    between(confidence, "`confidence=`", 0.5, 1)
    between(apart, "`apart=`", 0, 10)
    between(power, "`power=`", 0, 1)
    with selected(alternatives, store) as selections:
        found = studied(
            selections,
            several(metrics),
            by=several(by),
            percentiles=percentiles,
            confidence=confidence,
            apart=apart,
            power=power,
            across_time=across_time,
            with_invalid=with_invalid,
        )
    return Comparison(found, selections)


def studied(
    selections: Sequence[Selection],
    metrics: Sequence[str],
    *,
    by: Sequence[str] = (),
    percentiles: bool = False,
    confidence: float = 0.95,
    apart: float = 0.05,
    power: float = 0.9,
    across_time: bool = False,
    with_invalid: bool = False,
) -> Study:
    """Compare selections; one alone is a campaign whose cells are compared. Raises errors of one line each."""
    if not selections:
        raise Usage("nothing to compare; name two alternatives, or a campaign")
    sides = sides_of(selections, metrics)
    troubled = trouble(selections, sides)
    if len(sides) == 1:
        sides = cells_of(sides[0], by, plan_levels(selections[0]))
        if len(sides) == 1:
            raise Usage(f"{selections[0].text}: there is only one alternative; name another to compare it with")
    elif by:
        raise Usage("`by=`: separates the trials of one campaign; give one selection, or leave it out")
    kept, notes = believable(sides, with_invalid)
    return study(
        kept,
        metrics,
        confidence=confidence,
        apart=apart,
        power=power,
        across_time=across_time,
        percentiles=percentiles,
        cells=len(selections) == 1,
        notes=[*troubled, *notes],
    )


def selection_of(given: Alternative, store: Stored | None = None) -> Selection:
    """An alternative as a selection. Raises errors of one line each."""
    match given:
        case Selection():
            return given
        case Result():
            return Selection(given.id, in_memory([given.record]), None)
        case Sweep():
            return selection_of(given.result)
        case str() | os.PathLike():
            text = os.fspath(given)
            return Selection(text, select(store, text), store if needs_store(text) else None)
        case _:
            return _of_results(given)


def _of_results(given: Sequence[Result]) -> Selection:
    """Several results as one alternative. Raises `Usage`."""
    if not given:
        raise Usage("an alternative is empty; give at least one result of each")
    label = given[0].id + (f" and {len(given) - 1} more" if len(given) > 1 else "")
    return Selection(label, in_memory([each.record for each in given]), None)


@contextmanager
def selected(
    alternatives: Sequence[Alternative], store: Store | str | os.PathLike[str] | None = None
) -> Iterator[list[Selection]]:
    """The alternatives as selections. A store that only their texts need is opened, and closed again at the end."""
    if isinstance(store, Store):
        yield [selection_of(each, store.raw) for each in alternatives]
        return
    if not any(isinstance(each, str | os.PathLike) and needs_store(os.fspath(each)) for each in alternatives):
        yield [selection_of(each) for each in alternatives]
        return
    with open_store(store, read_only=True) as opened:
        selections = [selection_of(each, opened) for each in alternatives]
        yield selections
        for selection in selections:
            selection.keep()


def sides_of(selections: Sequence[Selection], metrics: Sequence[str]) -> list[Side]:
    """A side for each selection, with the metrics that are asked for or matter most.

    Only these numbers are read of results in a store, and all numbers of a few, so that thousands take no time.
    """
    labels = _labels([selection.text for selection in selections])
    few = [Side(label, _trials(each[:FEW], None)) for label, each in zip(labels, selections, strict=True)]
    wanted = list(metrics) or common_metrics(few)
    return [
        Side(side.label, [*side.trials, *_trials(each[FEW:], wanted)])
        for side, each in zip(few, selections, strict=True)
    ]


def metrics_of(selection: Selection, names: Sequence[str] | None = None) -> list[dict[str, float]]:
    """Metrics (None: all) of each result; a store answers without reading the records."""
    if not selection.selected:
        return []
    if selection.store is None:
        return [values(each.record) for each in selection.selected]
    return selection.store.metrics(selection.selected, names)


def _trials(selection: Selection, names: Sequence[str] | None) -> list[Trial]:
    """Return the runs of a selection with these metrics (None: all)."""
    return [
        Trial(
            id=each.run_id,
            values=found,
            workload=each.workload,
            target=each.target,
            campaign=each.campaign,
            block=each.block,
            cell=each.cell,
            order=(each.started, each.position),
            level=each.level,
            load=partial(_record, each),
        )
        for each, found in zip(selection.selected, metrics_of(selection, names), strict=True)
    ]


def _record(selected: SelectedRecord) -> Record:
    return selected.record


def _labels(texts: Sequence[str]) -> list[str]:
    """Selections without their common beginning (`campaign:NAME/`, a folder), as far as they stay different."""
    parts = [text.split("/") for text in texts]
    same = next((at for at, names in enumerate(zip(*parts, strict=False)) if len(set(names)) > 1), 0)
    short = ["/".join(names[same:]) for names in parts]
    return short if len(set(short)) == len(texts) > 1 else list(texts)


def cells_of(side: Side, by: Sequence[str] = (), first: Mapping[str, Sequence[str]] | None = None) -> list[Side]:
    """The cells of a campaign as sides of their own; `by`: separated by these factors alone.

    They are in the order of the plan's levels (`first`: factor -> levels), so that the one all others are compared with
    is the plan's, not the one that ran first; without a plan in order of appearance.
    """
    factors = list(dict.fromkeys(factor for trial in side.trials for factor in trial.cell))
    if unknown := [factor for factor in by if factor not in factors]:
        raise Usage(
            f"`by=` {unknown[0]}: {side.label} has no such factor; "
            + (f"its factors are {', '.join(factors)}" if factors else "its runs are not from a campaign")
        )
    varied = list(by) or [factor for factor in factors if len({trial.cell.get(factor) for trial in side.trials}) > 1]
    cells: dict[str, list[Trial]] = {}
    for trial in side.trials:
        cells.setdefault(",".join(f"{factor}={trial.cell.get(factor, '-')}" for factor in varied), []).append(trial)
    levels = first or {}

    def place(trials: Sequence[Trial]) -> list[int]:
        own = [(levels.get(factor, []), trials[0].cell.get(factor, "-")) for factor in varied]
        return [list(known).index(level) if level in known else -1 for known, level in own]

    return [Side(label, trials) for label, trials in sorted(cells.items(), key=lambda item: place(item[1]))]


def plan_levels(selection: Selection) -> dict[str, list[str]]:
    """Return factor -> levels, the plan's baseline first; empty if the selection is not a campaign with a plan."""
    from spindle.campaign.outcome import plan_of

    if selection.store is None or (asked := parse(selection.text)).kind != "campaign":
        return {}
    try:
        plan = plan_of(selection.store.campaigns.get(asked.name))
    except Usage:  # not from `campaign run`
        return {}
    base = plan.design.baseline
    return {each.name: sorted(each.labels, key=lambda label: label != base.get(each.name)) for each in plan.all_factors}


def trouble(selections: Sequence[Selection], sides: Sequence[Side]) -> list[str]:
    """Return a line for each selection with trials that were given up, repeated, or have warnings."""
    lines = []
    for selection, side in zip(selections, sides, strict=True):
        parts = _of_campaign(selection)
        warned = sum(trial.level is Level.WARN for trial in side.trials)
        parts += [f"{warned} with warnings"] if warned else []
        if parts:
            whole = f"{len(side.trials)} trial{'s' if len(side.trials) != 1 else ''} done"
            lines.append(f"{side.label}: {whole}, {', '.join(parts)}.")
    return lines


def _of_campaign(selection: Selection) -> list[str]:
    if selection.store is None or (asked := parse(selection.text)).kind != "campaign":
        return []
    trials = [
        trial
        for trial in selection.store.campaigns.trials(asked.name)
        if all(trial.cell.get(factor) == level for factor, level in asked.levels)
    ]
    given_up = sum(trial.state in ("failed", "invalid") for trial in trials)
    again = sum(trial.attempts > 1 for trial in trials)
    return [*([f"{given_up} given up"] if given_up else []), *([f"{again} made again"] if again else [])]


def believable(sides: Sequence[Side], with_invalid: bool) -> tuple[list[Side], list[str]]:
    """The sides without invalid runs, and a line about those left out. Raises RunFailed if a side has none left."""
    if with_invalid:
        return list(sides), []
    kept = [valid(side) for side in sides]
    lines = []
    for side, left in zip(sides, kept, strict=True):
        if not left.trials:
            raise RunFailed(
                f"{side.label}: all of its {len(side.trials)} runs have the verdict invalid; `spindle show` gives the "
                "reasons, `with_invalid=` includes them"
            )
        if missing := len(side.trials) - len(left.trials):
            lines.append(
                f"{missing} of {len(side.trials)} runs of {side.label} left out: their verdict is invalid "
                "(`with_invalid=` includes them)."
            )
    return kept, lines


def _shown(change: float, is_relative: int) -> str:
    from spindle.base.numbers import as_change, plain

    return as_change(change) if is_relative else plain(change)


def _interval(row: Mapping[str, Any]) -> str:
    if row["low"] is None or row["high"] is None:
        return "unknown"
    return f"{_shown(row['low'], row['is_relative'])} to {_shown(row['high'], row['is_relative'])}"
