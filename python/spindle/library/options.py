"""Options of a run, as a caller gives them, made into the objects that carry them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from spindle import _core
from spindle.run.bounds import parse_bounds
from spindle.run.curve import parse_rates
from spindle.run.errors import Usage
from spindle.run.latency_search import LatencySearch
from spindle.run.precondition import LIMIT, Preconditioning
from spindle.run.searching import DrawCurve, FindKnee, FindTarget, Search


def text_of(value: object) -> str:
    """A value of a workload key as its text: True is `true`, 64 is `64`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def overrides_of(keys: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Workload keys as the core takes them: `workers=48`, or of one stream, `**{"log.size": "64KiB"}`."""
    return tuple((key, text_of(value)) for key, value in keys.items())


def search_of(
    *,
    find_knee: bool = False,
    latency_target: Sequence[str] = (),
    search: Literal["depth", "rate"] | None = None,
    curve: bool = False,
    rates: str | None = None,
    spacing: str | None = None,
) -> Search | None:
    """Many runs instead of one; None: nothing of the kind was asked for. Raises `Usage`."""
    wanted = {"find_knee": find_knee, "latency_target": bool(latency_target), "curve": curve or bool(rates)}
    given = [f"`{name}=`" for name, is_wanted in wanted.items() if is_wanted]
    if len(given) > 1:
        raise Usage(f"{' and '.join(given)}: each is a search of its own; give one of them")
    if search is not None and not latency_target:
        raise Usage("`search=`: it says how a latency target is searched for; give `latency_target=` p99:5ms")
    if find_knee:
        return FindKnee()
    if latency_target:
        return FindTarget(LatencySearch(tuple(parse_bounds(latency_target)), search or "depth", spacing=spacing))
    return DrawCurve(parse_rates(rates) if rates else (), spacing) if given else None


def preconditioning_of(
    *, precondition: bool = False, precondition_anyway: bool = False, precondition_time: str | None = None
) -> Preconditioning | None:
    """Fill flash and write at random until steady, before it is measured; None: it is not asked for. Raises `Usage`."""
    if not precondition and not precondition_anyway:
        if precondition_time is not None:
            raise Usage("`precondition_time=`: nothing is preconditioned; it goes with `precondition=`")
        return None
    try:
        seconds = _core.parse_duration(precondition_time or LIMIT)
    except _core.ConfigError as error:
        raise Usage(f"`precondition_time=`: {error}; write for example 25m") from None
    if seconds <= 0:
        raise Usage("`precondition_time=`: must be above 0")
    return Preconditioning(precondition_anyway, precondition_time or LIMIT)
