"""One job as streams of a native workload: keys and values as they stand in its TOML."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .finding import Level
from .job import Job, Sizes, TypedJob
from .numbers import NOTHING

RING = "io_uring"
BLOCKING = "pread"
ENGINES = {
    "io_uring": RING,
    "libaio": RING,
    "posixaio": RING,
    "sync": BLOCKING,
    "psync": BLOCKING,
    "pvsync": BLOCKING,
    "pvsync2": BLOCKING,
}
"""fio's engine -> ours."""

MOST_SIZES = 256

Keys = dict[str, str | float | bool]


@dataclass(frozen=True)
class Converted:
    """What one job became."""

    streams: list[Keys]
    end_us: int
    """Measured time after which its streams end; 0: by their amounts."""
    needs_bytes: int
    """The target must be as large as this; 0: not known."""
    moves_bytes: int
    """What its streams move, if only that ends them; 0: not known exactly."""


def streams_of(typed: TypedJob, on_device: bool, base: int | None) -> Converted:
    """`base`: where on the target the job's own files begin; None: the target is the job's file itself. What stands
    against it is said in `typed.findings`."""
    job = typed.job
    keys: Keys = {}
    _operation(typed, keys)
    _place(typed, keys)
    _size(typed, keys)
    _concurrency(typed, keys)
    _durability(typed, keys, on_device)
    _arrival(typed, keys)
    _rest(typed, keys)
    return _clones(typed, keys, base) if job.numjobs > 0 else Converted([], 0, 0, 0)


def _operation(typed: TypedJob, keys: Keys) -> None:
    job = typed.job
    if job.mixed:
        keys["write_fraction"] = f"{job.write_percent}%"
        if not job.random:
            typed.say(Level.DIFFERS, "rw", "reads and writes go through the region as one; fio has a position for each")
    elif job.kind.endswith("write"):
        keys["write_fraction"] = "100%"
    elif job.kind.endswith("trim"):
        keys["trim_fraction"] = "100%"


def _place(typed: TypedJob, keys: Keys) -> None:
    job = typed.job
    sizes = job.sizes[job.direction]
    if job.random and job.theta is not None:
        keys["pattern"] = "zipf"
        keys["zipf_theta"] = job.theta
    elif job.random:
        keys["pattern"] = "uniform"
        if job.random_map and not job.align:
            typed.say(
                Level.DIFFERS, "norandommap", "places are drawn independently; fio visits each once before any twice"
            )
    elif job.skip_bytes:
        keys["pattern"] = "strided"
        keys["stride"] = written(sizes.low + job.skip_bytes)
        if sizes.split or sizes.low != sizes.high:
            typed.say(Level.ERROR, "rw", "gaps between requests of different sizes are not made")
    else:
        keys["pattern"] = "sequential"


def _size(typed: TypedJob, keys: Keys) -> None:
    job = typed.job
    sizes = job.sizes[job.direction]
    align = (job.align if job.random else 0) or sizes.smallest
    if sizes.split:
        keys["size"] = ",".join(f"{written(size)}:{weight}" for size, weight in sizes.split)
        if not job.random:
            align = math.gcd(*(size for size, _ in sizes.split))
    elif sizes.low == sizes.high:
        keys["size"] = written(sizes.low)
    elif sizes.high % sizes.low == 0:
        keys["size"] = f"{written(sizes.low)}-{written(sizes.high)}:step={written(sizes.low)}"
    else:
        keys["size"] = ",".join(f"{written(size)}:{weight}" for size, weight in _range_weights(typed, sizes))
        if not job.random:
            align = math.gcd(sizes.low, sizes.high)
    if align != sizes.low or sizes.split or sizes.low != sizes.high:
        keys["align"] = written(align)


