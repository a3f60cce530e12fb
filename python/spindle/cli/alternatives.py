"""Selections as the sides of a comparison; options that the verbs which compare share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from spindle.result.record import Record
    from spindle.stats.trial import Side, Trial
    from spindle.store import Selected, Store

FEW = 3
"""Results of which every number is read, to know which there are."""


def share(low: float, high: float, *, inclusive: bool = False) -> Callable[..., float]:
    """Reads `5%`, `5 %` or `0.05` as 0.05, for an option's callback."""

    def read(_context: click.Context, _parameter: click.Parameter, text: str) -> float:
        number = text.strip()
        try:
            value = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
        except ValueError:
            value = float("nan")
        if not (low < value < high or (inclusive and value == low)):
            least = "from" if inclusive else "above"
            raise click.BadParameter(f"{text!r} is no share {least} {low:.0%} and below {high:.0%}; write 5% or 0.05")
        return value

    return read


def metric_names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Completes a name in the shell."""
    from spindle.stats.names import METRICS

    return [name for entry in METRICS for name in entry.names() if name.startswith(incomplete)]


def metric_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--metric`."""
    return click.option(
        "--metric",
        "metrics",
        multiple=True,
        metavar="NAME",
        shell_complete=metric_names,
        help="What to compare: iops, bytes_per_s, mean_ns, read.p99_ns, STREAM/write.iops, device.r_await ... "
        "(`spindle metrics` lists them). May be repeated. Without it: throughput and the p99 latency of reads and of "
        "writes.",
    )(command)


def across_time_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--across-time`."""
    return click.option(
        "--across-time",
        is_flag=True,
        help="Take the machine to have been the same all the time: compare runs made one after the other.",
    )(command)


def invalid_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--with-invalid`."""
    return click.option("--with-invalid", is_flag=True, help="Let runs count whose verdict is invalid.")(command)


@contextmanager
def opened(where: str | None, texts: Sequence[str]) -> Iterator[Store | None]:
    """The store, if one of the selections needs it."""
    from spindle.cli import storing
    from spindle.store import needs_store

    if not any(needs_store(text) for text in texts):
        yield None
        return
    with storing.opened(where, read_only=True) as store:
        yield store


def sides_of(store: Store | None, texts: Sequence[str], metrics: Sequence[str]) -> list[Side]:
    """A side for each selection, in their order, with the metrics that are asked for or tell most.

    Of results in the store only these numbers are read, and all numbers of a few, so that thousands take no time.
    """
    from spindle.stats.compare import common_metrics
    from spindle.stats.trial import Side
    from spindle.store import select

    chosen = [select(store, text) for text in texts]
    few = [Side(label, _trials(store, part[:FEW], None)) for label, part in zip(_labels(texts), chosen, strict=True)]
    wanted = list(metrics) or common_metrics(few)
    return [
        Side(side.label, [*side.trials, *_trials(store, part[FEW:], wanted)])
        for side, part in zip(few, chosen, strict=True)
    ]


def _trials(store: Store | None, chosen: Sequence[Selected], names: Sequence[str] | None) -> list[Trial]:
    """The runs of a selection with these metrics (None: all)."""
    from spindle.stats.metric import values
    from spindle.stats.trial import Trial

    if not chosen:
        return []
    numbers = [values(each.record) for each in chosen] if store is None else store.metrics(chosen, names)
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
        for each, found in zip(chosen, numbers, strict=True)
    ]


def _record(selected: Selected) -> Record:
    return selected.record


def _labels(texts: Sequence[str]) -> list[str]:
    """Selections without what all of them begin with (`campaign:NAME/`, a folder), as far as they stay apart."""
    parts = [text.split("/") for text in texts]
    same = next((at for at, names in enumerate(zip(*parts, strict=False)) if len(set(names)) > 1), 0)
    short = ["/".join(names[same:]) for names in parts]
    return short if len(set(short)) == len(texts) > 1 else list(texts)


def cells_of(side: Side, by: Sequence[str] = (), first: Mapping[str, Sequence[str]] | None = None) -> list[Side]:
    """The cells of a campaign as sides of their own; `by`: told apart by these alone. In the order of the plan's levels
    (`first`: factor -> levels), so that the one all others are compared with is the plan's, not whichever ran first;
    without a plan in order of appearance."""
    from spindle.run.errors import Usage
    from spindle.stats.trial import Side

    factors = list(dict.fromkeys(factor for trial in side.trials for factor in trial.cell))
    if unknown := [factor for factor in by if factor not in factors]:
        raise Usage(
            f"--by {unknown[0]}: {side.label} has no such factor; "
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


def plan_levels(store: Store | None, text: str) -> dict[str, list[str]]:
    """Factor -> levels, the plan's baseline first; empty where the selection is not a campaign of a plan."""
    from spindle.campaign.outcome import plan_of
    from spindle.run.errors import Usage
    from spindle.store.selection import parse

    asked = parse(text)
    if store is None or asked.kind != "campaign":
        return {}
    try:
        plan = plan_of(store.campaigns.get(asked.name))
    except Usage:  # not made by `campaign run`
        return {}
    base = plan.design.baseline
    return {each.name: sorted(each.labels, key=lambda label: label != base.get(each.name)) for each in plan.factors}


def trouble(store: Store | None, texts: Sequence[str], sides: Sequence[Side]) -> list[str]:
    """A line about each selection whose trials were given up, made again, or have warnings."""
    from spindle.result.record import Level
    from spindle.store.selection import parse

    lines = []
    for text, side in zip(texts, sides, strict=True):
        parts = []
        asked = parse(text)
        if store is not None and asked.kind == "campaign":
            trials = [
                trial
                for trial in store.campaigns.trials(asked.name)
                if all(trial.cell.get(factor) == level for factor, level in asked.levels)
            ]
            given_up = sum(trial.state in ("failed", "invalid") for trial in trials)
            again = sum(trial.attempts > 1 for trial in trials)
            parts += [f"{given_up} given up"] if given_up else []
            parts += [f"{again} made again"] if again else []
        warned = sum(trial.level is Level.WARN for trial in side.trials)
        parts += [f"{warned} with warnings"] if warned else []
        if parts:
            whole = f"{len(side.trials)} trial{'s' if len(side.trials) != 1 else ''} done"
            lines.append(f"{side.label}: {whole}, {', '.join(parts)}.")
    return lines


def believable(sides: Sequence[Side], with_invalid: bool) -> tuple[list[Side], list[str]]:
    """The sides without invalid runs, and a line about those left out. Raises Usage if a side has none left."""
    from spindle.run.errors import RunFailed
    from spindle.stats.trial import valid

    if with_invalid:
        return list(sides), []
    kept = [valid(side) for side in sides]
    lines = []
    for side, left in zip(sides, kept, strict=True):
        if not left.trials:
            raise RunFailed(
                f"{side.label}: all of its {len(side.trials)} runs have the verdict invalid; `spindle show` tells why, "
                "--with-invalid lets them count"
            )
        if missing := len(side.trials) - len(left.trials):
            lines.append(
                f"{missing} of {len(side.trials)} runs of {side.label} left out: their verdict is invalid "
                "(--with-invalid lets them count)."
            )
    return kept, lines
