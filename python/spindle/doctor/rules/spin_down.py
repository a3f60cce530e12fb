"""A drive that parks its heads or spins down by itself. See docs/reference/doctor."""

from __future__ import annotations

from spindle.base.commands import shell
from spindle.inspect.model import Device, Drive

from ..finding import Finding, Phase, Severity, Step
from ..rule import Results, Rule, RuleInput
from ..stack import rotates

MOST_WITH_STANDBY = 127
"""APM levels up to this one allow spinning down (hdparm(8) -B)."""
RATED_CYCLES = 600_000
"""Rated load cycles of a drive for servers (WD, Ultrastar DC HC580 specification, 6.5.4); others may have fewer."""
FIVE_YEARS_HOURS = 43_800
LEAST_HOURS = 100
"""A shorter time gives no meaningful pace."""
NO_STANDBY = 254


def _check(case: RuleInput) -> Results:
    for device, drive in case.stack.drives():
        if rotates(device) is False:
            continue
        level = drive.apm_level
        spins_down = level is not None and 0 < level <= MOST_WITH_STANDBY
        pace = _pace(drive)
        if spins_down or (pace is not None and pace * FIVE_YEARS_HOURS > RATED_CYCLES):
            yield _found(device, drive, level if spins_down else None, pace)


def _pace(drive: Drive) -> float | None:
    """Load cycles per hour."""
    smart = drive.smart
    if smart is None or smart.load_cycles is None or not smart.power_on_hours or smart.power_on_hours < LEAST_HOURS:
        return None
    return smart.load_cycles / smart.power_on_hours


def _found(device: Device, drive: Drive, level: int | None, pace: float | None) -> Finding:
    seen = [f"APM level {level} allows standby"] if level is not None else []
    if pace is not None and drive.smart is not None:
        seen.append(f"heads parked {drive.smart.load_cycles} times, {pace:.3g} per hour")
    return Finding(
        rule=RULE.name,
        object=device.id,
        severity=Severity.WARN,
        summary=f"{device.id} {'spins down' if level is not None else 'parks its heads'} by itself",
        evidence="; ".join(seen),
        why="A drive that saves power unloads its heads after seconds, and may stop its platters. The next request "
        "waits until they are back; in an array for every member.",
        effect=f"Seconds until the platters are at speed again. Each parking is one of the {RATED_CYCLES} (or fewer) "
        "that the drive is rated for.",
        numbers={
            **({"apm_level": level} if level is not None else {}),
            **({"load_cycles_per_hour": pace} if pace is not None else {}),
        },
        steps=[
            Step(
                phase=Phase.TUNE,
                about=f"stop {device.id} from parking and spinning down; the drive forgets it at power-off "
                "(hdparm.conf makes it permanent; some WD drives need idle3ctl instead)",
                commands=[shell("hdparm", "-B", NO_STANDBY, device.path)],
            )
        ],
    )


RULE = Rule("spin-down", "Drives neither spin down nor park their heads too often.", _check, ("drive.apm_level",))
