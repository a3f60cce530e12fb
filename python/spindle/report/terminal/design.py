"""A design: the recommendation, the front, what decides and what would break it, commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spindle.base import units
from spindle.base.words import counted
from spindle.design.answer import DesignAnswer, LoadFigure, MachineAnswer, MissedNeed, NeedEffect
from spindle.design.design import MOST_HEADROOM
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table

LONG_REBUILD_HOURS = 7 * 24.0
"""A rebuild that takes longer is worth a warning."""


def design_page(found: DesignAnswer, style: Style, *, whole_front: bool = False) -> list[str]:
    """Return the page. `whole_front`: with the designs that differ from a cheaper one by less than is known."""
    return list(_page(found, style, whole_front))


def _page(found: DesignAnswer, style: Style, whole_front: bool) -> Iterator[str]:
    yield from style.headline(found.about or "Design")
    for line in found.need:
        yield from style.wrap(line, "- ")
    currency = f", {found.currency}" if found.currency else ""
    yield from style.wrap(f"prices: {found.prices}{currency}, {counted(len(found.drives), 'drive')}", "- ")
    yield ""
    if found.recommendation is None:
        yield from _impossible(found, style)
    else:
        yield from _recommendation(found, found.recommendation, style, whole_front)
    yield ""
    yield from _nets(found, style)
    yield ""
    yield "the model leaves out:"
    for limit in found.limits:
        yield from style.wrap(limit, "- ")


def money(value: float, currency: str) -> str:
    """Return a price: `1 740 EUR`."""
    return f"{units.count(round(value))} {currency}".strip()


def loss_words(probability: float) -> str:
    """Return a probability: `1 in 37 000`, or a percentage above 1 in 10."""
    if probability <= 0:
        return "0"
    if probability > 0.1:
        return units.percent(probability)
    return f"1 in {units.count(float(f'{1 / probability:.2g}'))}"


def _recommendation(found: DesignAnswer, best: MachineAnswer, style: Style, whole_front: bool) -> Iterator[str]:
    price = money(best.cost, found.currency)
    yield from style.headline(f"Cheapest: {price}, {counted(best.bays, 'drive')}, {best.watts:.0f} W")
    for array in best.arrays:
        chunk = f"chunk {units.kib(array.chunk)}, " if array.chunk else ""
        name = f"{array.name}: " if len(best.arrays) > 1 else ""
        yield from style.wrap(f"{name}{array.words}, {chunk}scheduler {array.scheduler}", "  ")
        rebuild = f"; rebuild {_hours(array.rebuild_hours)}" if array.rebuild_hours is not None else ""
        usable = f"{units.si_size(array.usable_bytes)} usable of {units.si_size(array.needed_bytes)} needed"
        yield from style.wrap(f"{usable}; data loss {loss_words(array.yearly_loss)} a year{rebuild}", "  ")
        if array.rebuild_hours is not None and array.rebuild_hours > LONG_REBUILD_HOURS:
            advice = "md yields to the load; a bound `rebuild` under [limits] makes the search raise `sync_speed_min`"
            yield from style.wrap(
                f"warn: a rebuild beside the load takes {_hours(array.rebuild_hours)}: {advice}", "  "
            )
    yield ""
    yield from _figures(found.figures, best, style)
    yield ""
    yield from _front(found, style, whole_front)
    yield ""
    yield from _needs(found, best, style)
    yield ""
    yield from _breaks(found, style)
    yield ""
    yield "commands (nothing was executed):"
    yield from (f"  {line}".rstrip() for line in found.commands)
    for name, text in found.machines.items():
        yield ""
        of = f" of {name}" if len(found.machines) > 1 else ""
        yield f"machine file{of}, for `spindle run` and `spindle predict`:"
        yield from (f"  {line}".rstrip() for line in text.splitlines())


def _hours(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f} h" if value < 10 else f"{value:.0f} h" if value < 72 else f"{value / 24:.0f} days"


def _figures(figures: Sequence[LoadFigure], best: MachineAnswer, style: Style) -> Iterator[str]:
    fewest = units.count(min(figure.requests for figure in figures))
    differ = f"the largest p99 differs by {units.percent(best.p99_spread)} between them"
    yield from style.wrap(
        f"confirming runs, the worst of all seeds ({differ}; each row counts {fewest} requests or more):"
    )
    periods = any(figure.period for figure in figures)
    heads = ["array is", "load", *(["period"] if periods else []), "op"]
    rows = [
        [
            figure.state, figure.load, *([figure.period or ""] if periods else []), figure.operation,
            units.count(figure.iops), units.mb_per_s(figure.bytes_per_s),
            *(units.duration(value) for value in (figure.mean_ns, figure.p99_ns, figure.p999_ns)),
        ]
        for figure in figures
    ]  # fmt: skip
    columns = [*(Column(head, words=True) for head in heads), *map(Column, ("IOPS", "MB/s", "mean", "p99", "p99.9"))]
    yield from table(columns, rows, style)


def front_columns(found: DesignAnswer) -> list[Column]:
    """Return the columns of the front."""
    cost = f"cost, {found.currency}" if found.currency else "cost"
    return [*map(Column, (cost, "drives", "W", "p99", "of bound", "data loss a year")), Column("design", words=True)]


def front_rows(found: DesignAnswer, designs: Sequence[MachineAnswer] | None = None) -> list[list[str]]:
    """Return the rows of the front, cheapest first; or those of some of its designs."""
    return [
        [
            units.count(round(one.cost)), str(one.bays), f"{one.watts:.0f}", units.duration(one.p99_ns),
            units.percent(one.bound_share) if one.bound_share else "-", loss_words(one.yearly_loss), one.words,
        ]
        for one in (found.front if designs is None else designs)
    ]  # fmt: skip


def _front(found: DesignAnswer, style: Style, whole: bool) -> Iterator[str]:
    yield "no other simulated design is better in cost, latency, data loss and watts at once:"
    shown = found.front if whole else found.distinct_front
    yield from table(front_columns(found), front_rows(found, shown), style)
    if more := len(found.front) - len(shown):
        yield from style.wrap(
            f"{counted(more, 'further design')} left out, which differ from a cheaper one by less than is known; "
            "`whole_front=` shows them"
        )


def _needs(found: DesignAnswer, best: MachineAnswer, style: Style) -> Iterator[str]:
    deciding = list(dict.fromkeys(need.need for need in found.needs if need.decides))
    others = list(dict.fromkeys(need.need for need in found.needs if need.need not in deciding))
    if not found.needs:
        return
    yield "what decides the cost:" if deciding else "no need decides the cost: each may change as tried"
    rows = [_need(need, best, found.currency) for need in found.needs if need.decides]
    if rows:
        columns = [Column(head, words=True) for head in ("need", "if it is", "then", "")]
        yield from table(columns, rows, style)
    if others:
        yield from style.wrap(f"no effect on the cost, easier or harder: {'; '.join(others)}")


def _need(need: NeedEffect, best: MachineAnswer, currency: str) -> list[str]:
    if need.cost is None:
        return [need.need, f"{need.change}: {need.asked}", "nothing within the limits", ""]
    change = 100 * (need.cost / best.cost - 1)
    return [need.need, f"{need.change}: {need.asked}", f"{money(need.cost, currency)} ({change:+.0f} %)", need.machine]


def _breaks(found: DesignAnswer, style: Style) -> Iterator[str]:
    yield "what would break it:"
    for one in found.breaks:
        text = "; ".join(one.broken) if one.broken else "still meets the need"
        yield from style.wrap(f"{one.condition}: {text}", "- ")
    if found.headroom is not None:
        if found.headroom <= 1:
            text = "5 % more load breaks a bound"
        elif found.headroom >= MOST_HEADROOM:
            text = f"the bounds are met at {MOST_HEADROOM:g} times the load too"
        else:
            text = f"the bounds are met up to {found.headroom:.2f} times the load"
        yield from style.wrap(text, "- ")


def _impossible(found: DesignAnswer, style: Style) -> Iterator[str]:
    yield from style.headline("Nothing meets the need")
    if not found.missed:
        yield "no candidate is left: widen [space], or give prices of more drives"
    for missed in found.missed:
        yield from style.wrap(_missed(missed), "- ")


def _missed(missed: MissedNeed) -> str:
    by = f", {100 * missed.excess:.0f} % off" if missed.excess is not None else ""
    design = f" ({missed.machine})" if missed.machine else ""
    return f"{missed.need}: needed {missed.asked}, the nearest design has {missed.best}{by}{design}"


def _nets(found: DesignAnswer, style: Style) -> Iterator[str]:
    rows = [[net.name, units.count(net.left)] for net in found.nets]
    rows.append(["simulated runs in all, with those of the other tables", units.count(found.simulations)])
    yield from table([Column("the search", words=True), Column("")], rows, style)
