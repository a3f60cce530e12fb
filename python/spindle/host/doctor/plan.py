"""The steps of all findings as one shell script, in the order in which they are safe.

What only reads or changes a setting is a command. What destroys data, takes it away for a while or needs a hand stays a
comment, and so does what would hurt in the state the machine is in now, which comes last: running the script as it is
can lose nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from .finding import Act, Diagnosis, Finding, Needs, Phase, Step

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
    "# here destroys data: what would, and what needs a hand, is a comment.",
)

JOURNALLED = "spindle knobs set "
"""Commands that begin so are in the journal of `spindle restore`."""
LASTING = "spindle knobs persist "
NOT_UNDONE = "NOT UNDONE by `spindle restore`"


def script(diagnosis: Diagnosis) -> list[str]:
    """Lines for /bin/sh."""
    return list(_script(diagnosis))


def _script(diagnosis: Diagnosis) -> Iterator[str]:
    yield "#!/bin/sh"
    yield f"# {_line(_title(diagnosis))}"
    everything = [(found, step) for found in diagnosis.findings for step in found.steps]
    yield from NOTES
    yield from _undoing([step for _, step in everything])
    yield "set -u"
    for phase, head in HEADS.items():
        yield from _part(head, [(found, step) for found, step in everything if step.phase is phase and not step.waits])
    waiting = [(found, step) for phase in HEADS for found, step in everything if step.phase is phase and step.waits]
    yield from _part(WAITING, waiting)


def _undoing(steps: list[Step]) -> Iterator[str]:
    """What `spindle restore` puts back of what this script changes when it is run as it is."""
    changing = [command for step in steps for command in _live(step) if _changes(step)]
    if any(command.startswith(JOURNALLED) for command in changing):
        yield "# `spindle restore` puts back what `spindle knobs set` sets here."
    if any(command.startswith(LASTING) for command in changing):
        yield "# `spindle knobs persist --remove` takes away what `spindle knobs persist` writes here."
    if any(_is_not_undone(step) for step in steps):
        yield f"# What neither of them undoes is marked {NOT_UNDONE}: note first how it is."


def _changes(step: Step) -> bool:
    return step.does not in (Act.LOOK, Act.READ_ALL)


def _is_not_undone(step: Step) -> bool:
    return _changes(step) and any(not command.startswith((JOURNALLED, LASTING)) for command in _live(step))


def _live(step: Step) -> list[str]:
    """Its commands that are no comments."""
    return [] if step.needs or step.waits else [command for command in step.commands if "NEW" not in command]


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
    if _is_not_undone(step):
        yield f"# {NOT_UNDONE}"
    live = _live(step)
    for command in step.commands:
        yield _line(command) if command in live else f"# {_line(command)}"


def _line(text: str) -> str:
    """One line whatever a device or mount point is called: a script's lines are commands."""
    return "".join(char if char.isprintable() else "?" for char in text)
