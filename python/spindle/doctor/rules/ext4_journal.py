"""ext4 and ext3 file systems that write data twice, or in an order that can reveal old data. See
docs/reference/doctor."""

from __future__ import annotations

from shlex import quote

from spindle.inspect.model import FileSystem

from ..finding import Finding, Needs, Phase, Severity, Step
from ..rule import Results, Rule, RuleInput

JOURNALLED = ("ext3", "ext4")


def _check(case: RuleInput) -> Results:
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
        why="With data=journal all data goes to the journal first, and to its place later. Delayed allocation and "
        "direct I/O are off: a program that asks for O_DIRECT gets the page cache.",
        effect="At most half the write throughput, and sequential writes become many small ones; only loads of small "
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
        why="With data=writeback a file's new size and blocks can be in the journal before its data is on the drive.",
        effect="After a crash files can contain old data of the blocks, also of other users; the gain over "
        "data=ordered is small since ext4 has delayed allocation.",
        steps=_steps(found),
    )


def _steps(found: FileSystem) -> list[Step]:
    point, source = quote(found.mount_point), quote(found.source)
    return [
        Step(
            phase=Phase.REBUILD,
            about=f"mount {found.mount_point} with data=ordered: remove data= from /etc/fstab and from the superblock",
            commands=[
                f"umount {point}",
                f"tune2fs -o ^journal_data,^journal_data_writeback {source}",
                f"mount {point}",
            ],
            needs=[Needs.OFFLINE],
        )
    ]


RULE = Rule("ext4-journal", "ext4 journals only its metadata, and writes data once and first.", _check, ("fs.journal",))
