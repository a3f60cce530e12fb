"""The space of a target: knobs of the catalogue that it has, fields of its machine file, and what the user adds."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from spindle import _core
from spindle.base.plain import Plain
from spindle.base.suggestions import meant
from spindle.campaign.prepare import place_of
from spindle.knobs.catalogue import DEPTH, ELEVATORS, IOSCHED, KNOBS, READ_AHEAD, SCHEDULER, Knob, Scope, knob
from spindle.knobs.errors import KnobUsage
from spindle.knobs.files import Files
from spindle.knobs.places import KnobFolder, named
from spindle.knobs.tuned import RANGES, Scale, Trade, TuneRange, elevators_of, has_knob
from spindle.run.errors import Usage
from spindle.run.targets import MachineTarget, OnKernel, Target
from spindle.tune.levels import parsed, spaced

AS_FOUND = "as-found"
"""Level that leaves a setting as it is, where its value is not known: a default of the kernel or of the model."""
_PATHS = ("options", "machine", "filesystem", "knobs")
"""Settings of a plan that are named with a path: `machine.array.chunk`."""
_MODELLED = (SCHEDULER, DEPTH, "max_sectors_kb", "queue_depth", "write_cache")
"""Knobs of queues and drives that every modelled machine has."""
_PARITY = ("raid4", "raid5", "raid6")


@dataclass(frozen=True, kw_only=True)
class Dimension(Plain):
    """One setting that a search may move."""

    name: str
    sets: str
    """Key of the plan: `knobs.scheduler`, `machine.array.chunk`, `options.depth`."""
    levels: tuple[str, ...]
    start: str
    """Level in force."""
    scale: Scale
    trade: Trade
    unit: str = ""
    about: str = ""
    kernels: str = ""
    """First kernel that has it, or first-last."""
    left_out: str = ""
    """Reason why the search leaves it alone; empty: it is moved."""
    only_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Dimension -> levels at which this one has an effect; empty: always."""

    @property
    def moves(self) -> bool:
        """True if the search moves it."""
        return not self.left_out


def dimensions(
    target: Target,
    asked: Sequence[str] = (),
    *,
    allow: Collection[str] = (),
    only: bool = False,
    is_buffered: bool = False,
) -> list[Dimension]:
    """The space of a target. `asked`: `NAME=RANGE`; `allow`: trades that the search may make; `only`: nothing but what
    was asked for; `is_buffered`: the load goes through the page cache. Raises Usage or KnobUsage.
    """
    source: _Settings = _ModelSettings(target) if target.is_modelled else _DeviceSettings(target)
    found = {one.name: one for one in _of_target(source, is_buffered)}
    named_ones = set()
    for word in asked:
        one = _asked(word, found, source)
        found[one.name] = one
        named_ones.add(one.name)
    for trade in allow:
        if trade not in (Trade.DURABILITY, Trade.MEMORY):
            raise Usage(f"`allow=` {trade}: it is {Trade.DURABILITY} or {Trade.MEMORY}")
    judged = [_judged(one, allow, only and one.name not in named_ones) for one in found.values()]
    return [_with_rules(one, judged) for one in judged]


def _judged(one: Dimension, allow: Collection[str], is_other: bool) -> Dimension:
    if is_other:
        return replace(one, left_out="not named")
    if one.trade is Trade.DURABILITY and one.trade not in allow:
        return replace(one, left_out="trades durability: needs `allow=durability`")
    if len(one.levels) < 2:
        return replace(one, left_out=f"has no level but {one.levels[0]}" if one.levels else "has no level")
    return one


def _with_rules(one: Dimension, every: Sequence[Dimension]) -> Dimension:
    """Parameters of elevators have an effect only with their elevator."""
    schedulers = _schedulers_of(one.name)
    elevator = next((other for other in every if other.name == SCHEDULER), None)
    if not schedulers or elevator is None:
        return one
    there = tuple(level for level in elevator.levels if level in schedulers)
    if elevator.start in schedulers and not elevator.moves:
        return one
    if not there or not elevator.moves:
        return replace(one, left_out=one.left_out or f"needs the scheduler {' or '.join(schedulers)}")
    return replace(one, only_with={SCHEDULER: there})


