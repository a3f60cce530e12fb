"""When requests are issued: rates, open loops, pauses."""

from __future__ import annotations

from .finding import Level
from .job import TypedJob
from .quantity import Keys, duration


def rated_directions(typed: TypedJob) -> list[int]:
    """Directions of a mixed job that are bounded on their own; none: nothing is, or the job has one direction."""
    job = typed.job
    if not job.mixed:
        return []
    return [at for at in (0, 1) if job.rates[at] or job.rates_iops[at]]


def arrival_of(typed: TypedJob, direction: int, clones: int, depth: int) -> Keys:
    """`clones`: how many share the stream; each has a rate of its own in fio."""
    job = typed.job
    keys: Keys = {}
    bytes_per_s, iops = job.rates[direction], job.rates_iops[direction]
    if bytes_per_s and iops:
        typed.say(Level.ERROR, "rate", "beside rate_iops; give one of them")
    elif job.poisson and (bytes_per_s or iops):
        keys |= _open_loop(typed, direction, bytes_per_s, iops, clones)
    elif bytes_per_s or iops:
        keys["rate_limit"] = f"{bytes_per_s * clones} B/s" if bytes_per_s else f"{iops * clones} IOPS"
    if job.think_us:
        keys |= _pauses(typed, depth)
        if "rate" in keys:
            typed.say(Level.ERROR, "thinktime", "beside rate_process=poisson; an open loop does not pause")
    return keys


def _open_loop(typed: TypedJob, direction: int, bytes_per_s: int, iops: int, clones: int) -> Keys:
    if not iops:
        # fio's rate of arrivals, in whole requests of the smallest size.
        iops = bytes_per_s // typed.job.sizes[direction].smallest
        if not iops:
            typed.say(Level.ERROR, "rate", "less than one request a second; with rate_process=poisson give more")
            return {}
    typed.say(
        Level.DIFFERS, "rate_process", "an open loop: latency counts from the intended start (fio: from the issue)"
    )
    return {"rate": f"{iops * clones} IOPS", "spacing": "poisson"}


def _pauses(typed: TypedJob, depth: int) -> Keys:
    """fio stops issuing after so many requests, waits for those outstanding, and pauses the whole job."""
    job = typed.job
    keys: Keys = {"think": duration(job.think_us)}
    spin = min(job.think_spin_us, job.think_us)
    if job.think_work_us:
        keys["think_work"] = duration(job.think_work_us)
        if job.think_blocks > 1:
            typed.say(Level.ERROR, "thinktime_iotime", "beside thinktime_blocks; give one of them")
    elif job.think_blocks > 1 or depth > 1 or spin:
        keys["think_every"] = job.think_blocks
        if depth > 1 and not job.think_issued:
            typed.say(
                Level.DIFFERS,
                "thinktime_blocks_type",
                "the pause comes after so many requests were issued; fio looks at how many are done",
            )
    if spin:
        keys["think_spin"] = duration(spin)
    return keys
