"""The steps of all findings as one shell script, in the order in which they are safe.

What only reads or changes a setting is a command. What destroys data, takes it away for a while or needs a hand stays a
comment, and so does what would hurt in the state the machine is in now, which comes last: running the script as it is
can lose nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from .finding import Diagnosis, Finding, Needs, Phase, Step

HEADS = {
    Phase.LOOK: "Look: reads only",
    Phase.PROTECT: "Protect: redundancy first, and writes that can be lost",
    Phase.TUNE: "Tune: in force at once",
    Phase.KEEP: "Keep: over a reboot; skip what did not help",
    Phase.REBUILD: "Rebuild: by hand, when all above is done",
}
MARKS = {
    Needs.BACKUP: "NEEDS A BACKUP: what is on it is lost",
    Needs.OFFLINE: "OFFLINE: unmounted, stopped, or powered down",
    Needs.EDIT: "BY HAND: a file must be edited first",
    Needs.HARDWARE: "BY HAND: a part must be replaced or moved",
}

WAITING = "Wait: not before this has passed; then ask `spindle doctor` again"

NOTES = (
    "# Read it before you run it, as root, on the machine it is about; measure before and after each part. Nothing",
    "# here destroys data: what would, and what needs a hand, is a comment. `spindle restore` puts settings back.",
)


def script(diagnosis: Diagnosis) -> list[str]:
    """Lines for /bin/sh."""
    return list(_script(diagnosis))


def _script(diagnosis: Diagnosis) -> Iterator[str]:
    yield "#!/bin/sh"
    yield f"# {_line(_title(diagnosis))}"
    yield from NOTES
    yield "set -u"
    everything = [(found, step) for found in diagnosis.findings for step in found.steps]
    for phase, head in HEADS.items():
        yield from _part(head, [(found, step) for found, step in everything if step.phase is phase and not step.waits])
    waiting = [(found, step) for phase in HEADS for found, step in everything if step.phase is phase and step.waits]
    yield from _part(WAITING, waiting)


def _part(head: str, steps: list[tuple[Finding, Step]]) -> Iterator[str]:
    if not steps:
        return
    yield ""
    yield f"# --- {head} " + "-" * max(3, 100 - len(head))
    said: set[tuple[str, ...]] = set()
    for found, step in steps:
        key = (step.about, *step.commands)  # several findings may have the same remedy
        if key not in said:
            said.add(key)
            yield from _step(found, step)


def _title(diagnosis: Diagnosis) -> str:
    count = len(diagnosis.findings)
    about = diagnosis.target or ("this machine" if diagnosis.origin == "live" else "the capture")
    return f"{count} finding{'' if count == 1 else 's'} on {about}"


def _step(found: Finding, step: Step) -> Iterator[str]:
    yield ""
    yield f"# {found.severity} {found.rule}: {_line(found.summary)}"
    yield f"# {_line(step.about)}"
    for need in step.needs:
        yield f"# {MARKS[need]}"
    for state in step.waits:
        yield f"# WAIT: {_line(state)}"
    for command in step.commands:
        by_hand = step.needs or step.waits or "NEW" in command
        yield f"# {_line(command)}" if by_hand else _line(command)


def _line(text: str) -> str:
    """One line whatever a device or mount point is called: a script's lines are commands."""
    return "".join(char if char.isprintable() else "?" for char in text)
