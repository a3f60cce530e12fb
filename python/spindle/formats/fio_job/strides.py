"""The number behind a sequential `rw`: fio adds it to the end of each request, and there the next one begins.

For requests of B bytes, as fio 3.33 issues them: a number above 0 leaves gaps; -2 B goes back from each request to the
one before it; -B stays at one place.
"""

from __future__ import annotations

import math

from spindle.base.units import exact_size

from .finding import Level
from .job import TypedJob
from .numbers import NOTHING
from .quantity import Keys
from .sizes import differ, one_size

Span = tuple[int, int]
"""First byte and end."""
DEVICES_ARE_MULTIPLES_OF = 1 << 20


def in_order(typed: TypedJob) -> Keys:
    """Return the pattern of a job that goes through its files in order."""
    job = typed.job
    apart: Keys = {"own_writes": True} if job.mixed else {}
    if not job.skip_bytes:
        return {"pattern": "sequential"} | apart
    sizes = job.sizes[job.direction]
    if not one_size(sizes) or (job.mixed and differ(typed)):
        typed.say(Level.ERROR, "rw", "a number behind it, beside requests of different sizes; give one size")
    if job.skip_bytes > 0:
        return {"pattern": "strided", "stride": exact_size(sizes.low + job.skip_bytes)} | apart
    if goes_back(typed):
        return {"pattern": "backward"} | apart
    if not stays(typed):
        text = (
            f"backwards with gaps or overlaps is not done; rw={_backwards(typed)}, twice the size of a request, goes "
            "from each to the one before it"
        )
        typed.say(Level.ERROR, "rw", text)
    return {"pattern": "sequential"} | apart


def goes_back(typed: TypedJob) -> bool:
    """True if each request ends at the start of the one before."""
    return not typed.job.random and typed.job.skip_bytes == -2 * typed.job.sizes[typed.job.direction].low


def stays(typed: TypedJob) -> bool:
    """True if all requests are to the same place."""
    return not typed.job.random and typed.job.skip_bytes == -typed.job.sizes[typed.job.direction].low


def within(typed: TypedJob, region: Span, offset: int) -> Span:
    """Return the used part of the region. `offset`: start of the region in its file, bytes."""
    size = typed.job.sizes[typed.job.direction].low
    begin, end = region
    if rest := _beyond_last_place(typed, end - begin):
        return begin, end - rest
    length = end - begin
    if length >= size and stays(typed):
        place = _only_place(length, offset, size)
        if place == length - size:
            text = f"all requests to the region's last block, of which fio does one or many; use rw={_backwards(typed)}"
            typed.say(Level.ERROR, "rw", text)
        text = f"every request is to the same place, as in fio; rw={_backwards(typed)} goes backwards"
        typed.say(Level.NOTE, "rw", text)
        return begin + place, begin + place + size
    if not goes_back(typed):
        return region
    if length < 2 * size:
        typed.say(Level.ERROR, "rw", "backwards in a region of less than two requests; give a larger one")
        return region
    if offset in (0, length):
        text = "begins at the region's last block but one, to which fio comes after one request to its first"
        typed.say(Level.DIFFERS, "rw", text)
    elif offset <= length - 2 * size:
        text = "begins at the region's last block but one; fio, with this offset, further in front"
        typed.say(Level.DIFFERS, "rw", text)
    return begin, end - size


def _beyond_last_place(typed: TypedJob, length: int) -> int:
    """Bytes of a region behind its last whole `ba`, in which fio makes no random request."""
    return length % typed.job.align if length >= typed.job.align and _in_wide_steps(typed) else 0


def _in_wide_steps(typed: TypedJob) -> bool:
    """True if random places are farther from each other than requests are long."""
    job = typed.job
    if job.in_order or not job.align:
        return False
    used = (0, 1) if job.mixed else (job.direction,)
    return job.align > min(job.sizes[at].smallest for at in used) and all(
        job.aligns[at] == job.align >= job.sizes[at].smallest for at in used
    )


def within_unknown(typed: TypedJob) -> None:
    """Report differences in a region of unknown length."""
    if _in_wide_steps(typed) and (typed.job.size.percent is not None or DEVICES_ARE_MULTIPLES_OF % typed.job.align):
        text = "places up to the end of the region; fio leaves out the last one, unless it is whole"
        typed.say(Level.DIFFERS, "ba", text)
    if goes_back(typed):
        text = "begins at the region's last block, which fio leaves out: there one request to the first comes before"
        typed.say(Level.DIFFERS, "rw", text)
    elif stays(typed):
        typed.say(Level.ERROR, "rw", "all requests are to one place, which follows from the size; give size")


