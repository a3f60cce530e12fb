"""Reader of plans: a preset or a TOML file, with changes by `set=`."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spindle import _core
from spindle.base.suggestions import meant
from spindle.campaign.goal import search_of
from spindle.campaign.plan import Design, Factor, FactorLevel, Kind, Order, Plan, Settings, Trials
from spindle.knobs.asking import value_of
from spindle.knobs.catalogue import knob
from spindle.knobs.errors import KnobUsage
from spindle.result.checks import CHECKS
from spindle.run import document
from spindle.run.document import Table, is_scalar, text_of
from spindle.run.errors import Usage
from spindle.run.resolve import read_text
from spindle.stats.names import known, nearest

TOP = (
    "about",
    "seed",
    "target",
    "workload",
    "options",
    "knobs",
    "kernel",
    "machine",
    "filesystem",
    "create",
    "setup",
    "teardown",
    "load",
    "factors",
    "design",
    "trials",
    "search",
)
"""Keys of a plan."""
FILE_SYSTEMS = ("ext2", "ext3", "ext4", "xfs", "btrfs")
_FREE_KEYS = ("about", "table", "name")  # only in workload files
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_SHORT = {"trials": "count", "load": "command", "filesystem": "type", "design": "kind"}
_LISTS = ("values", "only", "ignores", "tolerate", "mkfs", "mount")
"""Keys whose values may be given with commas to `set=`."""
_MOST_LEVELS = 10_000


def preset_names() -> list[str]:
    """Plans of the catalogue."""
    return [name for name, _ in _core.campaign_presets()]


def open_plan(name: str, assignments: Sequence[str] = ()) -> Plan:
    """Read a preset, or a TOML file by path. Raises Usage, one line."""
    if name.endswith(".toml") or "/" in name:
        text = read_text(Path(name), "plan", f"one of {', '.join(preset_names())}")
        return read_plan(text, name, Path(name).name.removesuffix(".toml"), assignments)
    presets = dict(_core.campaign_presets())
    if name not in presets:
        hint = meant(name, presets, f"give a TOML file or one of {', '.join(presets)}")
        raise Usage(f"no plan `{name}`; {hint}")
    return read_plan(presets[name], f"preset {name}", name, assignments)


def read_plan(text: str, source: str, name: str, assignments: Sequence[str] = ()) -> Plan:
    """Read a plan from TOML text."""
    try:
        return _plan(text, source, name, assignments)
    except Usage as error:
        if not assignments:
            raise
        _plan(text, source, name, ())  # raises errors of the plan itself
        said = re.sub(rf"^{re.escape(source)}(:\d+)?: ", "", str(error))
        raise Usage(said if said.startswith("`set=`") else f"`set=`: {said}") from None


def _plan(text: str, source: str, name: str, assignments: Sequence[str]) -> Plan:
    if not re.fullmatch(_NAME, name):
        raise Usage(f"plan {source}: `{name}` is not a name for a campaign; use letters, digits, - and _")
    data = document.parse(text, source)
    for assignment in assignments:
        _assign(data, assignment)
    top = Table(data, (), text, source)
    about = top.word("about") or ""
    seed = top.integer("seed", 0, 2**53, 1)
    factors = _factors(top.table("factors"))
    always = _settings(top)
    design = _design(top.table("design"), factors)
    trials = _trials(top.table("trials"), factors)
    search = search_of(top.table("search"), trials) if design.kind is Kind.SEARCH else None
    top.finish()
    return Plan(
        name=name,
        source=source,
        text=text,
        assignments=tuple(assignments),
        about=about,
        seed=seed,
        always=always,
        factors=factors,
        design=design,
        trials=trials,
        search=search,
    )


# --- --set -----------------------------------------------------------------------------------------------------------


def _assign(data: dict[str, Any], assignment: str) -> None:
    key, equals, value = assignment.partition("=")
    key = key.strip()
    if not equals or not key:
        raise Usage(f"`set=` {assignment}: not KEY=VALUE; write for example trials.count=5")
    path = _path(data, key, assignment)
    table = data
    for part in path[:-1]:
        inner = table.setdefault(part, {})
        if not isinstance(inner, dict):
            raise Usage(f"`set=` {assignment}: `{part}` is not a table of the plan")
        table = inner
    table[path[-1]] = _value(value.strip(), table.get(path[-1]), path, assignment)


def _path(data: Mapping[str, Any], key: str, assignment: str) -> list[str]:
    """Resolve a key: full, or short. A factor's name means its values; a workload key and `trials` for
    `trials.count` work too.
    """
    parts = key.split(".")
    factors = data.get("factors")
    names = list(factors) if isinstance(factors, dict) else []
    if isinstance(factors, dict) and key in factors:
        return ["factors", key, "values"] if "levels" not in factors[key] else ["factors", key, "only"]
    if parts[0] == "factors" and len(parts) > 2:
        return ["factors", ".".join(parts[1:-1]), parts[-1]]
    if parts[0] in TOP:
        return [parts[0], _SHORT[parts[0]]] if len(parts) == 1 and parts[0] in _SHORT else parts
    keys = _option_names()
    if parts[-1] in keys and len(parts) <= 2:
        return ["options", key]
    hint = meant(key, [*TOP, *names, *keys], f"a plan has {', '.join(TOP)}")
    raise Usage(f"`set=` {assignment}: unknown key `{key}`; {hint}")


def _value(text: str, before: object, path: Sequence[str], assignment: str) -> object:
    if text[:1] in ("[", "{"):
        try:
            return document.parse(f"value = {text}", "`set=`")["value"]
        except Usage:
            raise Usage(f"`set=` {assignment}: the value is not a list or table of TOML") from None
    if path[-1] in _LISTS or isinstance(before, list):
        return [part.strip() for part in text.split(",")]
    return text


# --- settings -----------------------------------------------------------------------------------------------------


def _settings(table: Table) -> Settings:
    return Settings(
        target=table.word("target"),
        workload=table.word("workload"),
        options=_options(table.table("options")),
        knobs=_knobs(table.table("knobs")),
        kernel=table.version("kernel"),
        machine=_machine(table.table("machine")),
        filesystem=_filesystem(table.table("filesystem")),
        create=table.word("create"),
        setup=_commands(table, "setup"),
        teardown=_commands(table, "teardown"),
        load=_load(table, "load"),
    )


def _flat(table: Table, lists: bool = False) -> dict[str, Any]:
    """Scalars of a table and of the tables in it, by dotted path."""
    found: dict[str, Any] = {}
    for key in table.left():
        value = table.take(key)
        if isinstance(value, dict):
            inner = Table(value, (*table.path, key), table.text, table.source)
            found.update({f"{key}.{name}": one for name, one in _flat(inner, lists).items()})
        elif is_scalar(value) or (lists and isinstance(value, list) and all(map(is_scalar, value))):
            found[key] = value
        else:
            table.fail(key, "expected text, a number or true and false")
    return found


@functools.cache
def _option_names() -> tuple[str, ...]:
    return tuple(key["name"] for key in json.loads(_core.workload_keys()) if key["name"] not in _FREE_KEYS)


def _options(table: Table) -> dict[str, str]:
    found = {}
    for name, value in _flat(table).items():
        _check_option(table, name)
        found[name] = text_of(value)
    return found


def _check_option(table: Table, name: str, key: str | None = None) -> None:
    last = name.rpartition(".")[2]
    if last not in _option_names():
        table.nearest(key or name, last, _option_names(), "workload key")


def _knobs(table: Table) -> dict[str, str]:
    found = {}
    for name, value in _flat(table).items():
        _check_knob(table, name, text_of(value))
        found[name] = text_of(value)
    return found


def _check_knob(table: Table, name: str, value: str, key: str | None = None) -> None:
    """Check by the catalogue; the device is checked later."""
    prefix, dot, rest = name.partition(".")
    bare = name if not dot or prefix in ("vm", "raid", "cpu", "irq", "iosched") else rest
    if found := re.fullmatch(r"(cpu|irq)[0-9]+", prefix):
        bare = f"{found[1]}.{rest}"
    try:
        one = knob(bare)
        if "{" not in value:
            value_of(one, value, f"{name}={value}")
    except KnobUsage as error:
        table.fail(key or name, str(error))


def _machine(table: Table) -> dict[str, object]:
    return _flat(table, lists=True)


def _filesystem(table: Table) -> dict[str, object]:
    found: dict[str, object] = {}
    if table.left():
        given = table.left()
        kind = table.choice("type", FILE_SYSTEMS, "ext4")
        values = {
            "type": kind,
            "mkfs": tuple(table.words("mkfs")),
            "mount": ",".join(table.words("mount")),
            "size": _file_size(table),
        }
        table.finish()
        found = {name: value for name, value in values.items() if name in given}
    return found


def _file_size(table: Table) -> str | None:
    """A size, or a share of the file system."""
    size = table.word("size")
    if size is not None and not re.fullmatch(r"[1-9][0-9]?(\.[0-9]+)?\s*%", size):
        try:
            _core.parse_size(size)
        except _core.ConfigError as error:
            table.fail("size", f"{error}; or a share such as 50%")
    return size


def _commands(table: Table, key: str) -> tuple[tuple[str, ...], ...]:
    """`["cmd", "arg"]`, or a list of them."""
    value = table.take(key)
    if value is None or value == []:
        return ()
    rows = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    return tuple(_command(table, key, row) for row in rows)


def _command(table: Table, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(is_scalar(word) for word in value):
        table.fail(
            key, 'a command is a list of its arguments, such as ["systemctl", "stop", "cron"]; no shell reads it'
        )
    words = tuple(text_of(word) for word in value)
    if not words[0] or any("\0" in word for word in words):
        table.fail(key, "a command has a name, and no zero bytes")
    return words


def _load(above: Table, key: str) -> dict[str, object]:
    table = above.table(key)
    given = table.left()
    values: dict[str, object] = {
        "command": _line(table, "command"),
        "interval_ns": table.duration_ns("interval", 0, 10_000_000),
        "settle_ns": table.duration_ns("settle", 0),
        "sample_ns": table.duration_ns("sample", 0, 1_000_000),
    }
    table.finish()
    return {name: value for name, value in values.items() if name.removesuffix("_ns") in given}


def _line(table: Table, key: str) -> tuple[str, ...]:
    """A command as one text, split as a shell would, or as a list."""
    import shlex

    value = table.take(key)
    if value is None:
        return ()
    if isinstance(value, str):
        try:
            value = shlex.split(value)
        except ValueError as error:
            table.fail(key, f"cannot be split into arguments: {str(error).lower()}")
    return _command(table, key, value)


# --- factors ---------------------------------------------------------------------------------------------------------


def _factors(table: Table) -> tuple[Factor, ...]:
    names = table.left()
    if len(names) > 32:
        table.fail(None, f"{len(names)} factors; there can be 32")
    found = tuple(_factor(table, name, names) for name in names)
    table.finish()
    return found


def _factor(above: Table, name: str, names: Sequence[str]) -> Factor:
    if not re.fullmatch(_NAME, name):
        above.fail(name, "no name for a factor; use letters, digits, - and _")
    table = above.table(name)
    levels = table.table("levels")
    labels = levels.left()
    only = table.words("only")
    if labels:
        found = [_level(levels, label, names, name) for label in labels]
        for label in only:
            if label not in labels:
                table.nearest("only", label, labels, "level")
        found = [one for one in found if not only or one.label in only]
    else:
        found = _values(table)
    table.finish()
    if len({one.label for one in found}) < len(found):
        twice = next(one.label for one in found if [o.label for o in found].count(one.label) > 1)
        table.fail("values", f"`{twice}` is given twice")
    if len(found) > _MOST_LEVELS:
        table.fail("values", f"{len(found)} levels; there can be {_MOST_LEVELS}")
    return Factor(name=name, levels=tuple(found))


def _level(levels: Table, label: str, names: Sequence[str], factor: str) -> FactorLevel:
    if (
        not label.strip()
        or label == "-"
        or not label.isprintable()
        or any(char in label for char in ",=")
        or len(label) > 100
    ):
        levels.fail(label, "no name for a level; leave out commas and =")
    table = levels.table(label)
    ignores = table.words("ignores")
    for other in ignores:
        if other not in names or other == factor:
            table.nearest("ignores", other, [one for one in names if one != factor], "other factor")
    settings = _settings(table)
    table.finish()
    return FactorLevel(label=label, settings=settings, ignores=frozenset(ignores))


def _values(table: Table) -> list[FactorLevel]:
    sets = table.word("sets")
    values = table.take("values")
    if sets is None:
        table.fail(None, 'it sets nothing; give sets = "options.size" and values = [...], or levels')
    if not isinstance(values, list) or not values:
        table.fail("values", "expected a list of at least one value")
    return [FactorLevel(label=_label(value), settings=_single(table, sets, value)) for value in values]


def _label(value: object) -> str:
    """The value without characters that selections of the store use."""
    text = " ".join(map(text_of, value)) if isinstance(value, list) else text_of(value)
    return text.replace(",", ";").replace("=", ":")[:100] or "none"


def _single(table: Table, sets: str, value: object) -> Settings:
    """Settings with one value."""
    kind, _, rest = sets.partition(".")
    if isinstance(value, str) and not value.isprintable():
        table.fail("values", "has control characters in it; leave them out")
    nested = Table({kind: _nest(rest, value)} if rest else {kind: value}, table.path, table.text, table.source)
    allowed = tuple(key for key in TOP if key not in ("about", "seed", "factors", "design", "trials", "search"))
    if kind not in allowed:
        hint = meant(kind, allowed, f"it is one of {', '.join(allowed)}, with a name after a dot")
        table.fail("sets", f"`{sets}` cannot be set; {hint}")
    if not rest and kind in ("options", "knobs", "machine", "filesystem", "load"):
        table.fail("sets", f"`{sets}`: which one? write for example {kind}.{_EXAMPLE[kind]}")
    if kind == "options":
        _check_option(table, rest, "sets")
        _scalar(table, value)
        return Settings(options={rest: text_of(value)})
    if kind == "knobs":
        _scalar(table, value)
        _check_knob(table, rest, text_of(value), "sets")
        return Settings(knobs={rest: text_of(value)})
    if kind == "machine":
        if not is_scalar(value) and not (isinstance(value, list) and all(map(is_scalar, value))):
            table.fail("values", "expected texts, numbers or true and false")
        return Settings(machine={rest: value})
    if kind in ("target", "workload", "create") and (rest or not isinstance(value, str)):
        table.fail("values", f"{kind}: expected texts")
    found = _settings(nested)
    nested.finish()
    return found


_EXAMPLE = {
    "options": "size",
    "knobs": "read_ahead_kb",
    "machine": "array.chunk",
    "filesystem": "type",
    "load": "command",
}


def _scalar(table: Table, value: object) -> None:
    if not is_scalar(value):
        table.fail("values", "expected texts, numbers or true and false")


def _nest(path: str, value: object) -> object:
    for part in reversed(path.split(".")):
        value = {part: value}
    return value


# --- design and trials -----------------------------------------------------------------------------------------------


def _labels(table: Table, factors: Sequence[Factor]) -> dict[str, tuple[str, ...]]:
    """Factor -> labels, checked."""
    found: dict[str, tuple[str, ...]] = {}
    for name in table.left():
        factor = next((one for one in factors if one.name == name), None)
        if factor is None:
            table.nearest(name, name, [one.name for one in factors], "factor")
        labels = tuple(_label(label) for label in table.words(name))
        for label in labels:
            if label not in factor.labels:
                table.nearest(name, label, factor.labels, "level")
        found[name] = labels
    return found


def _one_each(table: Table, factors: Sequence[Factor]) -> dict[str, str]:
    found = {}
    for name, labels in _labels(table, factors).items():
        if len(labels) != 1:
            table.fail(name, "expected one level")
        found[name] = labels[0]
    return found


def _design(table: Table, factors: Sequence[Factor]) -> Design:
    listed = tuple(_one_each(one, factors) for one in table.tables("cells"))
    kind = Kind(table.choice("kind", list(Kind), Kind.LIST if listed else Kind.FULL))
    if (kind is Kind.LIST) != bool(listed):
        table.fail("kind", f'cells and kind = "list" need each other; kind is "{kind}"')
    found = Design(
        kind=kind,
        baseline=_one_each(table.table("baseline"), factors),
        cells=listed,
        exclude=tuple(_labels(one, factors) for one in table.tables("exclude")),
    )
    table.finish()
    if any(not one for one in found.exclude):
        table.fail("exclude", "an empty exclusion would leave out everything; name a factor and its levels")
    return found


def _metric(table: Table) -> str | None:
    """Check the name; results are checked later."""
    name = table.word("metric")
    if name is not None and known(name) is None:
        near = nearest(name)
        hint = f"did you mean `{near}`?" if near else "`spindle metrics` lists them"
        table.fail("metric", f"no metric `{name}`; {hint}")
    return name


def _tolerated(table: Table) -> tuple[str, ...]:
    found = tuple(table.words("tolerate"))
    for name in found:
        if name not in CHECKS:
            table.nearest("tolerate", name, list(CHECKS), "verdict")
    return found


def _trials(table: Table, factors: Sequence[Factor]) -> Trials:
    found = Trials(
        count=table.integer("count", 1, 10_000, Trials.count),
        within=table.share("within"),
        at_most=table.integer("at_most", 2, 10_000, Trials.at_most),
        metric=_metric(table),
        confidence=table.share("confidence") or Trials.confidence,
        order=Order(table.choice("order", list(Order), Order.BLOCKS)),
        repeats=table.integer("repeats", 0, 100, Trials.repeats),
        tolerate=_tolerated(table),
        relative_to=_one_each(table.table("relative_to"), factors),
    )
    table.finish()
    if found.within is not None and found.count < 2:
        table.fail("count", "an interval takes two trials at least; write count = 3 or more")
    if found.within is not None and found.at_most < found.count:
        table.fail("at_most", f"{found.at_most} is less than count = {found.count}")
    return found
