"""Purposes of an array: the weights of its figures, and the chunk that suits the load."""

from __future__ import annotations

from msgspec import Struct

KIB = 1 << 10


class Purpose(Struct, frozen=True, kw_only=True):
    """A use of storage. The weights are exponents: a figure that is twice as good counts 2 ** weight."""

    name: str
    about: str
    random: float
    """Weight of random requests a second."""
    write_fraction: float
    """Share of the random requests that write."""
    stream_reads: float
    stream_writes: float
    capacity: float
    """Weight of usable bytes."""
    chunk: int
    """Bytes."""
    chunk_reason: str
    far: bool
    """A far layout is considered: it reads one stream as RAID0 does and writes slower."""


_LARGE = "requests of up to 26 KiB in the mean cross the boundary of a 512 KiB chunk in 5 % of the cases or fewer"
_SMALL = "a full stripe of parity arrays is written without reads; small chunks keep it within the stripe cache"

PURPOSES = (
    Purpose(
        name="database",
        about="random reads and writes of a few KiB",
        random=1.0,
        write_fraction=0.2,
        stream_reads=0.0,
        stream_writes=0.0,
        capacity=0.25,
        chunk=512 * KIB,
        chunk_reason=_LARGE,
        far=False,
    ),
    Purpose(
        name="mixed",
        about="random requests beside streams, as on a file server or a virtual machine host",
        random=0.5,
        write_fraction=0.3,
        stream_reads=0.25,
        stream_writes=0.25,
        capacity=0.5,
        chunk=512 * KIB,
        chunk_reason=_LARGE,
        far=True,
    ),
    Purpose(
        name="stream",
        about="large files read and written from start to end",
        random=0.0,
        write_fraction=0.3,
        stream_reads=0.5,
        stream_writes=0.5,
        capacity=0.5,
        chunk=128 * KIB,
        chunk_reason=_SMALL,
        far=True,
    ),
    Purpose(
        name="archive",
        about="much data, written once and seldom read",
        random=0.0,
        write_fraction=0.1,
        stream_reads=0.15,
        stream_writes=0.15,
        capacity=1.0,
        chunk=128 * KIB,
        chunk_reason=_SMALL,
        far=False,
    ),
)
NAMES = tuple(purpose.name for purpose in PURPOSES)


def purpose_of(name: str) -> Purpose:
    """Return a purpose by its name. Raises `KeyError`."""
    return next((purpose for purpose in PURPOSES if purpose.name == name), None) or _missing(name)


def _missing(name: str) -> Purpose:
    raise KeyError(name)
