"""A drive that is too hot. See docs/reference/doctor."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..stack import Stack, rotates

PLATTERS_CELSIUS = 55
"""Data sheets allow 60; from five degrees below, a hot day or a rebuild reaches it."""
FLASH_CELSIUS = 70
"""Data sheets allow 70; from about there on flash slows itself down."""


def _check(case: RuleInput) -> Results:
    for name, celsius, limit in _drives(case.stack):
        if celsius < limit:
            continue
        turns = limit == PLATTERS_CELSIUS
        yield Finding(
            rule=RULE.name,
            object=name,
            severity=Severity.WARN,
            summary=f"{name} is hot",
            evidence=f"{celsius} °C, limit {limit} °C for {'drives that turn' if turns else 'flash'}",
            why="Above its data sheet's limit a drive makes more errors and fails earlier."
            if turns
            else "Flash slows itself down to cool, in the middle of a load.",
            effect="In a large population, drives of three years and more failed more often above 45 °C "
            "(Pinheiro et al. 2007)."
            if turns
            else "Throughput drops until the drive has cooled.",
            numbers={"celsius": celsius, "limit_celsius": limit},
            steps=[
                Step(
                    phase=Phase.PROTECT,
                    act=StepEffect.MEND,
                    about=f"improve the cooling of {name}",
                    needs=[Needs.HARDWARE],
                )
            ],
        )


def _drives(stack: Stack) -> Iterator[tuple[str, int, int]]:
    for device, drive in stack.drives():
        if drive.smart is not None and (celsius := drive.smart.temperature_celsius) is not None:
            yield device.id, celsius, FLASH_CELSIUS if rotates(device) is False else PLATTERS_CELSIUS
    for controller, raid in stack.raids():
        for behind in raid.drives:
            if behind.smart is not None and (celsius := behind.smart.temperature_celsius) is not None:
                limit = FLASH_CELSIUS if behind.medium == "SSD" else PLATTERS_CELSIUS
                yield f"{controller.id}/{behind.name}", celsius, limit


RULE = Rule("temperature", "No drive is hot.", _check, ("smart.temperature_celsius",))
