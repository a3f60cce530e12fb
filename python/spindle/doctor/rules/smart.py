"""A drive that reports its failure, or shows signs of it. See docs/reference/doctor."""

from __future__ import annotations

from collections.abc import Iterator

from spindle.base.commands import shell
from spindle.inspect.model import Smart

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..stack import Stack

GROWN_DEFECTS = 10
"""SAS drives replace a few sectors in their life; the count matters from here on."""
SPARE_PERCENT = 10
"""NVMe's usual threshold of spare blocks (available spare threshold)."""
CABLE_ERRORS = 10
"""CRC errors are never reset: a few from a cable that was once moved mean nothing."""


def _check(case: RuleInput) -> Results:
    for name, command, smart in _drives(case.stack):
        signs = list(_signs(smart))
        if signs:
            yield _found(name, command, signs)


def _drives(stack: Stack) -> Iterator[tuple[str, str, Smart]]:
    seen: set[str] = set()
    for device, drive in stack.drives():
        same = drive.wwid or device.id  # several paths to one drive
        if drive.smart is not None and same not in seen:
            seen.add(same)
            yield device.id, shell("smartctl", "-n", "standby", "-x", device.path), drive.smart
    for controller, raid in stack.raids():
        for behind in raid.drives:
            if behind.smart is not None:
                about = "smartctl --scan"
                yield f"{controller.id}/{behind.name}", about, behind.smart


Sign = tuple[Severity, str, dict[str, float]]


def _signs(smart: Smart) -> Iterator[Sign]:
    if smart.healthy is False:
        yield Severity.CRITICAL, "it reports that it is failing", {}
    if smart.failing:
        yield Severity.CRITICAL, f"at or below threshold: {', '.join(smart.failing)[:200]}", {}
    if smart.critical_warning:
        yield Severity.CRITICAL, f"critical warning {smart.critical_warning:#04x}", {}
    for count, least, level, words, name in (
        (smart.pending, 1, Severity.WARN, "sectors it could not read", "pending"),
        (smart.uncorrectable, 1, Severity.WARN, "errors it could not correct", "uncorrectable"),
        (smart.media_errors, 1, Severity.WARN, "media errors", "media_errors"),
        (smart.reallocated, 1, Severity.WARN, "sectors replaced by spares", "reallocated"),
        (smart.grown_defects, GROWN_DEFECTS, Severity.WARN, "grown defects", "grown_defects"),
        (smart.crc_errors, CABLE_ERRORS, Severity.NOTE, "errors on its cable", "crc_errors"),
    ):
        if count is not None and count >= least:
            yield level, f"{count} {words}", {name: count}
    if smart.spare_percent is not None and 0 <= smart.spare_percent < SPARE_PERCENT:
        yield Severity.CRITICAL, f"{smart.spare_percent} % spare blocks left", {"spare_percent": smart.spare_percent}
    if smart.failed_before:
        yield Severity.NOTE, f"was below threshold before: {', '.join(smart.failed_before)[:200]}", {}


def _found(name: str, command: str, signs: list[Sign]) -> Finding:
    worst = max((level for level, _, _ in signs), key=lambda level: level.rank)
    numbers: dict[str, float] = {}
    for _, _, more in signs:
        numbers |= more
    cable = all("cable" in words for _, words, _ in signs)
    return Finding(
        rule=RULE.name,
        object=name,
        severity=worst,
        summary=f"the cable of {name} garbles data"
        if cable
        else f"{name} {'fails' if worst is Severity.CRITICAL else 'shows signs of failing'}",
        evidence="; ".join(words for _, words, _ in signs),
        why="A frame with a wrong checksum is sent again; the medium is fine."
        if cable
        else "In a large population, drives with any of these signs failed far more often within two months than those "
        "without: after the first reallocation 14 times, after the first scan error 39 times (Pinheiro et al. 2007).",
        effect="Each costs a reset of the link, tens of milliseconds to seconds."
        if cable
        else "A sector that is hard to read keeps the drive busy for seconds, and the array with it; then the drive is "
        "lost.",
        numbers=numbers,
        steps=[
            Step(phase=Phase.LOOK, about=f"see all that {name} reports", commands=[command]),
            *(_another_cable(name) if cable else _another_drive(name)),
        ],
    )


def _another_cable(name: str) -> list[Step]:
    about = f"change the cable of {name}, with the machine off or {name} out of use"
    return [Step(phase=Phase.PROTECT, act=StepEffect.REWORK, about=about, needs=[Needs.HARDWARE])]


def _another_drive(name: str) -> list[Step]:
    copy = f"copy data of {name} that exists nowhere else, before anything reads the whole drive"
    swap = f"replace {name}; in an array while the old one still runs (its rule has the command)"
    return [
        Step(phase=Phase.PROTECT, act=StepEffect.MEND, about=copy, needs=[Needs.HARDWARE]),
        Step(phase=Phase.PROTECT, act=StepEffect.REPLACE, about=swap, needs=[Needs.HARDWARE]),
    ]


RULE = Rule("smart", "Drives show no signs of failing.", _check, ("smart.healthy",))
