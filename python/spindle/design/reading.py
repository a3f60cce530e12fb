"""Reads a requirement file (TOML). Every error is one line: file, line, key, what is allowed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from spindle import _core
from spindle.design.loads import demands
from spindle.design.requirement import LATENCIES, Growth, Limits, Load, Requirement, Space, State
from spindle.design.schemes import SCHEMES
from spindle.run.document import Table, parse, text_of
from spindle.run.errors import Usage
from spindle.run.resolve import ResolvedWorkload, read_text, resolve, resolve_text

LONGEST_YEARS = 20
MOST_LOADS = 16
MOST_BAYS = 64
MOST_APART = 2
"""Loads that may get an array of their own. The number of machines that are tried doubles with each."""
DEPTH = ("16", "16")
"""Workers and depth of an open loop without its own: enough that nothing but the array limits it."""
SCHEDULERS = ("none", "mq-deadline", "bfq", "kyber")
FILE_SYSTEMS = ("xfs", "ext4")
OF_LIMITS = ("bays", "budget", "watts", "rebuild", "yearly_loss")
OF_LOAD = ("workload", "iops", "mix", "size", "p99")
_MIX = re.compile(r"\s*(\d{1,3})\s*/\s*(\d{1,3})\s*")
_NOT_OF_LOADS = {
    "name",
    "operation",
    "order",
    "start_delay",
    "stop_after",
    "stop_bytes",
    "stop_passes",
    "stop_requests",
    "ends",
    "verify",
    "verify_fatal",
}


def read_requirement(path: Path) -> Requirement:
    """Read a file. Raises Usage or `_core.ConfigError`, one line."""
    return requirement_of(read_text(path, "requirement", "the flags of the common case"), str(path))


def requirement_of(text: str, source: str) -> Requirement:
    """Read a text; `source` names it in messages. Raises Usage or `_core.ConfigError`, one line."""
    return _requirement(Table(parse(text, source), (), text, source))


def requirement_of_keys(keys: Mapping[str, str]) -> Requirement:
    """The common case, one load: `usable`, `survive`, keys of limits (`OF_LIMITS`) and of the load (`OF_LOAD`), as
    text. Raises Usage or `_core.ConfigError`, one line."""
    load = {"rate" if key == "iops" else key: value for key, value in keys.items() if key in OF_LOAD}
    if isinstance(load.get("rate"), str) and re.fullmatch(r"[0-9.]+", load["rate"]):
        load["rate"] += " IOPS"
    limits = {key: value for key, value in keys.items() if key in OF_LIMITS}
    rest = {key: value for key, value in keys.items() if key not in (*OF_LOAD, *OF_LIMITS)}
    return _requirement(Table({**rest, "limits": limits, "load": [load]}, (), "", "design"))


def _requirement(root: Table) -> Requirement:
    about = root.word("about") or ""
    usable = _size(root, "usable")
    if usable is None:
        root.fail("usable", 'is missing; write the space that is needed, such as usable = "12TB"')
    survive = root.integer("survive", 0, 8, 1)
    seed = root.integer("seed", 0, 2**53, 1)
    growth, limits, space = _growth(root.table("growth")), _limits(root.table("limits")), _space(root.table("space"))
    tables = root.tables("load")
    root.finish()
    if not tables:
        root.fail("load", "is missing; describe at least one [[load]]")
    if len(tables) > MOST_LOADS:
        root.fail("load", f"{len(tables)} loads; at most {MOST_LOADS}")
    loads = [_load(table, number, len(tables)) for number, table in enumerate(tables, 1)]
    for at, load in enumerate(loads):
        if load.name in [other.name for other in loads[:at]]:
            tables[at].fail("name", f"there are two loads `{load.name}`; give each a name of its own")
    if sum((load.apart_bytes is not None) + load.may_split for load in loads) > MOST_APART:
        root.fail("load", f"at most {MOST_APART} loads may have `apart` or `hot`")
    if sum(load.hot[0] for load in loads if load.may_split) >= 1:
        root.fail("load", "the hot places of all loads are all places; make `hot_space` smaller")
    if all(load.apart_bytes is not None for load in loads):
        root.fail("load", "every load is `apart`; one must stay on the data's array")
    return Requirement(
        about=about,
        usable_bytes=usable,
        survive=survive,
        loads=tuple(loads),
        growth=growth,
        limits=limits,
        space=space,
        seed=seed,
    )


def _growth(table: Table) -> Growth:
    years = _number(table, "years", 0, LONGEST_YEARS) or 0
    found = Growth(capacity=_rise(table, "capacity"), load=_rise(table, "load"), years=years)
    table.finish()
    if (found.capacity or found.load) and not found.years:
        table.fail("years", "is missing; for how many years must it last?")
    return found


def _limits(table: Table) -> Limits:
    hours = _time(table, "rebuild")
    found = Limits(
        budget=_number(table, "budget", 0, 1e12),
        bays=table.integer("bays", 1, MOST_BAYS, Limits.bays),
        watts=_number(table, "watts", 0, 1e6),
        yearly_loss=_number(table, "yearly_loss", 0, 1),
        rebuild_hours=hours / 3.6e12 if hours else None,
    )
    table.finish()
    return found


def _space(table: Table) -> Space:
    usual = Space()
    drives = _once(table.words("drives"))
    known = _core.drive_names()
    for name in drives:
        if name not in known:
            table.nearest("drives", name, known, "drive")
    levels = _once(table.words("levels"))
    names = list(dict.fromkeys([*(of.name for of in SCHEMES), *(of.level for of in SCHEMES if of.level)]))
    for name in levels:
        if name not in names:
            table.nearest("levels", name, names, "level")
    schedulers = _once(table.words("schedulers")) or usual.schedulers
    for name in schedulers:
        if name not in SCHEDULERS:
            table.nearest("schedulers", name, SCHEDULERS, "scheduler")
    found = Space(
        drives=drives,
        levels=levels,
        chunks=_chunks(table) or usual.chunks,
        schedulers=schedulers,
        regions=_regions(table) or usual.regions,
        spares=_spares(table) or usual.spares,
        filesystem=table.choice("filesystem", FILE_SYSTEMS, usual.filesystem),
    )
    table.finish()
    return found


_Any = TypeVar("_Any")


def _once(choices: Iterable[_Any]) -> tuple[_Any, ...]:
    """Each choice once: a second one would be tried twice."""
    return tuple(dict.fromkeys(choices))


def _chunks(table: Table) -> tuple[int, ...]:
    found = _once(_parsed_size(table, "chunks", text) for text in table.words("chunks"))
    for size in found:
        if size < 4096 or size & (size - 1):
            table.fail("chunks", f"{size} bytes is not a power of two from 4 KiB on")
    return found


def _regions(table: Table) -> tuple[float, ...]:
    found = []
    for text in table.words("regions"):
        percent = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*%", text)
        if percent is None or not 0 < float(percent[1]) <= 100:
            table.fail("regions", f"`{text}` is not a share of a drive; write for example 50%")
        found.append(float(percent[1]) / 100)
    return _once(found)


def _spares(table: Table) -> tuple[int, ...]:
    found = []
    for text in table.words("spares"):
        if not re.fullmatch(r"[0-9]{1,2}", text):
            table.fail("spares", f"`{text}` is not a number of drives, 0 to 99")
        found.append(int(text))
    return _once(found)


# --- loads ---


def _load(table: Table, number: int, count: int) -> Load:
    name = table.word("name") or (f"load {number}" if count > 1 else "load")
    resolved = _resolved(table)
    bounds = {State.WHOLE: _bounds(table)}
    for state in (State.DEGRADED, State.REBUILDING):
        value = table.take(state.value)
        if isinstance(value, dict):
            inner = Table(value, (*table.path, state.value), table.text, table.source)
            bounds[state] = _bounds(inner)
            inner.finish()
        elif value == "same":
            bounds[state] = bounds[State.WHOLE]
        elif value is not None:
            table.fail(state.value, 'expected the bounds as { p99 = "40ms" }, or "same"')
    least_iops, least_bytes = _number(table, "least_iops", 0, 1e9), _size(table, "least_throughput", "MB/s")
    apart = _size(table, "apart")
    period = table.word("period")
    hot = table.choice("hot", ("apart",), "")
    streams = _streams(resolved, name)
    if hot:
        _check_split(table, streams, apart)
    table.finish()
    if (least_iops or least_bytes) and all(of["arrival"]["kind"] == "open" for of in streams):
        table.fail("least_iops" if least_iops else "least_throughput", "the load has a rate, which is required anyway")
    found = Load(
        name=name,
        streams=json.dumps(streams),
        filesets=json.dumps(json.loads(resolved.core.to_json())["filesets"]),
        bounds=bounds,
        least_iops=least_iops,
        least_bytes_per_s=least_bytes,
        period=period,
        apart_bytes=apart,
        may_split=bool(hot),
    )
    try:
        demands([found])
    except _core.ConfigError as error:  # sizes that no drive takes
        table.fail("size" if table.was_given("size") else "workload", str(error))
    return found


def _check_split(table: Table, streams: list[dict[str, Any]], apart: int | None) -> None:
    """Refuse `hot` where the two parts of the load are not known."""
    patterns = [stream["pattern"] for stream in streams]
    if any(pattern["kind"] != "hot-set" or pattern != patterns[0] for pattern in patterns):
        table.fail("hot", 'needs pattern = "hot-set", whose `hot_space` and `hot_access` say what is hot')
    if any(stream["arrival"]["kind"] != "open" for stream in streams):
        table.fail("hot", "needs a load with a `rate`; workers that wait for both arrays cannot be split")
    if any(stream["files"] is not None for stream in streams):
        table.fail("hot", "is for loads on the array itself; files are not split")
    if apart is not None:
        table.fail("hot", "the load is `apart` already; give it one of both")


def _resolved(table: Table) -> ResolvedWorkload:
    """The workload of a load: its preset or file, with its keys."""
    name = table.word("workload")
    given = {key: value for key in _stream_keys() if (value := table.take(key)) is not None}
    users, each = table.take("users"), table.take("each")
    mix = table.word("mix")
    if users is not None:
        if not isinstance(users, int) or isinstance(users, bool) or not 0 < users <= 65536:
            table.fail("users", "expected a number of users from 1 to 65536")
        given["workers"] = users
        if each is not None:
            given["worker_rate"] = each
    elif each is not None:
        table.fail("each", "is the rate of one user; say how many `users` there are")
    if mix is not None:
        shares = _MIX.fullmatch(mix)
        if shares is None or int(shares[1]) + int(shares[2]) != 100:
            table.fail("mix", f"`{mix}` is not a share of reads and writes; write for example 70/30")
        given["write_fraction"] = f"{shares[2]}%"
    if isinstance(given.get("rate"), int | float):
        given["rate"] = f"{given['rate']} IOPS"
    is_open = "rate" in given or "worker_rate" in given
    options = {"seconds": "60", **({"spacing": "poisson"} if is_open else {})}
    if "rate" in given and not {"workers", "depth"} & set(given) and given.get("pattern") != "sequential":
        options |= {"workers": DEPTH[0], "depth": DEPTH[1]}
    options |= {key: text_of(value) for key, value in given.items()}

    pairs = list(options.items())
    try:
        found = resolve(name, pairs) if name is not None else resolve_text("", table.source, "load", pairs)
    except (_core.ConfigError, Usage) as error:
        _blame(table, str(error))
    if found.spec.phases:
        table.fail("workload", f"`{name}` has phases, one after another; give the loads that run at the same time")
    return found


_WRITTEN_AS = {"worker_rate": "each"}
"""Keys of a load that are written as another key of its workload."""


def _blame(table: Table, says: str) -> NoReturn:
    """Raise an error of a workload at the key that it names."""
    named = re.match(r"`(\w+)=`: (.*)", says)
    if named is None:
        table.fail("workload", says)
    key = named[1]
    if table.was_given(_WRITTEN_AS.get(key, key)):
        key = _WRITTEN_AS.get(key, key)
    table.fail(key, named[2])


def _stream_keys() -> list[str]:
    """Workload keys that a load may set."""
    return [
        of["name"]
        for of in json.loads(_core.workload_keys())
        if of["level"] == "stream" and of["name"] not in _NOT_OF_LOADS
    ]


def _streams(resolved: ResolvedWorkload, name: str) -> list[dict[str, Any]]:
    """Its streams, whose names are unique among all loads."""
    streams: list[dict[str, Any]] = json.loads(resolved.core.to_json())["streams"]
    word = re.sub(r"[^A-Za-z0-9_-]+", "-", name)
    for stream in streams:
        stream["name"] = word if len(streams) == 1 else f"{word}-{stream['name']}"
    return streams


def _bounds(table: Table) -> dict[str, int]:
    return {key: most for key in LATENCIES if (most := _time(table, key)) is not None}


# --- quantities ---


def _time(table: Table, key: str) -> int | None:
    """A bound on a time, ns: nothing takes none."""
    if not table.was_given(key):
        return None
    found = table.duration_ns(key, 0)
    if not found:
        table.fail(key, "must be above 0; leave it out for no bound")
    return found


def _size(table: Table, key: str, example: str = "12TB") -> int | None:
    value = table.take(key)
    if value is None:
        return None
    text = text_of(value)
    return _parsed_size(table, key, text.removesuffix("/s").strip() if example.endswith("/s") else text)


def _parsed_size(table: Table, key: str, text: str) -> int:
    try:
        found = _core.parse_size(text)
    except _core.ConfigError as error:
        table.fail(key, str(error))
    if not found:
        table.fail(key, "must be above 0")
    return found


def _number(table: Table, key: str, low: float, high: float) -> float | None:
    """A number above `low`, at most `high`."""
    value = table.take(key)
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            table.fail(key, f"`{value}` is not a number")
    if not isinstance(value, int | float) or isinstance(value, bool) or not low < value <= high:
        table.fail(key, f"expected a number above {low:g}, at most {high:g}")
    return float(value)


def _rise(table: Table, key: str) -> float:
    """A growth: `20%`, or 0.2; may exceed 100 %."""
    value = table.take(key)
    if value is None:
        return 0.0
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*(%?)", str(value))
    if found is None or isinstance(value, bool):
        table.fail(key, "expected a growth in a year such as 20%")
    return float(found[1]) / (100 if found[2] else 1)
