"""Was the machine in a state that the figures can be compared?"""

from __future__ import annotations

from typing import Any

from spindle.result import units
from spindle.result.record import Level, RunRecord, Verdict

STEAL = 0.02
"""Share of CPU time taken by the hypervisor that shows in latencies."""
OTHERS = 0.20
"""Share of all CPU time used by others that shows in the load."""
ADVICE = {
    "other_io": "find who it is (iotop, pidstat -d) and run again without it",
    "cpu": "find who it is (top) and run again without it",
    "array_sync": "wait until it is done (cat /proc/mdstat), or repair the array",
    "swap": "free memory, or switch swap off for the measurement",
    "dirty_pages": "find who writes, and run again when it has ended",
}
"""What to do about a finding of the machine's checks."""
SHOWN = 4
"""Changes that are named; the rest are in the record."""


def settings_changed(record: RunRecord) -> list[Verdict]:
    """A run that straddles two settings belongs to neither."""
    settings = record.settings
    if not settings.before:
        return []
    if settings.changed:
        named = ", ".join(f"{change.name}: {change.before} -> {change.after}" for change in settings.changed[:SHOWN])
        more = len(settings.changed) - SHOWN
        return [
            Verdict(
                check="settings",
                level=Level.INVALID,
                evidence=f"settings changed during the run: {named}{f' and {more} more' if more > 0 else ''}",
                advice="find who changes them (udev, tuned, another test) and run again",
                numbers={"changed": float(len(settings.changed))},
            )
        ]
    return [
        Verdict(
            check="settings",
            level=Level.OK,
            evidence=f"{len(settings.before)} settings, all as before",
            numbers={"changed": 0.0},
        )
    ]


def during_the_run(record: RunRecord) -> list[Verdict]:
    """What the machine did beside the load while it ran."""
    during = record.during
    found = [verdict_of(finding, "during-") for finding in during.findings if finding["level"] != "ok"]
    if during.throttle_events:
        found.append(
            Verdict(
                check="during-throttling",
                level=Level.WARN,
                evidence=f"CPUs were slowed down for heat {during.throttle_events} times during the run",
                advice="cool the machine, or lower the load, and run again",
                numbers={"events": float(during.throttle_events)},
            )
        )
    if during.cpu_steal > STEAL:
        found.append(
            Verdict(
                check="during-steal",
                level=Level.WARN,
                evidence=f"the hypervisor took {units.percent(during.cpu_steal)} of the CPU time during the run",
                advice="the host is crowded: run again at another time and compare",
                numbers={"steal": during.cpu_steal},
            )
        )
    if during.cpu_others > OTHERS:
        found.append(
            Verdict(
                check="during-cpu",
                level=Level.WARN,
                evidence=f"other programs used {units.percent(during.cpu_others)} of all CPU time during the run",
                advice="find who it is (top) and run again without it",
                numbers={"others": during.cpu_others},
            )
        )
    return found


def target_changed(record: RunRecord) -> list[Verdict]:
    """A target that vanished or changed its size was not measured to the end."""
    trouble = record.target.detail.get("trouble")
    if not trouble:
        return []
    return [
        Verdict(
            check="target",
            level=Level.INVALID,
            evidence=str(trouble),
            advice="see what the kernel log (dmesg) says about it",
        )
    ]


def before_the_run(record: RunRecord) -> list[Verdict]:
    """What the idle check found, as it stated it."""
    return [verdict_of(finding) for finding in record.idle.get("findings", [])]


def verdict_of(finding: dict[str, Any], when: str = "before-") -> Verdict:
    """A finding of the machine's checks as a verdict."""
    return Verdict(
        check=when + finding["check"].replace("_", "-"),
        level=Level(finding["level"]),
        evidence=finding["text"],
        advice="" if finding["level"] == "ok" else ADVICE.get(finding["check"], ""),
        numbers={name: float(value) for name, value in finding.get("evidence", {}).items()},
    )
