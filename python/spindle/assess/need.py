"""A need: the numbers that a user gives, and the load that they make."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from spindle import _core
from spindle.assess.purpose import PURPOSES, Amount, Purpose, every_key
from spindle.base.numbers import written
from spindle.base.suggestions import meant
from spindle.base.words import listed
from spindle.result.search import Bound
from spindle.result.workload import Open, WorkloadStream
from spindle.run.bounds import needed
from spindle.run.errors import Usage
from spindle.run.resolve import ResolvedWorkload, resolve_text

PERCENTILE = 99.0
SECONDS = 60.0
"""Length of the run at the need, unless it must be longer."""
MOST_SECONDS = 600.0
LEAST_SECONDS = 1.0
REQUESTS = 2000
"""Requests of each bound in the run at the need, if it need not be longer than ten minutes for them."""
MODELLED_REQUESTS = 20_000
"""The same on a modelled machine, whose time costs little."""
SPARE = 1.5
"""Requests of the other runs, as a multiple of the fewest that show that a percentile holds."""
MOST = 1e12
MOST_CLIENTS = 10_000
LOG_SHARE = 0.05
"""Share of the target before the data, for logs; the presets have it too."""
_STREAM = re.compile(r"^(?=\[\[stream\]\])", re.M)
_NAME = re.compile(r'^name = "([^"]+)"$', re.M)
_BITS = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kMG]?)(?:bit(?:/s)?|bps)")
_PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}


@dataclass(frozen=True)
class Need:
    """A need for a purpose."""

    purpose: Purpose
    amounts: Mapping[str, float]
    """Bytes and bits a second for rates of these kinds."""
    limits_ns: Mapping[str, int]
    given: frozenset[str]
    """Names of the numbers that the user gave; the others are defaults."""
    seconds: float | None = None
    data_bytes: int | None = None
    """Size of the data; None: the whole target."""
    requests: int = REQUESTS
    """Requests of each bound in the run at the need, unless `seconds` sets its length."""

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the streams of the load: those that the need makes none of are left out."""
        counted = {**self.purpose.clients, **self.purpose.workers}
        return tuple(
            name
            for name, keys in self.purpose.scales.items()
            if all(self.amounts[key] > 0 for key in (*keys, *([counted[name]] if name in counted else [])))
        )

    def load(self, multiple: float = 1.0, only: str | None = None) -> ResolvedWorkload:
        """The load at a multiple of the need, or one of its streams alone."""
        base = _preset(self.purpose.preset, self.streams if only is None else (only,))
        seconds = self.length_s if multiple == 1 else self._step_s(multiple)
        return base.with_overrides([*self._options(base, multiple), ("seconds", f"{seconds:g}")])

    @property
    def length_s(self) -> float:
        """Length of the run at the need, s: long enough for the rarest bounded request."""
        if self.seconds is not None:
            return self.seconds
        return min(MOST_SECONDS, max(SECONDS, 10 * math.ceil(self.requests / self._rarest_iops / 10)))

    def _step_s(self, multiple: float) -> float:
        """Length of another run, s: half of that at the need, if this is long enough for the rarest request. A
        multiple has as many requests in less time.
        """
        if self.seconds is not None:
            return max(LEAST_SECONDS, self.seconds / 2)
        half = max(SECONDS / 2, self.length_s / 2 / max(1.0, multiple))
        fewest = SPARE * max(needed(bound) for bound in self.bounds) / (self._rarest_iops * multiple)
        return min(MOST_SECONDS, max(half, math.ceil(fewest)))

    @property
    def _rarest_iops(self) -> float:
        """The smallest rate of the requests of a bound."""
        return min(self._bounded_iops(bound) for bound in self.bounds)

    @property
    def bounds(self) -> list[Bound]:
        """The bounds on latency, each on one stream."""
        found = [
            Bound(
                operation=limit.operation,
                percentile=PERCENTILE,
                limit_ns=self.limits_ns[limit.key] // limit.in_turn,
                stream=name,
            )
            for limit in self.purpose.limits
            for name in limit.streams
            if name in self.streams
        ]
        if self.purpose.in_a_period:
            found += [
                Bound(operation="all", percentile=PERCENTILE, limit_ns=self._period_ns(stream), stream=stream.name)
                for stream in self._base.spec.streams
            ]
        return found

    def clients(self, multiple: float) -> tuple[int, ...] | None:
        """Workers of the streams with clients; None: the need has none, and any multiple can be offered."""
        if not self.purpose.clients:
            return None
        return tuple(self._clients(name, multiple) for name in self.purpose.clients if name in self.streams)

    @property
    def _base(self) -> ResolvedWorkload:
        return _preset(self.purpose.preset, self.streams)

    def _clients(self, stream: str, multiple: float) -> int:
        return max(1, round(self.amounts[self.purpose.clients[stream]] * multiple))

    def _scale(self, stream: str) -> float:
        """The rate at the need, as a multiple of the preset's."""
        keys = self.purpose.scales[stream]
        return math.prod(self.amounts[each.key] / each.default for each in self.purpose.amounts if each.key in keys)

    def _iops(self, stream: WorkloadStream, multiple: float) -> float:
        """Requests a second of all workers of a stream of the preset."""
        rate = _rate(stream) * self._scale(stream.name)
        if stream.name in self.purpose.clients:
            return rate / stream.workers * self._clients(stream.name, multiple)
        return rate * multiple

    def _period_ns(self, stream: WorkloadStream) -> int:
        return round(1e9 * stream.workers / (_rate(stream) * self._scale(stream.name)))

    def _bounded_iops(self, bound: Bound) -> float:
        """Requests a second that a bound is about."""
        stream = next(each for each in self._base.spec.streams if each.name == bound.stream)
        share = {"read": 1 - stream.mix.write, "write": stream.mix.write}.get(bound.operation, 1.0)
        return share * self._iops(stream, 1.0)

    def _options(self, base: ResolvedWorkload, multiple: float) -> list[tuple[str, str]]:
        found = []
        for stream in base.spec.streams:
            workers = stream.workers
            if stream.name in self.purpose.clients:
                workers = self._clients(stream.name, multiple)
            elif stream.name in self.purpose.workers:
                workers = round(self.amounts[self.purpose.workers[stream.name]])
            found.append((f"{stream.name}.workers", str(workers)))
            found.append((f"{stream.name}.rate", f"{written(self._iops(stream, multiple))} IOPS"))
        return found


