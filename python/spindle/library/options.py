"""Options of a run, as a caller gives them, made into the objects that carry them out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from spindle import _core
from spindle.base.suggestions import meant
from spindle.base.words import listed
from spindle.host.paths import target_path
from spindle.run.bounds import parse_bounds
from spindle.run.consent import Consent
from spindle.run.curve import parse_rates
from spindle.run.engine import EngineOptions
from spindle.run.errors import Usage
from spindle.run.latency_search import LatencySearch
from spindle.run.precondition import LIMIT, Preconditioning
from spindle.run.preparation import PreflightOptions
from spindle.run.searching import DrawCurve, FindKnee, FindTarget, Search

MOST_WAIT_S = 86_400
"""Longest wait for a quiet machine."""


def consent_of(
    erase: str | os.PathLike[str] | None,
    signature: str | None,
    stacked: bool,
    shared: bool,
    confirm: Callable[[str], bool] | None,
) -> Consent:
    """The caller's consent to overwrite a device."""
    return Consent(None if erase is None else target_path(os.fspath(erase)), signature, stacked, shared, confirm)


def several(given: str | Sequence[str]) -> tuple[str, ...]:
    """The texts of an argument that takes one or more."""
    return (given,) if isinstance(given, str) else tuple(given)


def engine_of(
    *,
    engine: str,
    cpus: Sequence[int] | None,
    sqpoll: bool = False,
    iopoll: bool = False,
    timestamps: str = "request",
    tolerate_errors: bool = False,
    cpus_shared: bool = False,
) -> EngineOptions:
    """The options of the load engine."""
    return EngineOptions(
        engine=engine,
        sqpoll=sqpoll,
        iopoll=iopoll,
        timestamps=timestamps,
        tolerate_errors=tolerate_errors,
        cpus=None if cpus is None else tuple(cpus),
        cpus_shared=cpus_shared,
    )


def preflight_of(
    *, strict: bool, wait_idle: float, quiet_machine: bool, sync: str = "target", drop_caches: bool = False
) -> PreflightOptions:
    """The options of the checks before a run. Raises `Usage`."""
    within(wait_idle, "`wait_idle=`", 0, MOST_WAIT_S)
    return PreflightOptions(
        strict=strict,
        sync_machine=sync == "machine",
        drop_caches=drop_caches,
        wait_idle_s=wait_idle,
        quiet_machine=quiet_machine,
    )


def bytes_of(size: str | int, name: str) -> int:
    """A size above 0 as bytes: 4096 or "4KiB". Raises `Usage`; `name`: the argument that gave it."""
    try:
        found = _core.parse_size(str(size))
    except _core.ConfigError as error:
        raise Usage(f"{name} {error}") from None
    if found <= 0:
        raise Usage(f"{name} {size}: must be more than 0")
    return found


def within(value: float, name: str, least: float, most: float) -> None:
    """Refuse a number outside this range. Raises `Usage`."""
    if not least <= value <= most:
        raise Usage(f"{name} {value}: is not a number from {least:g} to {most:g}")


def between(value: float, name: str, above: float, below: float) -> None:
    """Refuse a number that is not between these two. Raises `Usage`."""
    if not above < value < below:
        raise Usage(f"{name} {value}: is not a number between {above:g} and {below:g}")


def one_of(value: str, name: str, known: Sequence[str]) -> None:
    """Refuse a word that is not among these. Raises `Usage`, with the nearest."""
    if value not in known:
        raise Usage(f"{name} {value}: {meant(str(value), known, f'it is one of {listed(known)}')}")


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