def _schedulers_of(name: str) -> tuple[str, ...]:
    found = next((one for one in KNOBS if _name(one) == name), None)
    return found.schedulers if found is not None else ()


# --- what a target has ---------------------------------------------------------------------------------------------


class _ModelSettings:
    """Settings of a modelled machine."""

    def __init__(self, target: Target) -> None:
        self._has_kernel = isinstance(target, OnKernel)
        machine = target.machine if isinstance(target, OnKernel) else target
        assert isinstance(machine, MachineTarget)
        text = machine.read()
        self._facts = msgspec.json.decode(_core.Machine.parse(text, target.asked).to_json())
        self._file: dict[str, Any] = tomllib.loads(text)

    def names(self) -> list[str]:
        """Knobs."""
        array = [] if self._level not in _PARITY else ["stripe_cache_size"]
        kernel = str(self._facts["kernel"])
        elevators = [one.id for one in KNOBS if one.name.startswith(IOSCHED) and has_knob(kernel, one)]
        return [*_MODELLED, *array, *elevators, *([READ_AHEAD] if self._has_kernel else [])]

    def start(self, one: Knob) -> str | None:
        """The value in force; None: the model's default."""
        if one.name == SCHEDULER:
            names = self._facts["schedulers"]
            return str(names[0]) if len(names) == 1 else None
        value = self._written(one.name)
        if isinstance(value, bool):
            return "1" if value else "0"
        return str(value) if isinstance(value, int) else None

    def choices(self, one: Knob, levels: Sequence[str]) -> list[str]:
        """The levels that there are."""
        return elevators_of(str(self._facts["kernel"])) if one.name == SCHEDULER else list(levels)

    def elevators(self) -> list[str]:
        """Elevators that may be chosen."""
        return elevators_of(str(self._facts["kernel"]))

    def fields(self) -> Iterator[Dimension]:
        """Fields of the machine file."""
        array = self._file.get("array", {})
        if self._level in ("raid0", "raid4", "raid5", "raid6", "raid10"):
            chunks = tuple(f"{1 << at}KiB" for at in range(2, 13, 2))
            yield _field("array.chunk", chunks, array.get("chunk"), "Bytes on one member before the next one's turn.")
        if self._level == "raid10":
            layouts = ("n2", "f2", "o2")
            yield _field("array.layout", layouts, array.get("layout"), "Places of the copies.")

    @property
    def _level(self) -> str:
        return str(self._facts["level"] or "")

    def _written(self, name: str) -> object:
        if name == "queue_depth":
            return next((drive.get("queue_depth") for drive in self._file.get("drive", [])), None)
        table = {"stripe_cache_size": "array"}.get(name, "queue")
        return self._file.get(table, {}).get(name)


class _DeviceSettings:
    """Settings of a device, or of the disk under a file or folder."""

    def __init__(self, target: Target) -> None:
        self._folder: KnobFolder | None = place_of(target)
        self._files = Files()

    def names(self) -> list[str]:
        """Knobs."""
        if self._folder is None:
            return []
        there = [one.id for one in self._folder.knobs(self._files)]
        others = [one.id for one in KNOBS if set(one.schedulers) & set(self.elevators()) and one.id not in there]
        return [*there, *others]

    def start(self, one: Knob) -> str | None:
        """The value in force; None: it has none at the moment."""
        place = self._folder if one.scope is Scope.DEVICE else named(one.scope)
        return place.value(one, self._files) if place is not None else None

    def choices(self, one: Knob, levels: Sequence[str]) -> list[str]:
        """The levels that there are."""
        offered = self._folder.offered(one, self._files) if self._folder is not None else []
        return offered or list(levels)

    def elevators(self) -> list[str]:
        """Elevators that may be chosen."""
        return self._folder.offered(knob(SCHEDULER), self._files) if self._folder is not None else []

    def fields(self) -> Iterator[Dimension]:
        """A device has no machine file."""
        return iter(())


_Settings = _ModelSettings | _DeviceSettings


