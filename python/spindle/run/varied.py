"""Runs a workload with each combination of values of its keys, one after another.

Each combination is independent: its files are made new and removed, its target is opened, checked and closed. All
results form one record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from msgspec.structs import replace as with_fields

from spindle import _core
from spindle.base import units
from spindle.host.errors import TargetError
from spindle.host.signals import Stopped
from spindle.result.phases import figures_of
from spindle.result.record import (
    MODELLED_START,
    Level,
    PhaseFigures,
    PhasesRecord,
    RunRecord,
    Tool,
    Variation,
    Verdict,
    model_id,
    new_id,
    utc_now,
)
from spindle.result.target import Target
from spindle.run import order
from spindle.run.errors import RunFailed, Usage
from spindle.run.order import Order
from spindle.run.resolve import ResolvedWorkload
from spindle.run.watch import Watch

MOST = 1000
"""Most combinations of one command."""
_RANGE = ".."
_BETWEEN_LISTS = ";"
"""Separates values if some contain commas."""
_LISTS = ("size", "write_size", "filesize", "zones", "write_zones")
"""Keys whose values may contain commas."""


def parse(given: Sequence[str]) -> list[Variation]:
    """`size=4KiB,64KiB`, `depth=1..64` (doubling), `size=4KiB:70,64KiB:30;1MiB`. Raises Usage."""
    found: list[Variation] = []
    for text in given:
        key, equals, values = text.partition("=")
        key = key.strip()
        if not equals or not key or not values.strip():
            raise Usage(f"`vary=`: {text!r} is not KEY=VALUE,VALUE; write for example size=4KiB,64KiB or depth=1..64")
        if any(key == other.key for other in found):
            raise Usage(f"`vary=`: {key} is varied twice; give all its values at once")
        found.append(Variation(key=key, values=list(dict.fromkeys(_values(key, values)))))
    count = prod(len(variation.values) for variation in found)
    if count > MOST:
        raise Usage(f"`vary=`: {count} combinations are too many; at most {MOST} are carried out by one command")
    return found


def _values(key: str, text: str) -> Iterator[str]:
    separator = _BETWEEN_LISTS if _BETWEEN_LISTS in text else ","
    for part in text.split(separator):
        value = part.strip()
        if not value:
            raise Usage(f"`vary=`: {key} has an empty value in {text!r}; leave the separator out")
        if separator == "," and separator in text and ":" in value and key.rpartition(".")[2] in _LISTS:
            raise Usage(f"`vary=`: {key}: values such as {value} have commas of their own; separate them by ;")
        if _RANGE in value:
            yield from _doubling(key, value)
        else:
            yield value


def _doubling(key: str, text: str) -> Iterator[str]:
    first, _, last = text.partition(_RANGE)
    try:
        low, high = _core.parse_size(first.strip()), _core.parse_size(last.strip())
    except _core.ConfigError as error:
        raise Usage(f"`vary=`: {key}: {text} is no range ({error}); write for example 4KiB..1MiB or 1..64") from None
    if not 0 < low <= high:
        raise Usage(
            f"`vary=`: {key}: {text} goes from {first} on, which is doubled up to {last}; begin with the smaller"
        )
    plain = first.strip().isdigit() and last.strip().isdigit()
    while low <= high:
        yield str(low) if plain else units.exact_size(low)
        low *= 2


def combinations(varied: Sequence[Variation]) -> Iterator[dict[str, str]]:
    """Yield combinations; the last key changes fastest."""
    for values in product(*(variation.values for variation in varied)):
        yield dict(zip((variation.key for variation in varied), values, strict=True))


def carry_out(asked: Order, varied: Sequence[Variation], watch: Watch) -> PhasesRecord:
    """Run all combinations. Raises as the first combination; a later one that fails ends the rest. Combinations that
    do not fit their files (records larger than the file) are left out with a note.
    """
    _refuse(asked)
    cells = list(combinations(varied))
    for cell in cells:  # invalid values are an error before the first one begins
        asked.resolved(_overrides(asked, cell))
    done = _Results(asked.resolved(asked.overrides), list(varied), len(cells))
    for number, cell in enumerate(cells, 1):
        watch.step(f"{number} of {len(cells)}: {words(cell)}")
        try:
            record = order.carry_out(_order(asked, cell, done.target is None), watch)
        except _core.ConfigError as error:
            done.left_out.append((cell, error))
        except Stopped:
            done.end(cell, "stopped")
            if done.target is None:
                raise
        except (_core.RunError, TargetError, RunFailed) as error:
            done.end(cell, f"failed: {error}")
            if done.target is None:
                raise
        else:
            assert isinstance(record, RunRecord | PhasesRecord)  # searches are refused
            done.add(cell, record)
        if done.ended is not None:
            break
    return done.record()


def words(cell: dict[str, str]) -> str:
    """`size=4KiB, filesize=64MiB`."""
    return ", ".join(f"{key}={value}" for key, value in cell.items())


def _refuse(asked: Order) -> None:
    """Raise Usage for options that concern a single run."""
    single = {
        "log": asked.engine_options.log is not None,
        "trace": asked.trace is not None,
        "verify_state": asked.verify_state is not None,
        "keep": asked.keep,
    }
    for option, given in single.items():
        if given:
            raise Usage(f"`vary=`: each combination is a run of its own, with files of its own; leave `{option}=` out")
    if asked.search is not None:
        raise Usage(f"`vary=`: `{asked.search.option}=` is many runs already; give one of them")


def _overrides(asked: Order, cell: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return (*asked.overrides, *cell.items())


def _order(asked: Order, cell: dict[str, str], first: bool) -> Order:
    consent = asked.consent if first else asked.consent.after_writing()
    return replace(asked, overrides=_overrides(asked, cell), consent=consent)


@dataclass
class _Results:
    """The results so far."""

    resolved: ResolvedWorkload
    varied: list[Variation]
    combinations: int
    id: str = field(default_factory=new_id)
    started: str = field(default_factory=utc_now)
    complete: int = 0
    phases: list[PhaseFigures] = field(default_factory=list)
    runs: list[RunRecord] = field(default_factory=list)
    target: Target | None = None
    """The largest: files may have had several sizes."""
    left_out: list[tuple[dict[str, str], _core.ConfigError]] = field(default_factory=list)
    ended: str | None = None
    """Place and reason of an early end."""

    def add(self, cell: dict[str, str], record: RunRecord | PhasesRecord) -> None:
        """Add one combination."""
        runs = [record] if isinstance(record, RunRecord) else record.runs
        self.phases += [with_fields(figures_of(run), varied=cell) for run in runs]
        self.runs += runs
        if self.target is None or record.target.size_bytes > self.target.size_bytes:
            self.target = record.target
        broken = next((verdict for verdict in record.verdicts if verdict.check == "interrupted"), None)
        if broken is not None:
            self.end(cell, broken.evidence)
        else:
            self.complete += 1

    def end(self, cell: dict[str, str], why: str) -> None:
        """End before all combinations are done."""
        self.ended = f"{words(cell)}: {why}"

    def record(self) -> PhasesRecord:
        """The record. Raises the reason if nothing was done."""
        if self.target is None:
            raise self.left_out[0][1]
        run_id, started = self.id, self.started
        if self.target.traits.is_modelled:
            cells = repr([(each.run, each.varied) for each in self.phases])
            run_id, started = model_id(repr(self.varied), cells), MODELLED_START
        return PhasesRecord(
            id=run_id,
            started=started,
            tool=Tool(version=_core.__version__),
            workload=self.resolved.spec,
            request=self.resolved.request,
            varied=self.varied,
            target=self.target,
            phases=self.phases,
            runs=self.runs,
            verdicts=list(self._verdicts()),
        )

    def _verdicts(self) -> Iterator[Verdict]:
        numbers = {"complete": float(self.complete), "combinations": float(self.combinations)}
        so_far = f"{self.complete} of {self.combinations} combinations"
        if self.ended is not None:
            yield Verdict(
                check="interrupted",
                level=Level.INVALID,
                evidence=f"{self.ended}; {so_far} are complete",
                advice="run it again to its end",
                numbers=numbers,
            )
        if self.left_out:
            cell, error = self.left_out[0]
            also = f", and {len(self.left_out) - 1} more" if len(self.left_out) > 1 else ""
            yield Verdict(
                check="combinations",
                level=Level.WARN,
                evidence=f"{so_far} could be carried out; left out: {words(cell)} ({error}){also}",
                advice="leave out values that do not fit each other, or take them as they are",
                numbers=numbers,
            )
        if self.ended is None and not self.left_out:
            yield Verdict(
                check="combinations",
                level=Level.OK,
                evidence=f"all {self.combinations} combinations were carried out",
                numbers=numbers,
            )
