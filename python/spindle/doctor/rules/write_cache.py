"""A RAID controller's write cache that is off with a good battery, or on with a bad one. See docs/reference/doctor."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from spindle.inspect.model import Controller, HardwareRaid, RaidUnit

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput

FORCED = ("AWB", "FWB")
"""storcli: always write back, regardless of the battery."""


def _check(case: RuleInput) -> Results:
    for controller, raid in case.stack.raids():
        number = case.stack.raid_number(controller)
        for unit in raid.units:
            name = f"{controller.id}/{unit.name}"
            if unit.write_back is False and raid.battery_ok:
                yield _off(name, number, controller, raid, unit)
            elif unit.write_back and raid.battery_ok is False:
                yield _unprotected(name, number, controller, raid, unit)


def _off(name: str, number: int, controller: Controller, raid: HardwareRaid, unit: RaidUnit) -> Finding:
    return Finding(
        rule=RULE.name,
        object=name,
        severity=Severity.WARN,
        summary=f"the write cache of {unit.name} is off though its battery is good",
        evidence=f"cache {unit.cache or 'write through'}, battery {raid.battery}",
        why="A write that bypasses the cache waits for the platters: half a turn and a seek, and on RAID5 and RAID6 "
        "also the reads of old data and parity. With a good battery it is safe in the controller's memory at once.",
        effect="Synchronous writes at the speed of the drives (100 to 200 per second each) instead of the controller's "
        "memory (thousands), until it is full.",
        steps=[_switch(number, controller, raid, unit, on=True)],
    )


def _unprotected(name: str, number: int, controller: Controller, raid: HardwareRaid, unit: RaidUnit) -> Finding:
    falls_back = raid.tool in ("storcli", "perccli") and not _forced(unit)
    return Finding(
        rule=RULE.name,
        object=name,
        severity=Severity.WARN if falls_back else Severity.CRITICAL,
        summary=f"{unit.name} caches writes, and its battery is {_words(raid)}",
        evidence=f"cache {unit.cache or 'write back'}, battery {raid.battery}",
        why="Although set to write back, this controller writes through until its battery is good again."
        if falls_back
        else "A power failure loses the content of the cache, although its writes were completed. No journal protects "
        "against that, as its writes were completed too.",
        effect="Synchronous writes at the speed of the drives until then."
        if falls_back
        else "Up to the whole cache (256 MiB to 8 GiB) of the newest writes, and with them the file system.",
        steps=[
            Step(
                phase=Phase.PROTECT,
                act=StepEffect.MEND,
                about=f"replace or learn the battery of {controller.id}",
                needs=[Needs.HARDWARE],
            ),
            *([] if falls_back else [_switch(number, controller, raid, unit, on=False)]),
        ],
    )


def _forced(unit: RaidUnit) -> bool:
    return any(word in (unit.cache or "") for word in FORCED)


def _words(raid: HardwareRaid) -> str:
    return "absent" if raid.battery == "absent" else f"not good ({raid.battery})"


def _switch(number: int, controller: Controller, raid: HardwareRaid, unit: RaidUnit, *, on: bool) -> Step:
    about = f"{'let' if on else 'keep'} {unit.name} of {controller.id} {'cache' if on else 'from caching'} writes"
    return Step(phase=Phase.TUNE if on else Phase.PROTECT, about=about, commands=list(_command(number, raid, unit, on)))


def _command(number: int, raid: HardwareRaid, unit: RaidUnit, on: bool) -> Iterator[str]:
    if raid.tool == "tw_cli":
        yield f"tw_cli {quote(f'/c{number}/{unit.name}')} set cache={'on' if on else 'off'}"
    elif raid.tool in ("storcli", "perccli"):
        volume = unit.name.rpartition("/")[2]
        yield f"{raid.tool}64 {quote(f'/c{number}/v{volume}')} set wrcache={'wb' if on else 'wt'}"


RULE = Rule(
    "write-cache",
    "A RAID controller caches writes if, and only if, its battery is good.",
    _check,
    ("raid.units", "raid.battery"),
)