def _range_weights(typed: TypedJob, sizes: Sizes) -> list[tuple[int, int]]:
    """fio draws uniformly from [low, low + high), rounds down to a multiple of low and cuts at high."""
    low, high = sizes.low, sizes.high
    if high // low > MOST_SIZES:
        typed.say(Level.ERROR, "bsrange", "the largest size is no multiple of the smallest; round it")
        return [(low, 1)]
    weights: dict[int, int] = {}
    for start in range(low, low + high, low):
        size = min(start, high)
        weights[size] = weights.get(size, 0) + min(start + low, low + high) - start
    unit = math.gcd(*weights.values())
    return [(size, weight // unit) for size, weight in weights.items()]


def _concurrency(typed: TypedJob, keys: Keys) -> None:
    job = typed.job
    depth = job.depth
    kind = ENGINES.get(job.engine)
    if kind is None:
        other = "give null:SIZE as TARGET" if job.engine == "null" else f"use one of {', '.join(ENGINES)}"
        typed.say(Level.ERROR, "ioengine", f"`{job.engine[:40]}` is not there; {other}")
    elif depth > 1 and kind == BLOCKING:
        typed.say(Level.NOTE, "iodepth", f"{job.engine} does one request at a time whatever the depth, as in fio")
        depth = 1
    elif depth > 1 and job.engine == "libaio" and not job.direct:
        typed.say(Level.DIFFERS, "iodepth", "libaio without direct=1 does one request at a time: depth 1")
        depth = 1
    if job.engine == "posixaio":
        typed.say(Level.DIFFERS, "ioengine", "io_uring instead of glibc's threads")
    if depth > 1:
        keys["depth"] = depth
    keys["direct"] = job.direct
    if job.invalidate and not job.direct and (job.mixed or job.kind.endswith("read")):
        typed.say(
            Level.DIFFERS,
            "invalidate",
            "fio drops the file's pages before and advises the kernel (fadvise); --drop-caches does the first",
        )


def _durability(typed: TypedJob, keys: Keys, on_device: bool) -> None:
    job = typed.job
    if not job.writes:
        return
    if not (on_device or job.overwrite or job.mixed):
        text = "a file that fio has to make first grows as it is written; here its blocks are there"
        typed.say(Level.DIFFERS, "overwrite", text)
    if job.sync != "none":
        keys["dsync"] = True
        if job.sync == "sync" and not on_device:
            typed.say(
                Level.ERROR,
                "sync",
                "on a file O_SYNC also writes the time stamps; use sync=dsync, or name the block device in filename",
            )
    if job.fdatasync and not on_device:
        typed.say(
            Level.ERROR,
            "fdatasync",
            "on a file an fsync costs more; use fsync or sync=dsync, or name the block device in filename",
        )
    if job.fsync and job.fdatasync:
        typed.say(Level.ERROR, "fdatasync", "beside fsync; give one of them")
    if job.fsync or job.fdatasync:
        keys["fsync_every"] = job.fsync or job.fdatasync
    if job.end_fsync:
        keys["end_fsync"] = True


def _arrival(typed: TypedJob, keys: Keys) -> None:
    job = typed.job
    bytes_per_s, iops = job.rates[job.direction], job.rates_iops[job.direction]
    if job.mixed and (any(job.rates) or any(job.rates_iops)):
        option = "rate" if any(job.rates) else "rate_iops"
        typed.say(Level.ERROR, option, "of a job that mixes reads and writes bounds each of them; use two jobs")
        return
    if bytes_per_s and iops:
        typed.say(Level.ERROR, "rate", "beside rate_iops; give one of them")
        return
    clones = job.numjobs if not _apart(job) else 1
    if job.poisson and (bytes_per_s or iops):
        _open_loop(typed, keys, bytes_per_s, iops, clones)
    elif bytes_per_s or iops:
        keys["rate_limit"] = f"{bytes_per_s * clones} B/s" if bytes_per_s else f"{iops * clones} IOPS"
    if job.think_us:
        keys["think"] = f"{job.think_us}us"
        if "depth" in keys:
            typed.say(Level.ERROR, "thinktime", "with iodepth above 1 fio pauses the whole job, not a request")
        if "rate" in keys:
            typed.say(Level.ERROR, "thinktime", "beside rate_process=poisson; an open loop does not pause")


def _open_loop(typed: TypedJob, keys: Keys, bytes_per_s: int, iops: int, clones: int) -> None:
    sizes = typed.job.sizes[typed.job.direction]
    if not iops:
        if sizes.split or sizes.low != sizes.high or bytes_per_s % sizes.low:
            typed.say(Level.ERROR, "rate_process", "poisson with a rate in bytes: give rate_iops")
            return
        iops = bytes_per_s // sizes.low
    keys["rate"] = f"{iops * clones} IOPS"
    keys["spacing"] = "poisson"
    typed.say(
        Level.DIFFERS,
        "rate_process",
        "an open loop: latency counts from the intended start (fio: from the issue)",
    )


def _rest(typed: TypedJob, keys: Keys) -> None:
    job = typed.job
    if job.writes and (job.zeroes or job.compress_percent == 100):
        keys["content"] = "zero"
    elif job.writes and job.compress_percent:
        keys["content"] = f"compressible:{100 - job.compress_percent}%"
    if job.prioclass == 3:
        keys["priority"] = "idle"
    elif job.prioclass or job.prio:
        keys["priority"] = f"{'realtime' if job.prioclass == 1 else 'best-effort'}:{job.prio}"
    if job.delay_us:
        keys["start_delay"] = f"{job.delay_us}us"


def _apart(job: Job) -> bool:
    """Whether each clone is a stream of its own: workers of one stream share its region and its popular places."""
    if job.numjobs == 1:
        return False
    own = own_files(job)
    return bool(
        job.offset_increment != NOTHING
        or job.theta is not None
        or (own and (job.offset != NOTHING or (not job.random and job.size.bytes % job.sizes[job.direction].smallest)))
        or (not own and not job.random)
        or (not job.random and job.sizes[job.direction].split)
    )


def _clones(typed: TypedJob, keys: Keys, base: int | None) -> Converted:
    job = typed.job
    amount = _amount(typed)
    end_us = job.runtime_us + job.delay_us if job.runtime_us else 0
    count = job.numjobs
    if job.time_based and not job.runtime_us:
        typed.say(Level.NOTE, "time_based", "of no effect without runtime, as in fio")
    if job.runtime_us and job.time_based:
        amount = 0
    apart = _apart(job)
    sharing = 1 if apart else count
    if amount and job.ramp_us:
        typed.say(Level.DIFFERS, "ramp_time", "what is moved in it does not count towards the amount; in fio it does")
    if not apart and count > 1:
        keys = {**keys, "workers": count}
        if amount:
            typed.say(Level.NOTE, "numjobs", f"the {count} workers of the stream share its amount")
    if amount:
        keys["stop_bytes"] = written(amount * sharing)
    if job.number_ios and not (job.runtime_us and job.time_based):
        keys["stop_requests"] = job.number_ios * sharing
    streams: list[Keys] = []
    needs = 0
    for number in range(count if apart else 1):
        region, end = _region(typed, number, base if base is None else base + number * _own_bytes(job), sharing)
        needs = max(needs, end)
        streams.append({"name": f"{job.name}-{number}" if apart else job.name, **keys, **region})
        if number >= 64:
            typed.say(Level.ERROR, "numjobs", f"{count} clones that are a stream each; 64 streams are the most")
            break
    sizes = job.sizes[job.direction]
    exact = amount and not end_us and not job.number_ios and not sizes.split and sizes.low == sizes.high
    return Converted(streams, end_us, needs, amount * count if exact else 0)


def _own_bytes(job: Job) -> int:
    return (job.filesize or job.offset.bytes + job.size.bytes) if job.offset.percent is None else job.size.bytes


def own_files(job: Job) -> bool:
    """Whether fio would lay out files for it."""
    return job.filename is None and bool(job.size.bytes or job.filesize)


def own_bytes(job: Job) -> int:
    """Bytes of the files that fio would lay out for the job and its clones."""
    return _own_bytes(job) * job.numjobs


def _amount(typed: TypedJob) -> int:
    """Bytes that each clone moves; 0: not known."""
    job = typed.job
    if job.io_size.percent is not None:
        typed.say(Level.ERROR, "io_size", "a share of the target; give bytes")
        return 0
    per_file = max(job.filesize - job.offset.bytes, 0)
    amount = (job.io_size.bytes or job.size.bytes or per_file) * job.loops
    if not amount and not (job.runtime_us and job.time_based):
        typed.say(
            Level.ERROR,
            "size",
            "one pass over a target whose size is not known here; give size in bytes, or runtime and time_based",
        )
    sizes = job.sizes[job.direction]
    if amount and not sizes.split and sizes.low == sizes.high:
        if (job.size.bytes or amount) < sizes.low:
            typed.say(Level.ERROR, "size", "smaller than one request")
        # As fio does: what is left of a region at its end is not touched, what is left of an amount is a whole request.
        amount -= amount % sizes.low if not job.io_size.bytes else -(-amount % sizes.low)
    return amount


def _region(typed: TypedJob, number: int, base: int | None, sharing: int) -> tuple[Keys, int]:
    """Region of a clone, and its end in bytes if that is known."""
    job = typed.job
    if base is not None:
        if job.offset.percent is not None or job.offset_increment.percent is not None:
            typed.say(Level.ERROR, "offset", "a share of a file that is part of the target; give bytes")
        begin = base + job.offset.bytes + number * job.offset_increment.bytes
        end = base + job.filesize if job.filesize else begin + job.size.bytes
        if sharing > 1:
            end = base + sharing * _own_bytes(job)
        return _bytes_region(typed, begin, end)
    if job.offset.percent is not None or job.size.percent is not None:
        return _share_region(typed), 0
    if job.offset_increment.percent is not None:
        typed.say(Level.ERROR, "offset_increment", "a share of the target; give bytes")
    begin = job.offset.bytes + number * job.offset_increment.bytes
    if job.filesize or job.size.bytes:
        return _bytes_region(typed, begin, job.filesize or begin + job.size.bytes)
    return ({"region": f"{written(begin)}-100%"} if begin else {}), 0


def _bytes_region(typed: TypedJob, begin: int, end: int) -> tuple[Keys, int]:
    if end <= begin:
        typed.say(Level.ERROR, "offset", "nothing of the file is behind it")
        return {}, 0
    return {"region": f"{written(begin)}-{written(end)}"}, end


def _share_region(typed: TypedJob) -> Keys:
    job = typed.job
    if job.offset.bytes or job.size.bytes or job.offset_increment != NOTHING or job.filesize:
        option = "size" if job.size.percent is not None else "offset"
        typed.say(Level.ERROR, option, "a share of the target beside one in bytes; give both as % or both in bytes")
        return {}
    begin = job.offset.percent or 0
    end = min(begin + (100 if job.size.percent is None else job.size.percent), 100)
    if end <= begin:
        typed.say(Level.ERROR, "size", "nothing of the target is in this region")
        return {}
    return {"region": f"{begin}%-{end}%"}


def written(count: int) -> str:
    """Bytes in the largest unit that holds them exactly."""
    for unit, size in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count and count % size == 0:
            return f"{count // size}{unit}"
    return str(count)
