"""A durability test in words: writes, findings and conclusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from spindle.base import units
from spindle.base.commands import given, shell
from spindle.report.terminal.style import Style
from spindle.report.terminal.table import Column, table
from spindle.result.durability import Cut, DurabilityCheck, WriteTest
from spindle.result.journal import Findings, Header, Journal
from spindle.result.record import Level

if TYPE_CHECKING:
    from spindle.run.durability.receiver import ReceivedJournal

_SYNCS = {
    "fsync": "fsync",
    "fdatasync": "fdatasync",
    "dsync": "write with O_DSYNC",
    "fua": "write with RWF_DSYNC",
    "none": "pretended sync",
}
_FOUND = {
    "write": "an earlier write",
    "torn": "sectors of different writes",
    "before": "what was there before the run",
    "zeroes": "zeroes",
    "misplaced": "data of another place",
    "corrupt": "a wrong check sum",
    "other": "data that is not of the run",
    "unreadable": "nothing: it cannot be read",
    "missing": "nothing: the target ends before it",
}
_ENDS = {"time": "its time was over", "stopped": "it was stopped", "error": "a write or sync failed"}
_ENDINGS = {
    "cut": "it ends in the middle of an entry, as a cut leaves it",
    "damaged": "what follows its last whole entry is damaged and is not used",
}


# --- the writers -----------------------------------------------------------------------------------------------------


def written_page(written: WriteTest, style: Style) -> Iterator[str]:
    """Yield the page of writers that ended in good order."""
    figures, plan = written.figures, written.header.plan
    yield from style.headline(f"Durability: {written.header.about.target.path}, {_load(written.header)}")
    yield ""
    latency = figures.sync_latency
    acknowledged = sum(figures.acknowledged)
    yield from style.wrap(
        f"{units.count(acknowledged)} writes with {units.count(figures.syncs)} acknowledged syncs in "
        f"{units.duration(figures.elapsed_ns)}: {units.count(round(figures.syncs_per_s))} a second",
        first="Acknowledged  ",
    )
    yield from style.wrap(
        f"mean {units.duration(latency.mean_ns)}, median {units.duration(latency.p50_ns)}, 99 % within "
        f"{units.duration(latency.p99_ns)}, longest {units.duration(latency.max_ns)}",
        first=f"{_SYNCS[plan.sync].split()[0].capitalize():<13} ",
    )
    yield from style.wrap(
        f"{written.journal}, {units.size(figures.journal_bytes)}; the writers spent "
        f"{units.percent(figures.journal_fraction)} of their time on it, {units.percent(figures.target_fraction)} on "
        "the target",
        first="Journal       ",
    )
    here = "://" not in written.journal
    check = _check(written.journal) if here else f"{_check('JOURNAL', 'TARGET')}, where the receiver is"
    yield f"Check with    {check}"


def _load(header: Header) -> str:
    plan = header.plan
    writers = "1 worker" if plan.workers == 1 else f"{plan.workers} workers"
    each = f"every {_SYNCS[plan.sync]} acknowledged"
    if plan.sync not in ("dsync", "fua"):
        before = "1 write" if plan.batch == 1 else f"1 to {plan.batch} writes"
        each = f"{before} before each {_SYNCS[plan.sync]}"
    blocks = f"blocks of {units.size(plan.block_bytes)} in {units.size(plan.size_bytes)}"
    way = "" if header.about.target.direct else "buffered, "
    return f"{writers}, {plan.pattern}, {blocks}, {way}{each}"


def received_page(received: ReceivedJournal, style: Style) -> Iterator[str]:
    """Yield the lines about a received journal."""
    how = {
        "closed": "the connection was closed",
        "silent": "no data arrived any more, as when the writer's power is cut",
        "full": "it reached its bound",
        "garbage": "the data was not a journal any more",
        "stopped": "stopped here",
    }[received.ended]
    journal = received.journal
    end = f"the writer ended: {_ENDS[journal.end]}" if journal.end else how
    yield from style.wrap(
        f"{received.path}: run {journal.header.run} on {journal.header.about.host}, {units.count(journal.syncs)} "
        f"acknowledged syncs in {units.duration(journal.last_ns)}; {end}."
    )
    yield f"Check with: {_check(received.path, 'TARGET')}"


def _check(journal: object, *target: str) -> str:
    return shell("spindle", "verify", *given(after_crash=journal), *target)


# --- after the crash -------------------------------------------------------------------------------------------------


def page(checked: DurabilityCheck, style: Style) -> Iterator[str]:
    """Yield the page of the findings after the crash."""
    findings = checked.findings
    journal = findings.journal
    level = Level.OK if checked.sound else Level.INVALID
    yield from style.headline(f"After the crash: {checked.target}")
    for line in style.wrap(verdict_words(findings)):
        yield style.level(level, line)
    yield ""
    about = journal.header.about
    yield from style.wrap(
        f"{about.target.path} on {about.host}, {about.started}, run {journal.header.run}: {_load(journal.header)}",
        first="Written  ",
    )
    yield from style.wrap(_journal(journal), first="Journal  ")
    yield from style.wrap(_blocks(findings), first="Blocks   ")
    if findings.blocks.lost:
        yield from style.wrap(_lost(findings), first="Lost     ")
    yield from style.wrap(_order(findings), first="Order    ")
    if findings.losses:
        yield ""
        yield from _losses(findings, style)
    meaning = _meaning(findings)
    for text in [*([meaning] if meaning else []), *checked.notes]:
        yield ""
        yield from style.wrap(text[:1].upper() + text[1:] + ".")


def cuts_page(machine: str, cuts: Sequence[Cut], summary: str, style: Style) -> Iterator[str]:
    """Yield a line for each cut in the lab, then the verdicts."""
    yield from style.headline(f"Power cuts in the lab: {machine}")
    columns = [
        Column("cut"),
        Column("at"),
        *(Column(head) for head in ("acknowledged", "lost", "torn")),
        Column("verdict", words=True),
    ]
    rows = []
    for number, cut in enumerate(cuts):
        found = cut.findings
        counts = [sum(found.journal.acknowledged), found.blocks.lost, found.blocks.torn_unacknowledged] if found else []
        texts = [units.count(count) for count in counts] or ["-"] * 3
        rows.append([str(number), f"{cut.at_ns / 1e9:.6f} s", *texts, cut.said or cut.verdict])
    yield from table(columns, rows, style)
    yield ""
    yield f"{len(cuts)} cuts: {summary}"


def verdict_words(findings: Findings) -> str:
    """Return the conclusion in a sentence."""
    blocks = findings.blocks
    acknowledged = sum(findings.journal.acknowledged)
    match findings.verdict:
        case "kept":
            return f"Nothing is lost: all {units.count(acknowledged)} acknowledged writes are there, or newer ones."
        case "nothing":
            return "No conclusion: no sync was acknowledged before the journal ends."
        case "reordered":
            return (
                f"Order was broken: {_writes(findings.reordered)} missing that had to be durable before others, which "
                "are there, were issued."
            )
        case "damaged":
            return (
                f"Damaged: no acknowledged write is missing, but {_places(blocks.damaged)} that nobody had to write to "
                "are not as they were."
            )
        case "overwritten":
            return (
                f"Overwritten: {_places(blocks.lost)} of acknowledged writes hold data that is neither of the run nor "
                "was there before; this points to another writer, not to a lost sync."
            )
        case _:
            order = " Order was kept." if findings.order_kept else ""
            if findings.order_kept is False:
                order = " Order was broken too."
            return f"LOST: {units.count(blocks.lost)} acknowledged write{_s(blocks.lost)} not there.{order}"


def _journal(journal: Journal) -> str:
    parts = [f"{units.count(journal.syncs)} acknowledged syncs in {units.duration(journal.last_ns)}"]
    parts.append(f"the writer ended: {_ENDS[journal.end]}" if journal.end else "the writer was cut off")
    if journal.ending in _ENDINGS:
        parts.append(f"{_ENDINGS[journal.ending]} ({units.count(journal.bytes_after)} bytes)")
    return "; ".join(parts)


def _blocks(findings: Findings) -> str:
    blocks = findings.blocks
    counts = [
        (blocks.kept, "as acknowledged"),
        (blocks.newer, "newer (not acknowledged yet)"),
        (blocks.torn_unacknowledged, "torn (not acknowledged yet)"),
        (blocks.untouched, "not written to"),
        (blocks.lost, "lost"),
        (blocks.damaged, "damaged"),
    ]
    parts = ", ".join(f"{units.count(number)} {what}" for number, what in counts if number)
    return f"{units.count(blocks.checked)} read: {parts}"


def _lost(findings: Findings) -> str:
    first, last, end = findings.first_lost_ns, findings.last_lost_ns, findings.journal.last_ns
    instead = ", ".join(f"{units.count(each.blocks)} x {_FOUND[each.found]}" for each in findings.instead)
    when = ""
    if first is not None and last is not None:
        when = (
            f"acknowledged from {units.duration(max(0, end - first))} to {units.duration(max(0, end - last))} before "
            "the journal's last sign of life; "
        )
    return f"{when}in their place: {instead}"


def _order(findings: Findings) -> str:
    if findings.order_kept is None:
        unsynced = findings.journal.header.plan.sync == "none"
        return "not promised: nothing was synced" if unsynced else "unknown: nothing of the run is there"
    if findings.order_kept:
        return "kept: nothing is there that was issued after a sync whose writes are not"
    first = findings.reorderings[0]
    return (
        f"broken in {_places(findings.reordered)}: for one, worker {first.worker}'s write {first.present_write} at "
        f"{first.present_offset} is there, but not its write {first.missing_write} at {first.missing_offset}, "
        "which was synced before"
    )


def _losses(findings: Findings, style: Style) -> Iterator[str]:
    end = findings.journal.last_ns
    columns = [
        *(Column(head) for head in ("worker", "write", "offset", "before the end")),
        Column("there instead", words=True),
    ]
    rows = [
        [
            str(loss.worker),
            str(loss.write),
            str(loss.offset),
            "-" if loss.acknowledged_ns is None else units.duration(max(0, end - loss.acknowledged_ns)),
            _FOUND[loss.found] + (f" ({loss.found_write})" if loss.found_write is not None else ""),
        ]
        for loss in findings.losses
    ]
    yield from table(columns, rows, style)
    more = findings.blocks.lost - len(rows)
    if more > 0:
        yield f"and {units.count(more)} more"


def _meaning(findings: Findings) -> str | None:
    if findings.verdict in ("lost", "reordered"):
        if findings.journal.header.plan.sync == "none":
            return "nothing was synced in this run: the loss shows that this test detects loss"
        return (
            "something between the file and the medium (file system, array, controller, drive) said that data was "
            "durable when it was not: look for a volatile write cache without power-loss protection, and for nobarrier"
        )
    if findings.verdict == "kept" and findings.journal.end in ("time", "stopped"):
        return f"the writer had ended before ({_ENDS[findings.journal.end]}): only a cut while it writes is a test"
    return None


def _writes(number: int) -> str:
    return "1 write is" if number == 1 else f"{units.count(number)} writes are"


def _places(number: int) -> str:
    return "1 place" if number == 1 else f"{units.count(number)} places"


def _s(number: int) -> str:
    return " is" if number == 1 else "s are"
