"""Order of operations, and their places."""

from __future__ import annotations

import math

from spindle.base.units import exact_size

from .distribution import ZONED, Zones
from .finding import Level
from .job import Job, TypedJob
from .quantity import Keys
from .sizes import differ, one_size
from .strides import in_order


def places_of(typed: TypedJob) -> Keys:
    """Return the mix, the pattern and its parameters."""
    job = typed.job
    keys: Keys = {}
    if job.mixed:
        keys["write_fraction"] = f"{job.write_percent}%"
    elif job.kind.endswith("trim"):
        keys["trim_fraction"] = "100%"
    elif job.writes:
        keys["write_fraction"] = "100%"
    if job.trims_first:
        keys["trim_first"] = True
    keys |= _random(typed) if job.random else in_order(typed)
    return keys | _zones_in_turn(typed, keys)


def _zones_in_turn(typed: TypedJob, keys: Keys) -> Keys:
    """Return the keys of `zonemode=strided`: the pattern stays in a zone for N bytes."""
    job = typed.job
    if job.zone_mode == "zbd":
        typed.say(Level.ERROR, "zonemode", "zoned devices are not driven; use strided, or none")
    elif job.zone_mode == "none" and job.zone_bytes:
        typed.say(Level.ERROR, "zonesize", "needs zonemode=strided, as in fio")
    if job.zone_mode != "strided":
        return {}
    length = job.zone_range or job.zone_bytes
    size = job.sizes[job.direction].smallest
    for option, refused, text in (
        ("zonesize", not job.zone_bytes, "is needed by zonemode=strided"),
        (
            "zonemode",
            job.mixed and not job.random,
            "beside reads and writes in order; give one of them",
        ),
        ("zonemode", "own_writes" in keys or job.trims_first, "beside writes that go on their own; give one size"),
        ("zonemode", keys["pattern"] not in _IN_ZONES, f"beside requests that are {keys['pattern']}; give one of them"),
        ("nrfiles", len(job.filenames) > 1 or job.nrfiles > 1, "beside zonemode=strided; give one file"),
        ("zonerange", length % size or job.zone_skip % size, "and zoneskip must be multiples of bs"),
        (
            "offset",
            job.offset.bytes % size or job.offset_increment.bytes % size,
            "must be a multiple of bs here",
        ),
    ):
        if refused:
            typed.say(Level.ERROR, option, text)
            return {}
    keys = {"window": exact_size(length), "window_bytes": exact_size(job.zone_bytes)}
    return keys | ({"window_skip": exact_size(job.zone_skip)} if job.zone_skip else {})


_IN_ZONES = ("sequential", "uniform", "shuffled")


def popular(typed: TypedJob) -> bool:
    """True if some places are more popular than others."""
    return typed.job.random and typed.job.distribution.kind != "random"


def maps(typed: TypedJob) -> bool:
    """True if fio keeps a map of visited places."""
    job = typed.job
    aligned = all(align in (0, sizes.smallest) for align, sizes in zip(job.aligns, job.sizes, strict=True))
    return job.random and job.random_map and aligned and not popular(typed)


def visits_all(typed: TypedJob) -> bool:
    """True if a random job visits each place of its region once before any twice."""
    job = typed.job
    jumps = job.percent_random[job.direction] == 100 and job.run_length == 1
    return job.random_map and jumps and not popular(typed) and _one_grid(typed)


def _random(typed: TypedJob) -> Keys:
    job = typed.job
    percents = {job.percent_random[0], job.percent_random[1]} if job.mixed else {job.percent_random[job.direction]}
    if len(percents) > 1:
        typed.say(Level.ERROR, "percentage_random", "differs between reads and writes; use two jobs")
    percent = min(percents)
    if popular(typed):
        if percent < 100:
            typed.say(Level.ERROR, "percentage_random", "beside a random_distribution; give one of them")
        if job.run_length > 1:
            typed.say(Level.ERROR, "rw", "runs of requests beside a random_distribution; give one of them")
        return _distributed(typed)
    if percent < 100 and job.run_length > 1:
        typed.say(Level.ERROR, "percentage_random", "beside a number behind rw; give one of them")
    if percent == 0:
        return {"pattern": "sequential"} | ({"own_writes": True} if job.mixed else {})
    apart: Keys = {"own_writes": True} if job.mixed and differ(typed) else {}
    if percent < 100 or job.run_length > 1:
        if any(align not in (0, sizes.smallest) for align, sizes in zip(job.aligns, job.sizes, strict=True)):
            text = "beside requests that go on behind the one before, which are not aligned in fio; give one of them"
            typed.say(Level.ERROR, "ba", text)
        if job.random_map:
            typed.say(Level.DIFFERS, "norandommap", _INDEPENDENT)
        if not (job.time_based and job.runtime_us):
            text = (
                "goes on until its amount is moved; fio ends when requests behind each other come to the region's end"
            )
            typed.say(Level.DIFFERS, "rw" if job.run_length > 1 else "percentage_random", text)
        runs: Keys = {"pattern": "runs", "run_length": _number(100 / percent if percent < 100 else job.run_length)}
        if job.run_length > 1 and job.identical:
            runs["run_repeat"] = True
        if job.run_length > 1 and job.mixed:
            text = "a new place comes with this chance, for reads and writes by themselves; fio counts both together"
            typed.say(Level.DIFFERS, "rw", text)
        elif job.run_length > 1:
            runs["run_fixed"] = True
        # Such requests follow the last one of their kind.
        return runs | ({"own_writes": True} if job.mixed else {})
    if not job.random_map:
        return {"pattern": "uniform"} | apart
    least = min(sizes.smallest for sizes in job.sizes)
    if any(job.sizes[at].smallest != least for at in _used(typed)):
        text = "fio 3.33 maps places of the least size of reads, writes and trims, and may end before all are visited"
        typed.say(Level.DIFFERS, "bs", text)
    if not _one_grid(typed):
        cut = maps(typed) and not all(one_size(job.sizes[at]) for at in _used(typed))
        typed.say(Level.DIFFERS, "norandommap", _INDEPENDENT + (_CUT if cut else ""))
        return {"pattern": "uniform"} | apart
    _check_few(typed)
    return {"pattern": "shuffled"} | apart


