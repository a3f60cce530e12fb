"""ext4 and ext3 that write data twice, or in an order that shows old data. See docs/doctor."""

from __future__ import annotations

from shlex import quote

from ...inspect.model import FileSystem
from ..finding import Finding, Needs, Phase, Severity, Step
from ..rule import Case, Rule, Told

JOURNALLED = ("ext3", "ext4")


def _check(case: Case) -> Told:
    for found in case.stack.inventory.file_systems:
        if found.type not in JOURNALLED or "ro" in found.options:
            continue
        if found.journal == "journal":
            yield _twice(found)
        elif found.journal == "writeback":
            yield _stale(found)


def _twice(found: FileSystem) -> Finding:
    own = found.log_device is not None
    return Finding(
        rule=RULE.name,
        object=found.id,
        severity=Severity.NOTE if own else Severity.WARN,
        summary=f"{found.mount_point} writes all data twice",
        evidence="mounted with data=journal" + (f", journal on {found.log_device}" if own else ""),
        why="With data=journal everything goes to the journal first, and to its place later. Delayed allocation and "
        "direct I/O are off: a program that asks for O_DIRECT gets the page cache.",
        effect="At most half the write throughput, and writes that were one run become many; only loads of small "
        "synchronous writes with a journal on a device of its own gain.",
        steps=_steps(found),
    )


def _stale(found: FileSystem) -> Finding:
    return Finding(
        rule=RULE.name,
        object=found.id,
        severity=Severity.WARN,
        summary=f"{found.mount_point} may show old data after a crash",
        evidence="mounted with data=writeback",
        why="With data=writeback a file's new size and blocks may be in the journal before its data are on the drive.",
        effect="After a crash files can hold what was there before, another user's data too; the gain over "
        "data=ordered "
        "is small since ext4 allocates late.",
        steps=_steps(found),
    )


def _steps(found: FileSystem) -> list[Step]:
    point, source = quote(found.mount_point), quote(found.source)
    return [
        Step(
            phase=Phase.REBUILD,
            about=f"mount {found.mount_point} with data=ordered: take data= out of /etc/fstab and out of the "
            "superblock",
            commands=[
                f"umount {point}",
                f"tune2fs -o ^journal_data,^journal_data_writeback {source}",
                f"mount {point}",
            ],
            needs=[Needs.OFFLINE],
        )
    ]


RULE = Rule("ext4-journal", "ext4 journals its metadata, and writes data once and first.", _check, ("fs.journal",))