def _backwards(typed: TypedJob) -> str:
    job = typed.job
    back = 2 * job.sizes[job.direction].low
    return f"{job.kind}:-{f'{back // 1024}k' if back % 1024 == 0 else back}"


def _only_place(length: int, offset: int, size: int) -> int:
    if offset in (0, length):
        return 0
    before = length - offset - size
    return before if before >= 0 else length - size


def alignment(typed: TypedJob, begin: int, end: int) -> Keys:
    """Return the alignment. fio counts places from the start of the region, here they are multiples of `align`; a
    difference is reported."""
    job = typed.job
    size = job.sizes[job.direction].low
    if not job.in_order:
        grid = job.align or size
        if begin % grid:
            text = f"places are multiples of {exact_size(grid)} of the target; fio counts them from the offset"
            typed.say(Level.DIFFERS, "offset", text)
        return {}
    if not one_size(job.sizes[job.direction]) or (job.mixed and differ(typed)):
        return {}
    align = math.gcd(size, begin, max(job.skip_bytes, 0), end if goes_back(typed) else 0)
    return {} if align == size else {"align": exact_size(align)}


def ends_with_pass(typed: TypedJob, length: int, is_whole_file: bool) -> bool:
    """True if a job with gaps is over at the end of its region, before its amount is moved. `length`: of
    the region; `is_whole_file`: the file ends with it.
    """
    job = typed.job
    in_gaps = not job.random and job.skip_bytes > 0 and one_size(job.sizes[job.direction])
    return in_gaps and not (is_whole_file and _begins_again(typed, length))


def begins_again(typed: TypedJob, length: int) -> bool:
    """True if fio goes through a file of this length with gaps, again and again."""
    job = typed.job
    return not job.random and job.skip_bytes > 0 and length > 0 and _begins_again(typed, length)


def _begins_again(typed: TypedJob, length: int) -> bool:
    """True if fio continues from the start of a file of this length: only if the next request would be after its end
    and the one before did not reach it.
    """
    job = typed.job
    size = job.sizes[job.direction].low
    stride = size + job.skip_bytes
    last = max(length - size, 0) // stride * stride
    return not job.offset.bytes and last + size < length <= last + stride


def begins_whole_again(typed: TypedJob) -> bool:
    """True if a job with gaps goes through the whole target again and again, or leaves none."""
    job = typed.job
    if job.random or job.skip_bytes <= 0:
        return True
    shared = job.offset != NOTHING or job.size.percent not in (None, 100)
    return not shared and DEVICES_ARE_MULTIPLES_OF % (job.sizes[job.direction].low + job.skip_bytes) == 0


def requests_of_pass(typed: TypedJob, length: int, is_whole_file: bool) -> int:
    """Return the requests of a pass through a region; if the file continues, the last one may reach beyond."""
    size = typed.job.sizes[typed.job.direction].low
    if not is_whole_file:
        return -(-length // (size + typed.job.skip_bytes))
    return (length - size) // (size + typed.job.skip_bytes) + 1


def leaves_file(typed: TypedJob, length: int) -> bool:
    """True if a job that finishes a file before the next one ever reaches the end of its file."""
    job = typed.job
    if not job.skip_bytes:
        return True
    return job.skip_bytes > 0 and not _begins_again(typed, length)


def passes_of_whole(typed: TypedJob) -> float:
    """Return the number of passes of a job through a target of unknown length."""
    job = typed.job
    size = job.sizes[job.direction].low
    if not job.in_order and one_size(job.sizes[job.direction]) and job.align > size:
        return job.align / size  # a pass visits each multiple of the alignment; fio moves all of the bytes
    if job.random or job.skip_bytes <= 0 or not one_size(job.sizes[job.direction]) or job.offset != NOTHING:
        return 1
    stride = size + job.skip_bytes
    if DEVICES_ARE_MULTIPLES_OF % stride == 0:
        return stride / size
    text = "ends after one pass through the target; whether fio begins another follows from its size; give size"
    typed.say(Level.DIFFERS, "rw", text)
    return 1
