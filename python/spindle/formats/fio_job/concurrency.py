"""Engine, depth, and the path of a request's data."""

from __future__ import annotations

from .finding import Level
from .job import OPERATIONS, Job, TypedJob
from .quantity import Keys

RING = "io_uring"
BLOCKING = "pread"
NULL = "null"
MAPPING = "mmap"
PAGE = 4096
ENGINES = {
    "io_uring": RING,
    "libaio": RING,
    "posixaio": RING,
    "sync": BLOCKING,
    "psync": BLOCKING,
    "vsync": BLOCKING,
    "pvsync": BLOCKING,
    "pvsync2": BLOCKING,
    "null": NULL,
    "mmap": MAPPING,
}
"""fio's engine -> ours; `mmap` is a matter of the stream."""
_INSTEAD = {
    "posixaio": "io_uring instead of glibc's threads",
    "vsync": "each request by itself; fio hands over neighbours together, and with iodepth above 1 may end too early",
}


def depth_of(typed: TypedJob) -> int:
    """Return the outstanding requests of each worker, as fio's engine supports them. Unknown engines are reported."""
    job = typed.job
    kind = ENGINES.get(job.engine)
    if kind is None:
        typed.say(
            Level.ERROR,
            "ioengine",
            f"`{job.engine[:40]}` is not supported; use one of {', '.join((*ENGINES, *OPERATIONS))}",
        )
        return job.depth
    if job.engine in _INSTEAD:
        typed.say(Level.DIFFERS, "ioengine", _INSTEAD[job.engine])
    if job.engine == "vsync" and (job.trims_first or job.kind.endswith("trim")):
        typed.say(Level.DIFFERS, "ioengine", "fio 3.33's vsync writes what it should discard; here it is discarded")
    if job.depth > 1 and kind in (BLOCKING, NULL, MAPPING) and not (job.offloads and kind != MAPPING):
        typed.say(Level.NOTE, "iodepth", f"{job.engine} does one request at a time whatever the depth, as in fio")
        return 1
    if job.depth > 1 and job.engine == "libaio" and not job.direct and not job.offloads:
        typed.say(Level.DIFFERS, "iodepth", "libaio without direct=1 does one request at a time: depth 1")
        return 1
    return job.depth


def say_shared(typed: TypedJob, workers: int) -> None:
    """Report that the clones of a job share its amount."""
    text = f"the {workers} workers of the stream share its amount, so a faster one does more; in fio each does as much"
    typed.say(Level.DIFFERS, "numjobs", text)


def queues(job: Job) -> bool:
    """True if fio's engine queues requests: it counts issued bytes only for such engines."""
    trims = job.trims_first or job.kind.endswith("trim")
    return (ENGINES.get(job.engine) == RING or job.engine == "vsync") and not trims and not job.offloads


def data_of(typed: TypedJob, on_device: bool, made_here: bool) -> Keys:
    """Return page cache, durability, content and priority. `made_here`: in files made for the run."""
    job = typed.job
    if job.engine == MAPPING:
        return _mapped(typed, on_device)
    keys: Keys = {"direct": job.direct}
    if job.trims_first and (job.direct or job.sync != "none"):
        text = "fio's writes behind a trim go through the page cache whatever it says; here they do not"
        typed.say(Level.DIFFERS, "direct" if job.direct else "sync", text)
    if job.invalidate and not job.direct and not made_here and (job.mixed or job.kind.endswith("read")):
        typed.say(
            Level.DIFFERS,
            "invalidate",
            "fio drops the file's pages before and advises the kernel (fadvise); `drop_caches=True` does the first",
        )
    if job.writes:
        keys |= _durability(typed, on_device) | _content(typed)
    return keys | priority_of(job)


