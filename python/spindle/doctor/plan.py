"""The steps of all findings as one shell script, in a safe order.

Steps that only read or change a setting are commands. Steps that destroy data, make it unavailable or need manual work
are comments; so are steps that would do harm in the machine's current state, which come last. Running the script
unchanged cannot lose data.
"""

from __future__ import annotations

from collections.abc import Iterator

from spindle.base.commands import given, shell

from .finding import Diagnosis, Finding, Needs, Phase, Step, StepEffect

HEADS = {
    Phase.LOOK: "Look: reads only",
    Phase.PROTECT: "Protect: redundancy first, and writes that could be lost",
    Phase.TUNE: "Tune: in force at once",
    Phase.KEEP: "Keep: for the next boots; skip what did not help",
    Phase.REBUILD: "Rebuild: by hand, after all steps above",
}
MARKS = {
    Needs.BACKUP: "NEEDS A BACKUP: data on the part is lost",
    Needs.OFFLINE: "OFFLINE: unmounted, stopped, or powered down",
    Needs.EDIT: "BY HAND: a file must be edited first",
    Needs.HARDWARE: "BY HAND: a part must be replaced or moved",
}

WAITING = "Wait: not before these states have passed; then run `spindle doctor` again"

NOTES = (
    "# Read it before you run it, as root, on the machine that it describes; measure before and after each part. "
    "Nothing",
    "# here destroys data: steps that would, and steps that need manual work, are comments.",
)

JOURNALLED = "spindle knobs set "
"""Beginning of commands that are in the journal of `spindle restore`."""
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
    """Comments on how to undo the changes of this script when it is run unchanged."""
    changing = [command for step in steps for command in _live(step) if _changes(step)]
    if any(command.startswith(JOURNALLED) for command in changing):
        yield "# `spindle restore` undoes `spindle knobs set`."
    if any(command.startswith(LASTING) for command in changing):
        yield f"# `{LASTING}{shell(*given(remove=True))}` undoes `{LASTING.strip()}`."
    if any(_is_not_undone(step) for step in steps):
        yield f"# Steps that neither of them undoes are marked {NOT_UNDONE}: note the old state first."


def _changes(step: Step) -> bool:
    return step.does not in (StepEffect.LOOK, StepEffect.READ_ALL)


def _is_not_undone(step: Step) -> bool:
    return _changes(step) and any(not command.startswith((JOURNALLED, LASTING)) for command in _live(step))


def _live(step: Step) -> list[str]:
    """Its commands that are not comments."""
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
    """The text on one line, also if the name of a device or mount point has line breaks: lines of a script are
    commands."""
    return "".join(char if char.isprintable() else "?" for char in text)
