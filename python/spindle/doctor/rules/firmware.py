"""A drive with firmware that is known to fail. See docs/reference/doctor."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..stack import Stack

KNOWN = Path(__file__).parents[1] / "data" / "firmware.toml"


@dataclass(frozen=True)
class _Fault:
    model: re.Pattern[str]
    firmware: re.Pattern[str]
    before: str | None
    hours: int | None
    what: str
    fixed: str
    source: str
    slow: bool
    """It costs speed, not data."""

    def fits(self, model: str, firmware: str) -> bool:
        known = self.model.fullmatch(model) and self.firmware.fullmatch(firmware)
        return bool(known) and (self.before is None or firmware < self.before)


def _check(case: RuleInput) -> Results:
    for name, model, firmware, hours in _drives(case.stack):
        for fault in _known():
            if fault.fits(model, firmware):
                yield _found(name, model, firmware, hours, fault)


def _drives(stack: Stack) -> Iterator[tuple[str, str, str, int | None]]:
    for device, drive in stack.drives():
        if drive.model is not None and drive.firmware is not None:
            hours = drive.smart.power_on_hours if drive.smart is not None else None
            yield device.id, drive.model.strip(), drive.firmware.strip(), hours


def _found(name: str, model: str, firmware: str, hours: int | None, fault: _Fault) -> Finding:
    seen = f"{model}, firmware {firmware}"
    if fault.hours is not None and hours is not None:
        left = fault.hours - hours
        seen += f"; on for {hours} hours, {left} before it happens" if left > 0 else f"; on for {hours} hours"
    return Finding(
        rule=RULE.name,
        object=name,
        severity=Severity.WARN if fault.slow else Severity.CRITICAL,
        summary=f"the firmware of {name} is known to {'slow it down' if fault.slow else 'fail'}",
        evidence=seen,
        why=f"With this firmware the drive {fault.what} ({fault.source}).",
        effect="An array waits for its slowest member."
        if fault.slow
        else "Drives of one delivery have the same firmware and the same hours: redundancy does not help.",
        numbers={"power_on_hours": hours} if hours is not None else {},
        steps=[
            Step(
                phase=Phase.PROTECT,
                act=StepEffect.REWORK,
                about=f"back up {name}, then update its firmware ({fault.fixed}) with its maker's tool, in an array "
                "one member at a time",
                needs=[Needs.BACKUP, Needs.OFFLINE],
            )
        ],
    )


@cache
def _known() -> tuple[_Fault, ...]:
    rows = tomllib.loads(KNOWN.read_text())["fault"]
    return tuple(
        _Fault(
            model=re.compile(row["model"], re.I),
            firmware=re.compile(row["firmware"]),
            before=row.get("before"),
            hours=row.get("hours"),
            what=row["what"],
            fixed=row["fixed"],
            source=row["source"],
            slow=row.get("slow", False),
        )
        for row in rows
    )


RULE = Rule("firmware", "No drive has firmware that is known to fail.", _check, ("drive.model", "drive.firmware"))
