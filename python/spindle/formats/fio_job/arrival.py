"""Issue times of requests: rates, open loops, pauses."""

from __future__ import annotations

from .finding import Level
from .job import Job, TypedJob
from .quantity import Keys, duration
from .sizes import one_size


def rated_directions(typed: TypedJob) -> list[int]:
    """Return the directions of a mixed job with their own bound; none without a bound or with one direction."""
    job = typed.job
    if not job.mixed:
        return []
    return [at for at in (0, 1) if job.rates[at] or job.rates_iops[at]]


def arrival_of(typed: TypedJob, direction: int, clones: int, depth: int) -> Keys:
    """Return the arrival keys. `clones`: number that share the stream; each has its own rate in fio."""
    job = typed.job
    keys: Keys = {}
    bytes_per_s, iops = job.rates[direction], job.rates_iops[direction]
    if bytes_per_s and iops:
        typed.say(Level.ERROR, "rate", "beside rate_iops; give one of them")
    elif (job.poisson or job.offloads) and (bytes_per_s or iops):
        keys |= _open_loop(typed, direction, bytes_per_s, iops, clones)
    elif bytes_per_s or iops:
        # fio waits for the rate before each write: the trim in front of it is free.
        times = clones * (2 if job.trims_first else 1)
        keys["rate_limit"] = f"{bytes_per_s * times} B/s" if bytes_per_s else f"{iops * times} IOPS"
    if job.think_us:
        keys |= _pauses(typed, depth)
        if "rate" in keys:
            text = f"beside {_opener(job)}; an open loop does not pause"
            typed.say(Level.ERROR, "thinktime", text)
    return keys


def _open_loop(typed: TypedJob, direction: int, bytes_per_s: int, iops: int, clones: int) -> Keys:
    if not iops:
        sizes = typed.job.sizes[direction]
        if not typed.job.poisson and (not one_size(sizes) or bytes_per_s % sizes.low):
            typed.say(Level.ERROR, "io_submit_mode", "offload with a rate in bytes: give rate_iops")
            return {}
        # fio's rate of arrivals, in whole requests of the smallest size.
        iops = bytes_per_s // sizes.smallest
        if not iops:
            typed.say(Level.ERROR, "rate", "less than one request a second; in an open loop give more")
            return {}
    text = "an open loop: latency counts from the intended start (fio: from the issue)"
    typed.say(Level.DIFFERS, _opener(typed.job).partition("=")[0], text)
    keys: Keys = {"rate": f"{iops * clones} IOPS"}
    return keys | {"spacing": "poisson"} if typed.job.poisson else keys


def _opener(job: Job) -> str:
    """Return the option that asks for an open loop."""
    return "rate_process=poisson" if job.poisson else "io_submit_mode=offload"


def _pauses(typed: TypedJob, depth: int) -> Keys:
    """Return the keys of pauses: fio stops after N requests, waits for outstanding ones, and pauses the job."""
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
                "the pause comes after N requests were issued; fio counts those that are done",
            )
    if spin:
        keys["think_spin"] = duration(spin)
    return keys
