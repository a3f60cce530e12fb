"""The seam between the measured cases and what repeats them. A case that a runner cannot repeat is `NotModelled`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from spindle.validation.kernel.cases import Case


class MemberFigures(Struct, frozen=True, kw_only=True):
    """Requests that reached one drive, without flushes and md's metadata; sectors of 512 bytes."""

    device: str
    """`vda`, `vdb` ... in the order of the slots."""
    reads: int
    writes: int
    read_sizes: dict[int, int]
    """Sectors -> requests of this length."""
    write_sizes: dict[int, int]
    read_sectors: int | None = None
    write_sectors: int | None = None
    order_sha1: str | None = None
    """First 16 digits of the SHA-1 over `op sector sectors` lines of all requests in their order."""
    trace_sha1: str | None = None
    """The same with the time of arrival in front."""


class LoadFigures(Struct, frozen=True):
    """One process: requests and times in ns, from its first submission to its last completion."""

    requests: int
    elapsed_ns: int
    mean_latency_ns: int
    max_latency_ns: int


class CaseFigures(Struct, frozen=True, kw_only=True):
    """The figures of a case, measured or repeated."""

    elapsed_ns: int
    members: list[MemberFigures]
    loads: list[LoadFigures]


class Runner(Protocol):
    """Repeats cases."""

    name: str
    """For people: `simulator`."""
    jobs: int
    """Cases at a time; `figures` is called from as many threads."""
    is_exact: bool
    """True if it should repeat every request at its nanosecond."""

    def figures(self, case: Case) -> CaseFigures:
        """Repeat a case. Raises NotModelled."""
