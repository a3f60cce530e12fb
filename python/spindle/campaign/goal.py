"""The `[search]` table of a plan: the goal, the bounds, the number of trials of each stage."""

from __future__ import annotations

import re

from spindle import _core
from spindle.campaign.plan import CONFIRM_FACTOR, Limit, Method, Objective, Search, Trials
from spindle.run.document import Table
from spindle.run.errors import Usage
from spindle.stats.names import Direction, known, metric, nearest

_BOUND = re.compile(r"\s*([^<>=\s]+)\s*(<=|>=|<|>)\s*(.+?)\s*")
_GOALS = ("maximise", "minimise")


def search_of(table: Table, trials: Trials) -> Search:
    """Read the table. Raises Usage."""
    if trials.metric is None:
        table.fail(None, "a search needs a goal; give the metric in [trials]")
    asked = table.choice("goal", _GOALS, "") if "goal" in table.left() else ""
    confirm = table.integer("confirm", 3, 1000, Search.confirm)
    found = Search(
        higher=_higher(table, trials.metric, asked),
        also=tuple(_objective(table, text, trials.metric) for text in table.words("also")),
        limits=tuple(_limit(table, text) for text in table.words("bounds")),
        method=Method(table.choice("method", list(Method), Method.GUIDED)),
        trials=table.integer("trials", 4, 10_000, Search.trials),
        screen=table.integer("screen", 1, 10_000, Search.screen),
        block=table.integer("block", 2, 100, Search.block),
        finalists=table.integer("finalists", 1, 20, Search.finalists),
        race=table.integer("race", 3, 100, Search.race),
        confirm=confirm,
        confirm_most=table.integer("confirm_most", confirm, CONFIRM_FACTOR * 1000, CONFIRM_FACTOR * confirm),
        worth=table.share("worth") or Search.worth,
        prior=table.word("prior"),
    )
    table.finish()
    return found


def _higher(table: Table, name: str, asked: str) -> bool:
    better = metric(name).better
    if not asked:
        if better is Direction.NEITHER:
            table.fail("goal", f'neither more nor less of `{name}` is better by itself; write goal = "maximise"')
        return better is Direction.HIGHER
    return asked == "maximise"


def _objective(table: Table, text: str, first: str) -> Objective:
    """`minimise read.p99`."""
    kind, _, name = text.partition(" ")
    if kind not in _GOALS:
        table.fail("also", f"{text}: write for example minimise read.p99")
    try:
        found = metric_of(name.strip())
    except Usage as error:
        table.fail("also", str(error))
    if found == first:
        table.fail("also", f"{text}: is the goal already; name another metric")
    return Objective(metric=found, higher=kind == _GOALS[0])


def _limit(table: Table, text: str) -> Limit:
    try:
        return limit_of(text)
    except Usage as error:
        table.fail("bounds", str(error))


def limit_of(text: str) -> Limit:
    """`read.p99<20ms`. Raises Usage."""
    found = _BOUND.fullmatch(text)
    if found is None:
        raise Usage(f"{text}: not a bound; write for example read.p99<20ms")
    name = metric_of(found[1])
    unit = metric(name).unit
    try:
        if unit == "ns":
            limit = float(_core.parse_duration(found[3]))
        elif unit == "B/s":
            limit = float(_core.parse_size(re.sub(r"/s$", "", found[3])))
        else:
            limit = float(re.sub(rf"\s*({re.escape(unit)}|%)?$", "", found[3]))
    except (ValueError, _core.ConfigError):
        raise Usage(f"{text}: `{found[3]}` is not a limit of {name}; write for example {_example(unit)}") from None
    return Limit(metric=name, upper=found[2].startswith("<"), limit=limit, text=text.strip())


def _example(unit: str) -> str:
    return {"ns": "20ms", "B/s": "100MB/s"}.get(unit, "30")


def metric_of(name: str) -> str:
    """A registered metric; a unit in its name may be left out: `read.p99`, `cpu`. Raises Usage."""
    for one in (name, f"{name}_ns", f"{name}_percent"):
        if known(one) is not None:
            return one
    near = nearest(name)
    hint = f"did you mean `{near}`?" if near else "`spindle metrics` lists them"
    raise Usage(f"no metric `{name}`; {hint}")