def _rate(stream: WorkloadStream) -> float:
    assert isinstance(stream.arrival, Open)
    return stream.arrival.rate_iops


@cache
def _preset(name: str, streams: tuple[str, ...]) -> ResolvedWorkload:
    """A preset with these of its streams."""
    head, *parts = _STREAM.split(_core.preset_text(name))
    kept = [each for each in parts if (found := _NAME.search(each)) is not None and found[1] in streams]
    return resolve_text(head + "".join(kept), f"preset {name}", name)


# --- what a user gives -----------------------------------------------------------------------------------------------


def need_of(
    purpose: str, given: Mapping[str, object], seconds: float | None = None, data: str | int | None = None
) -> Need:
    """The need of a purpose with these numbers; None is the default. Raises `Usage`."""
    if purpose not in PURPOSES:
        raise Usage(f"`for=` {purpose}: {meant(purpose, PURPOSES, f'it is one of {listed(list(PURPOSES))}')}")
    wanted = PURPOSES[purpose]
    there = {key: value for key, value in given.items() if value is not None}
    _refuse_others(wanted, there)
    need = Need(
        purpose=wanted,
        amounts={each.key: _amount(each, there.get(each.key, each.default)) for each in wanted.amounts},
        limits_ns={
            each.key: each.default_ns if each.key not in there else _limit(each.key, there[each.key])
            for each in wanted.limits
        },
        given=frozenset(there),
        seconds=_seconds(seconds),
        data_bytes=None if data is None else _data(data),
    )
    if not need.streams:
        raise Usage(f"{_keys(each.key for each in wanted.amounts if each.may_be_none)}: one of them must be above 0")
    for key in there:
        limit = next((each for each in wanted.limits if each.key == key), None)
        if limit is not None and not set(limit.streams) & set(need.streams):
            raise Usage(f"`{key}=`: the load has no such requests; leave it out")
    return need