def _check_few(typed: TypedJob) -> None:
    """Report the order of a pass over few places.

    fio 3.33 takes the next free place behind a drawn one that was visited (`axmap_next_free`), as hashing with linear
    probing does, so runs of visited places grow: of 1000 requests over 1000 places about 16 follow the one
    before, not 1.
    """
    job = typed.job
    if 1 < _length(job) // job.sizes[job.direction].smallest <= _FEW:
        typed.say(Level.DIFFERS, "rw", _NEIGHBOURS)


_FEW = 1000  # places; above, fewer than 2 % of fio's requests follow the one before
_NEIGHBOURS = (
    "each place that is left is as likely as any other; fio takes the next free one if the drawn one was visited, so "
    "over few places more of its requests follow the one before (55 places: 8 %, here 2 %)"
)


_INDEPENDENT = "places are drawn independently; fio visits each once before any twice"
_CUT = ", and cuts a request that would reach one that was visited"


def _one_grid(typed: TypedJob) -> bool:
    """True if places do not overlap: then each can be visited once."""
    job = typed.job
    sizes = job.sizes[job.direction]
    apart = job.mixed and differ(typed)
    return one_size(sizes) and not apart and job.align in (0, sizes.low)


def _number(value: float) -> float:
    return int(value) if value == int(value) else round(value, 6)


def _distributed(typed: TypedJob) -> Keys:
    job = typed.job
    asked = job.distribution
    apart: Keys = {"own_writes": True} if job.mixed and differ(typed) else {}
    if asked.kind in ZONED:
        zones = asked.zones[0 if job.mixed else min(job.direction, 1)]
        _check_zones(typed, zones)
        keys: Keys = {"pattern": "zoned", "zones": _zones(zones, asked.kind), **apart}
        if job.mixed and asked.zones[0] != asked.zones[1]:
            keys["write_zones"] = _zones(asked.zones[1], asked.kind)
        return keys
    _check_draws(typed)
    keys = {"pattern": asked.kind}
    if asked.kind == "zipf":
        keys["zipf_theta"] = asked.value
    elif asked.kind == "pareto":
        keys["pareto_share"] = asked.value
    else:
        # fio 3.33 draws the mean of 12 uniform numbers, and one more of this width, up to half the file.
        width = min(asked.value / 100, 0.5)
        deviation = math.sqrt((1 + 12 * width * width) / 144)
        keys["deviation"] = round(deviation, 12)
        typed.say(
            Level.DIFFERS,
            "random_distribution",
            f"drawn exactly, with the standard deviation that fio's sums have, {100 * deviation:.3g} % of the file",
        )
    if asked.center is not None:
        keys["center"] = asked.center
    return keys | apart


def _used(typed: TypedJob) -> tuple[int, ...]:
    """Return the directions of the job."""
    return (0, 1) if typed.job.mixed else (typed.job.direction,)


def _check_draws(typed: TypedJob) -> None:
    """fio 3.33 counts places of the smaller of the sizes of reads and writes, the last of them cut off, and makes those
    that are drawn multiples of the alignment.
    """
    job = typed.job
    least = min(job.sizes[0].smallest, job.sizes[1].smallest)
    grids = {job.aligns[at] or job.sizes[at].smallest for at in _used(typed)}
    if grids != {least}:
        text = (
            f"fio 3.33 counts places of {exact_size(least)} whatever the alignment, and ends at the first behind its "
            "region; give reads and writes one size, and leave out ba"
        )
        typed.say(Level.ERROR, "random_distribution", text)
        return
    if _length(job) % least:
        text = "never a place that the end of the region cuts off; fio 3.33 draws it too, and may end there"
        typed.say(Level.DIFFERS, "random_distribution", text)


def _check_zones(typed: TypedJob, zones: Zones) -> None:
    """Refuse zones smaller than a request: fio draws the place at their begin, which may be in the zone before."""
    job = typed.job
    length, size = _length(job), job.sizes[job.direction].smallest
    if job.distribution.kind == "zoned" and length and any(length * percent // 100 < size for _, percent in zones):
        text = "a zone is smaller than a request; give larger zones, or a larger size"
        typed.say(Level.ERROR, "random_distribution", text)


def _length(job: Job) -> int:
    """Return the bytes of each file that contain places; 0: unknown."""
    return max(job.filesizes[1] - job.offset.bytes, 0) or job.size.bytes // max(len(job.filenames), job.nrfiles)


def _zones(zones: Zones, kind: str) -> str:
    if kind == "zoned":
        return ",".join(f"{length}%:{share}" for share, length in zones)
    return ",".join(f"{exact_size(length)}:{share}" for share, length in zones)
