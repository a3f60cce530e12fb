"""Checks that the run did what was asked: to its end, without errors, for long enough."""

from __future__ import annotations

import errno as errno_names
import os

from spindle.base import units
from spindle.result.figures import EndedByError, Stopped
from spindle.result.figures_properties import NAMES, OPERATIONS
from spindle.result.record import Level, RunRecord, Verdict

SHORT_S = 60.0
"""A shorter run has an unreliable mean: caches and background work do not show yet."""
FEW_REQUESTS = 1000
"""Below this the 99th percentile is based on fewer than ten requests."""
HUNG_NS = 100_000_000
"""A person notices a request that takes longer than this, on any device."""


def errno_text(number: int) -> str:
    """`EIO (Input/output error)`."""
    return f"{errno_names.errorcode.get(number, f'errno {number}')} ({os.strerror(number)})"


def _asked(record: RunRecord) -> str:
    end = record.workload.end
    if end.time_ns is not None:
        return f" of {units.seconds(end.time_ns / 1e9)}"
    return ""


def interrupted(record: RunRecord) -> list[Verdict]:
    """Mark partial figures, no matter what ended the run."""
    figures = record.figures
    numbers = {"measured_s": figures.measured_s, "requests": float(figures.requests)}
    how_far = f"after {units.seconds(figures.measured_s)}{_asked(record)}, {units.count(figures.requests)} requests"
    match figures.ended_by:
        case Stopped():
            return [
                Verdict(
                    check="interrupted",
                    level=Level.INVALID,
                    evidence=f"stopped {how_far}: the figures are partial",
                    advice="run it again to its end",
                    numbers=numbers,
                )
            ]
        case EndedByError(op="verify", offset=offset):
            return [
                Verdict(
                    check="interrupted",
                    level=Level.INVALID,
                    evidence=f"ended by a wrong block at byte {offset} {how_far}: the figures are partial",
                    advice="see the verdict `verify`; without `verify_fatal=` a run goes on past wrong blocks",
                    numbers={**numbers, "offset": float(offset)},
                )
            ]
        case EndedByError(errno=number, op=op, offset=offset, len=length):
            return [
                Verdict(
                    check="interrupted",
                    level=Level.INVALID,
                    evidence=(
                        f"{_request(op, offset, length)} failed with {errno_text(number)} {how_far}: "
                        "the figures are partial"
                    ),
                    advice=_what_to_do(number, op, record),
                    numbers={**numbers, "errno": float(number), "offset": float(offset)},
                )
            ]
        case _:
            return []


def _request(op: str, offset: int, length: int) -> str:
    if op in NAMES:
        return f"{op} of name {offset}"
    return f"{op} of {units.size(length)} at byte {offset}"


def _what_to_do(number: int, op: str, record: RunRecord) -> str:
    if number in (errno_names.ENOSPC, errno_names.EDQUOT) and op in NAMES:
        return "space, inodes or the quota are used up: set fewer nrfiles or a smaller filesize"
    if number == errno_names.EOPNOTSUPP:
        if "iopoll" in record.figures.generator.features:
            return "the driver does not poll for completions: leave `iopoll=` out"
        return f"the target cannot do it: leave the {op}s out"
    return "look at the kernel log (dmesg), or go on past errors with `tolerate_errors=True`"


def errors(record: RunRecord) -> list[Verdict]:
    """Errors that the run tolerated."""
    if isinstance(record.figures.ended_by, EndedByError):
        return []
    found = [error for stream in record.figures.streams for error in stream.errors]
    total = sum(error.count for error in found)
    if not total:
        return [Verdict(check="errors", level=Level.OK, evidence="no I/O errors", numbers={"errors": 0})]
    share = total / max(1, total + record.figures.requests)
    first = found[0]
    kinds = ", ".join(f"{error.count} x {error.op}: {errno_text(error.errno)}" for error in found)
    return [
        Verdict(
            check="errors",
            level=Level.INVALID if share > 0.01 else Level.WARN,
            evidence=f"{units.percent(share)} of the requests failed ({kinds}), the first at "
            f"{'name' if first.op in NAMES else 'byte'} {first.first_offset}",
            advice="look at the kernel log (dmesg) and at the drive's SMART data before trusting any figure of it",
            numbers={"errors": float(total), "share": share},
        )
    ]


def long_enough(record: RunRecord) -> list[Verdict]:
    """At least a minute, and enough requests for the percentiles."""
    figures = record.figures
    numbers = {"measured_s": figures.measured_s, "requests": float(figures.requests)}
    if figures.requests == 0:
        return [
            Verdict(
                check="too-short",
                level=Level.INVALID,
                evidence=f"no request was completed in {units.seconds(figures.measured_s)}",
                advice="give it more time with `seconds=`",
                numbers=numbers,
            )
        ]
    reasons = []
    if figures.measured_s < SHORT_S * 0.99:
        reasons.append(f"{units.seconds(figures.measured_s)} measured, less than {units.seconds(SHORT_S)}")
    if figures.requests < FEW_REQUESTS:
        reasons.append(f"{figures.requests} requests are too few for a 99th percentile")
    if reasons:
        return [
            Verdict(
                check="too-short",
                level=Level.WARN,
                evidence="; ".join(reasons),
                advice="measure for a minute, and several times: `seconds=60`",
                numbers=numbers,
            )
        ]
    return [
        Verdict(
            check="too-short",
            level=Level.OK,
            evidence=f"{units.seconds(figures.measured_s)}, {units.count(figures.requests)} requests",
            numbers=numbers,
        )
    ]


def late(record: RunRecord) -> list[Verdict]:
    """Requests in flight at the end are in no latency figure: a request that hung then needs a warning."""
    found = [stream.late for stream in record.figures.streams]
    longest = max((each.max_latency_ns for each in found), default=0)
    counted = max(
        (
            op.latency.max_ns
            for stream in record.figures.streams
            for name in OPERATIONS
            if (op := getattr(stream, name)) is not None
        ),
        default=0,
    )
    if longest <= max(HUNG_NS, counted):
        return []
    requests = sum(each.requests for each in found)
    return [
        Verdict(
            check="late",
            level=Level.WARN,
            evidence=(
                f"{units.count(requests)} requests were under way when the time was over; the slowest of them took "
                f"{units.duration(longest)}, the slowest of those counted {units.duration(counted)}"
            ),
            advice="a request hung at the end: its latency is in no other figure; run longer and compare the maxima",
            numbers={"requests": float(requests), "max_latency_ns": float(longest), "counted_max_ns": float(counted)},
        )
    ]


def null_target(record: RunRecord) -> list[Verdict]:
    """Figures of the null target are those of the generator; the verdict says so."""
    requests = record.figures.requests
    cpu = record.figures.cpu
    per_request = (cpu.user_ns + cpu.system_ns) / requests if requests else 0.0
    return [
        *interrupted(record),
        Verdict(
            check="generator-bound",
            level=Level.OK,
            evidence=f"the null target does no I/O: {per_request:.0f} ns CPU a request is the generator's own cost",
            numbers={"cpu_ns_per_request": per_request},
        ),
    ]