def _of_target(source: _Settings, is_buffered: bool) -> Iterator[Dimension]:
    for name in dict.fromkeys(source.names()):
        known = RANGES.get(name)
        if known is None or known.on_request or (name == READ_AHEAD and not is_buffered):
            continue
        one = knob(name)
        if one.schedulers and not set(one.schedulers) & set(source.elevators()):
            continue
        yield _of_knob(one, known, source)
    yield from source.fields()


def _of_knob(one: Knob, known: TuneRange, source: _Settings, levels: Sequence[str] = ()) -> Dimension:
    plain = [str(number) for number in spaced(known.low, known.high, known.scale)] if not known.values else []
    wanted = list(levels) or source.choices(one, known.values) or plain
    if not levels and known.scale is not Scale.CHOICE:
        wanted = plain
    start = source.start(one)
    return Dimension(
        name=_name(one),
        sets=f"knobs.{one.id}",
        levels=_with_start(wanted, start),
        start=start if start is not None else AS_FOUND,
        scale=known.scale,
        trade=known.trade,
        unit=one.unit,
        about=one.about,
        kernels=one.since,
    )


def _name(one: Knob) -> str:
    """Its name in a plan and in selections of a store, which use `/` themselves: `iosched.fifo_batch`."""
    return one.id.replace(IOSCHED, "iosched.")


def _with_start(levels: Sequence[str], start: str | None) -> tuple[str, ...]:
    if start is None:
        return (AS_FOUND, *levels)
    if start in levels:
        return tuple(levels)
    if start.lstrip("-").isdigit() and all(level.lstrip("-").isdigit() for level in levels):
        return tuple(sorted((*levels, start), key=int))
    return (start, *levels)


def _field(path: str, levels: tuple[str, ...], start: object, about: str) -> Dimension:
    known = str(start) if start is not None else None
    if known is not None and known not in levels and path == "array.chunk":
        sizes = {level: _core.parse_size(level) for level in (*levels, known)}
        levels = tuple(sorted((level for level in sizes if sizes[level] != sizes[known] or level == known),
                              key=sizes.__getitem__))  # fmt: skip
    return Dimension(
        name=path,
        sets=f"machine.{path}",
        levels=_with_start(levels, known),
        start=known if known is not None else AS_FOUND,
        scale=Scale.LOG if path == "array.chunk" else Scale.CHOICE,
        trade=Trade.PERFORMANCE,
        about=f"{about} Chosen when the array is made.",
    )


# --- what the user asks for ----------------------------------------------------------------------------------------


def _asked(word: str, found: Mapping[str, Dimension], source: _Settings) -> Dimension:
    name, equals, text = word.partition("=")
    name = name.strip()
    if not equals or not name or not text.strip():
        raise Usage(f"`knob=` {word}: not NAME=RANGE; write for example read_ahead_kb=64..16384:log")
    levels, scale = parsed(text, word)
    plain = name.removeprefix("machine.")
    if plain in found and found[plain].sets.startswith("machine."):
        one = found[plain]
        start = one.start
        return replace(one, levels=_with_start(levels, None if start == AS_FOUND else start), scale=scale)
    if name.partition(".")[0] in _PATHS and "." in name:
        return Dimension(
            name=name,
            sets=name,
            levels=(AS_FOUND, *levels),
            start=AS_FOUND,
            scale=scale,
            trade=Trade.PERFORMANCE,
        )
    setting = _knob(name, found)
    for level in levels:
        if setting.values.parse(level) is None:
            takes = setting.values.range
            raise KnobUsage(f"`knob=` {word}: {level} is not a value of {setting.id}; it takes {takes}")
    known = RANGES.get(setting.id) or TuneRange(scale)
    return replace(_of_knob(setting, known, source, levels), scale=scale)


def _knob(name: str, found: Mapping[str, Dimension]) -> Knob:
    try:
        return knob(name)
    except KnobUsage:
        names = [*found, *RANGES, *ELEVATORS]
        hint = meant(name, names, "`spindle knobs list` shows the knobs; keys are options.KEY, fields machine.FIELD")
        raise KnobUsage(f"`knob=` no knob `{name}`; {hint}") from None
