"""Records for the store, different from each other and the same each time."""

from __future__ import annotations

from functools import cache

from msgspec.structs import replace

from spindle.report.terminal.progress import watching
from spindle.result.document import decode, encode
from spindle.result.record import RunRecord
from spindle.run.order import Order, carry_out
from spindle.run.targets import parse


@cache
def modelled(seed: int = 1, **options: str) -> RunRecord:
    """A short run on a modelled machine."""
    overrides = (("seed", str(seed)), ("seconds", "2"), *options.items())
    with watching(quiet=True) as watch:
        found = carry_out(Order("randomio", parse("one-sata"), overrides), watch)
    assert isinstance(found, RunRecord)
    return found


def record(number: int = 1) -> RunRecord:
    """Like a real run of its own second, without the time one takes."""
    minute, second = divmod(number, 60)
    hour, minute = divmod(minute, 60)
    day, hour = divmod(hour, 24)
    return replace(
        modelled(),
        id=f"202601{day + 1:02}T{hour:02}{minute:02}{second:02}Z-{number:06x}",
        started=f"2026-01-{day + 1:02}T{hour:02}:{minute:02}:{second:02}Z",
        seed=number,
    )


def same(one: RunRecord, other: bytes) -> bool:
    """True if a document has the same bytes as a record."""
    return encode(one) == other == encode(decode(other, "it"))