def _mapped(typed: TypedJob, on_device: bool) -> Keys:
    """Return the keys of a mapping. fio handles direct=1 as an msync of each request; O_SYNC has no effect."""
    job = typed.job
    keys: Keys = {"direct": False, "mapped": True}
    syncs = job.direct or job.fsync or job.fdatasync
    if syncs and any(sizes.smallest % PAGE for sizes in job.sizes):
        typed.say(Level.ERROR, "bs", "mmap beside direct or fsync needs requests of whole pages, as in fio; give bs=4k")
    if job.direct:
        text = "a mapping is never direct: each write is followed by an msync of its place, as in fio"
        typed.say(Level.NOTE, "direct", text)
    if job.sync != "none":
        typed.say(Level.NOTE, "sync", "of no effect on a mapping, as in fio; use fsync")
    if job.invalidate and (job.mixed or job.kind.endswith("read")):
        text = "fio only asks the C library to forget the pages, which does nothing; `drop_caches=True` drops them"
        typed.say(Level.NOTE, "invalidate", text)
    if job.writes:
        durability = _durability(typed, on_device)
        for key in ("dsync", "osync"):
            durability.pop(key, None)
        keys |= durability | _content(typed) | ({"dsync": True} if job.direct else {})
    return keys | priority_of(job)


def priority_of(job: Job) -> Keys:
    """Return the I/O priority of the process, as the kernel sees it."""
    if job.prioclass == 3:
        return {"priority": "idle"}
    if job.prioclass or job.prio is not None:
        return {"priority": f"{'realtime' if job.prioclass == 1 else 'best-effort'}:{job.prio or 0}"}
    return {}


def _durability(typed: TypedJob, on_device: bool) -> Keys:
    job = typed.job
    keys: Keys = {}
    if job.sync != "none":
        keys["dsync" if job.sync == "dsync" or on_device else "osync"] = True
    if job.fsync and job.fdatasync:
        typed.say(Level.ERROR, "fdatasync", "beside fsync; give one of them")
    elif job.fsync or job.fdatasync:
        keys["fdatasync_every" if job.fdatasync and not on_device else "fsync_every"] = job.fsync or job.fdatasync
        keys["fsync_between"] = True
        _say_repeated(typed)
    if job.end_fsync or job.close_fsync:
        keys["end_fsync"] = True
    if job.close_fsync:
        typed.say(Level.DIFFERS, "fsync_on_close", "as end_fsync: once, at the end, inside the measured time")
    return keys


def _say_repeated(typed: TypedJob) -> None:
    """Report differences: fio checks for a multiple of N writes at each request, unless the last completed one is a
    sync.
    """
    job = typed.job
    option = "fsync" if job.fsync else "fdatasync"
    if max(len(job.filenames), job.nrfiles) > 1:
        text = "of the written file; fio 3.33 syncs the next file instead, which then loses its own sync"
        typed.say(Level.DIFFERS, option, text)
    if job.mixed:
        text = "once after each N writes; fio 3.33 does it again after each read until the next write"
        typed.say(Level.DIFFERS, option, text)
    elif job.depth > 1:
        text = (
            "once after each N writes, when they are done; fio 3.33 issues it beside them, more than once if it "
            "is slow, and counts it as a request of number_ios"
        )
        typed.say(Level.DIFFERS, option, text)
    elif job.trims_first and (job.fsync or job.fdatasync):
        typed.say(Level.DIFFERS, option, "once after each N writes; fio 3.33 does it again after the next trim")


def _content(typed: TypedJob) -> Keys:
    return _blocks(typed.job) | _repeats(typed)


def _repeats(typed: TypedJob) -> Keys:
    """Return the keys of repeated content: whole requests, as in fio."""
    job = typed.job
    if not job.dedupe_percent or job.compress_percent == 100:
        return {}
    if job.verify not in ("0", "null"):
        typed.say(Level.ERROR, "dedupe_percentage", "beside verify: a checked block contains its offset; give one")
        return {}
    if job.dedupe_global:
        typed.say(Level.ERROR, "dedupe_global", "each worker repeats contents of its own; remove it")
    keys: Keys = {"dedupe": f"{job.dedupe_percent}%"}
    if job.dedupe_set_percent:
        count = job.size.bytes * job.dedupe_set_percent // 100 // job.sizes[1].smallest
        if not count:
            text = "working_set takes a share of size: give size in bytes, large enough for a block"
            typed.say(Level.ERROR, "dedupe_mode", text)
            return {}
        keys["dedupe_set"] = min(count, (1 << 32) - 1)
    return keys


def _blocks(job: Job) -> Keys:
    if (job.zeroes and not job.dedupe_percent) or job.compress_percent == 100:
        return {"content": "zero"}
    return {"content": f"compressible:{100 - job.compress_percent}%"} if job.compress_percent else {}
