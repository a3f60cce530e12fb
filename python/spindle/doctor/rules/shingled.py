"""A shingled (SMR) drive in an array or pool. See docs/reference/doctor."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from spindle.inspect.model import Device, Drive

from ..finding import Finding, Needs, Phase, Severity, Step, StepEffect
from ..rule import Results, Rule, RuleInput
from ..stack import rotates

KNOWN = Path(__file__).parents[1] / "data" / "shingled.toml"


def _check(case: RuleInput) -> Results:
    for device, drive in case.stack.drives():
        words = _shingled(device, drive)
        teams = case.stack.teams_of(device) if words else []
        if not teams or words is None:
            continue
        names = " and ".join(team.name for team in teams)
        yield Finding(
            rule=RULE.name,
            object=device.id,
            severity=Severity.WARN,
            summary=f"{device.id}, a member of {names}, is shingled",
            evidence=f"{drive.model or 'model not known'}: {words}",
            why="Shingled tracks overlap: random writes go to a reserve first and are moved later, "
            "band by band. A rebuild or a random load fills the reserve faster than the drive empties it.",
            effect="A RAID-Z rebuild onto one took more than 9 days where conventional drives took about 16 hours "
            "(ServeTheHome, 2020).",
            steps=[
                Step(
                    phase=Phase.REBUILD,
                    act=StepEffect.REPLACE,
                    about=f"replace {device.id} by a conventional (CMR) drive, one member at a time",
                    needs=[Needs.HARDWARE],
                )
            ],
        )


def _shingled(device: Device, drive: Drive) -> str | None:
    """Evidence that the drive is shingled."""
    if drive.recording is not None:
        return f"the drive reports it ({drive.recording})"
    for pattern, name, source in _known():
        if pattern.match((drive.model or "").strip()):
            return f"{name} ({source})"
    if drive.discards and rotates(device) and drive.transport == "sata":
        return "it rotates and accepts TRIM, which only shingled drives use"
    return None


@cache
def _known() -> list[tuple[re.Pattern[str], str, str]]:
    rows = tomllib.loads(KNOWN.read_text())["family"]
    return [(re.compile(row["model"], re.I), row["name"], row["source"]) for row in rows]


RULE = Rule("shingled", "No member of an array or pool is shingled.", _check, ("drive.model",))
