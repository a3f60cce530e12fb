"""A degraded or failed unit or drive of a RAID controller. See docs/reference/doctor."""

from __future__ import annotations

from collections.abc import Iterator

from spindle.inspect.model import Controller, HardwareRaid

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..states import UNIT_BUSY, UNIT_WELL

EMPTY = ("NOT-PRESENT", "-")


def _check(case: RuleInput) -> Results:
    for controller, raid in case.stack.raids():
        for name, state, kind in _parts(raid):
            word = state.upper()
            if word in UNIT_BUSY or word not in UNIT_WELL:
                yield _found(
                    case.stack.raid_number(controller), controller, raid, name, state, kind, busy=word in UNIT_BUSY
                )


def _parts(raid: HardwareRaid) -> Iterator[tuple[str, str, str]]:
    for unit in raid.units:
        if unit.state is not None:
            yield unit.name, unit.state, "unit"
    for drive in raid.drives:
        empty = drive.state is not None and drive.state.upper() in EMPTY and drive.unit is None
        if drive.state is not None and not empty:
            yield drive.name, drive.state, "drive"


def _found(
    number: int, controller: Controller, raid: HardwareRaid, name: str, state: str, kind: str, *, busy: bool
) -> Finding:
    checks = busy and state.upper() == "VERIFYING"
    command = f"tw_cli /c{number} show" if raid.tool == "tw_cli" else f"{raid.tool}64 /c{number} show all"
    return Finding(
        rule=RULE.name,
        object=f"{controller.id}/{name}",
        severity=Severity.NOTE if checks else Severity.WARN if busy else Severity.CRITICAL,
        summary=f"{kind} {name} of {controller.id} "
        f"{'is being rebuilt or checked' if busy else 'is degraded or failed'}",
        evidence=f"state {state}",
        why="The controller reads or writes its drives beside the load."
        if busy
        else "The controller runs with the rest; how many more failures it tolerates depends on the level.",
        effect="Results measured meanwhile are not those of the unit."
        if busy
        else "Slower reads where data must be computed, and less or no redundancy.",
        steps=[
            Step(phase=Phase.LOOK, about=f"see the state of {controller.id}", commands=[command]),
            *(
                []
                if busy
                else [
                    Step(
                        phase=Phase.PROTECT,
                        act=StepEffect.MEND,
                        about=f"replace the failed parts of {name}",
                        needs=[Needs.HARDWARE],
                    )
                ]
            ),
        ],
    )


RULE = Rule("raid-unit", "Units and drives of RAID controllers are healthy.", _check, ("raid.units", "raid.drives"))
