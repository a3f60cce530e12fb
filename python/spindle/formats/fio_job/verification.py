"""`verify`: data that are checked."""

from __future__ import annotations

from .finding import Level
from .job import TypedJob
from .quantity import Keys

NONE = "0"
OWN = ("crc32c", "crc32c-intel")
PRETENCE = "null"


def verify_of(typed: TypedJob) -> Keys:
    """Return the keys of a job's streams. Differences are reported."""
    job = typed.job
    if job.verify == NONE:
        return {}
    if job.verify == PRETENCE:
        if job.writes and job.reads_back:
            text = "nothing is checked, as in fio; fio reads the data back all the same, here it is not read"
            typed.say(Level.DIFFERS, "verify", text)
        else:
            typed.say(Level.NOTE, "verify", "nothing is checked, as in fio")
        return {}
    if job.verify not in OWN:
        text = "checked all the same: blocks have a CRC-32C, their place and their generation"
        typed.say(Level.DIFFERS if job.verify == "pattern" else Level.NOTE, "verify", text)
    if job.writes and not job.reads_back:
        typed.say(Level.DIFFERS, "do_verify", "all that was written is read back at the end, after the last phase")
    return {"verify": True, "verify_fatal": True} if job.verify_fatal else {"verify": True}


def check_readers(phases: list[list[TypedJob]]) -> None:
    """Check jobs that only read: they can check data that the job file itself wrote; data of an earlier run of fio
    has another format."""
    written: set[tuple[str, ...]] = set()
    for jobs in phases:
        checked = [each for each in jobs if each.job.verify not in (NONE, PRETENCE) and not each.job.operation]
        written |= {each.job.filenames for each in checked if each.job.writes}
        for each in checked:
            if not each.job.writes and (not each.job.filenames or each.job.filenames not in written):
                text = (
                    "no job of this file has written with verify what it reads; `spindle verify` with `state=FILE` "
                    "checks later"
                )
                each.say(Level.ERROR, "verify", text)
