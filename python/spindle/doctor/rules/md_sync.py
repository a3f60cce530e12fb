"""An array that resyncs, rebuilds, checks or reshapes. See docs/reference/doctor."""

from __future__ import annotations

from spindle.inspect.model import Device, Md

from ..finding import Finding, Severity
from ..rule import Results, Rule, RuleInput

WORDS = {
    "resync": ("is being resynced", Severity.WARN),
    "recover": ("is being rebuilt", Severity.WARN),
    "reshape": ("is being reshaped", Severity.WARN),
    "repair": ("is being repaired", Severity.WARN),
    "check": ("is being checked", Severity.NOTE),
}
"""sync_action (Documentation/admin-guide/md.rst) -> description and severity."""


def _check(case: RuleInput) -> Results:
    for device, md in case.stack.arrays():
        if md.sync_action is not None and md.sync_action in WORDS:
            yield _found(device, md, *WORDS[md.sync_action])


def _found(device: Device, md: Md, words: str, severity: Severity) -> Finding:
    done, total, speed = md.sync_done_sectors, md.sync_total_sectors, md.sync_speed_kb
    seen, numbers = f"sync_action {md.sync_action}", {}
    if done is not None and total:
        seen += f", {100 * done / total:.1f} % done"
        numbers["done_share"] = done / total
        if speed:
            seconds = max(total - done, 0) * 512 / (speed * 1024)
            seen += f", {seconds / 60:.0f} min left at {speed * 1.024 / 1000:.1f} MB/s"
            numbers |= {"seconds_left": seconds, "speed_bytes_per_s": speed * 1024}
    limit = md.sync_speed_max_kb
    if limit:
        seen += f"; limit {limit * 1.024 / 1000:.0f} MB/s for each member"
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=severity,
        summary=f"{device.id} {words}",
        evidence=seen,
        why="md reads or writes every member completely beside the load, at least at sync_speed_min, and up to "
        "sync_speed_max when there is no other I/O.",
        effect="Its requests compete with the load: results measured meanwhile are not those of the array."
        + (" Until it has finished, redundancy is incomplete." if md.sync_action == "recover" else ""),
        numbers=numbers,
    )


RULE = Rule("md-sync", "No array resyncs, rebuilds, checks or reshapes.", _check, ("md.sync_action",))