def words_of(purpose: Purpose, numbers: Mapping[str, float]) -> dict[str, str]:
    """The numbers of a need as `need_of` takes them."""
    found = {each.key: f"{numbers[each.key]:.12g}{_UNIT[each.kind]}" for each in purpose.amounts if each.key in numbers}
    return found | {each.key: f"{numbers[each.key]:.0f}ns" for each in purpose.limits if each.key in numbers}


_UNIT = {"number": "", "bytes": "", "bits": "bit/s"}


def _refuse_others(purpose: Purpose, given: Mapping[str, object]) -> None:
    for key in given:
        if key not in purpose.keys:
            assert key in every_key()
            raise Usage(f"`{key}=`: not a number of a need for {purpose.name}, which has {_keys(purpose.keys)}")


def _keys(keys: Iterable[str]) -> str:
    return listed([f"`{key}=`" for key in keys])


def _amount(amount: Amount, value: object) -> float:
    found = _bits(amount, value) if amount.kind == "bits" else _number(amount, value)
    if found == 0 and amount.may_be_none:
        return 0.0
    least = 1.0 if amount.is_whole else 0.0
    if not (least <= found <= MOST and found > 0) or (amount.is_whole and found != int(found)):
        what = "a whole number from 1" if amount.is_whole else "a number above 0"
        raise Usage(f"`{amount.key}=` {value}: must be {what}{' (or 0)' if amount.may_be_none else ''}")
    if amount.is_whole and amount.key in ("streams", "recordings") and found > MOST_CLIENTS:
        raise Usage(f"`{amount.key}=` {value}: at most {MOST_CLIENTS}")
    return found


def _number(amount: Amount, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    text = str(value).strip()
    if amount.kind == "bytes":
        try:
            return float(_core.parse_size(text.removesuffix("/s")))
        except _core.ConfigError as error:
            raise Usage(f"`{amount.key}=` {value}: {error}; write for example 100MB/s") from None
    try:
        return float(text)
    except ValueError:
        raise Usage(f"`{amount.key}=` {value}: must be a number") from None


def _bits(amount: Amount, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    found = _BITS.fullmatch(str(value).strip())
    if found is None:
        raise Usage(f"`{amount.key}=` {value}: must be bits a second; write for example 15Mbit/s")
    return float(found[1]) * _PREFIX[found[2]]


def _limit(key: str, value: object) -> int:
    try:
        found = (
            int(value) if isinstance(value, int) and not isinstance(value, bool) else _core.parse_duration(str(value))
        )
    except _core.ConfigError as error:
        raise Usage(f"`{key}=` {value}: {error}; write for example 5ms") from None
    if found < 1000:
        raise Usage(f"`{key}=` {value}: must be at least 1us")
    return found


def _seconds(value: float | None) -> float | None:
    if value is not None and not LEAST_SECONDS <= value <= 86_400:
        raise Usage(f"`seconds=` {value:g}: must be from {LEAST_SECONDS:g} to 86400")
    return value


def _data(value: str | int) -> int:
    try:
        found = _core.parse_size(str(value))
    except _core.ConfigError as error:
        raise Usage(f"`data=` {value}: {error}; write for example 200GiB") from None
    if found < 64 << 20:
        raise Usage(f"`data=` {value}: must be at least 64MiB")
    return found
