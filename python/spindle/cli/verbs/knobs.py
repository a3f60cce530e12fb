"""`spindle knobs`: settings that can be changed while the machine runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spindle.cli.exits import Exit
from spindle.cli.output import json_option
from spindle.cli.writing import WritingCommand, forced

if TYPE_CHECKING:
    from spindle.host.signals import Stopped
    from spindle.knobs.places import KnobFolder
    from spindle.knobs.session import ChangeResult, Session, Setting


@click.group("knobs")
def command() -> None:
    """Show, change and restore settings of devices, virtual memory, arrays and CPUs."""


def _say(line: str) -> None:
    from spindle.cli.failure import one_line

    print(f"spindle: {one_line(line)}", file=sys.stderr)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _profile_option(command: click.decorators.FC) -> click.decorators.FC:
    return click.option("--profile", metavar="NAME", help="Include the settings of this profile.")(command)


def _wanted(words: tuple[str, ...], profile: str | None) -> list[Setting]:
    from spindle.library.settings import wanted_of

    return wanted_of(words, profile)


def _change(session: Session, wanted: list[Setting], strict: bool) -> list[ChangeResult]:
    from spindle.library.settings import changed

    return changed(session, wanted, strict, _say)


@command.command("list")
@click.argument("target", required=False)
@json_option
def list_(target: str | None, json: bool) -> Exit:
    """List the knobs; with TARGET (a device, vm, raid, cpu0, irq35) those it has, with their values."""
    from spindle.knobs.catalogue import Scope
    from spindle.knobs.places import interrupts_of, named
    from spindle.report.terminal.knobs import at_places, catalogue

    if target is None:
        _print(catalogue(json))
        return Exit.FINE
    place = named(target)
    places = [place, *(interrupts_of(place) if place.scope is Scope.DEVICE else [])]
    _print(at_places(places, json))
    return Exit.FINE


@command.command("get")
@click.argument("words", nargs=-1, required=True, metavar="[DEVICE] [KNOB]...")
@json_option
def get(words: tuple[str, ...], json: bool) -> Exit:
    """Print knobs as KNOB=VALUE, as `set` takes them; without KNOB all of DEVICE."""
    from spindle.knobs.asking import meant
    from spindle.knobs.errors import KnobUsage
    from spindle.knobs.files import Files
    from spindle.knobs.places import named
    from spindle.report.terminal.knobs import values

    device: KnobFolder | None = None
    try:
        device, words = named(words[0]), words[1:]
    except KnobUsage as error:
        if "/" in words[0] or len(words) > 1:
            try:
                meant(None, words[0])
            except KnobUsage:
                raise error from None
    if device is not None and not words:
        _print(values([(device, one) for one in device.knobs(Files())], json))
        return Exit.FINE
    found = [one for word in words for one in meant(device, word)]
    for place, one in found:
        if place.path(one) is None:
            raise KnobUsage(f"{place.address(one)}: {place.label} has no `{one.name}` now")
    _print(values(found, json))
    return Exit.FINE


@command.command("set")
@click.argument("words", nargs=-1, metavar="[DEVICE] KNOB=VALUE...")
@_profile_option
@click.option("--strict", is_flag=True, help="Refuse if the kernel uses another value than the one given.")
@json_option
def set_(words: tuple[str, ...], profile: str | None, strict: bool, json: bool) -> int:
    """Change knobs until `spindle restore`. Either all of them are changed, or none."""
    wanted = _wanted(words, profile)
    return _set(wanted, strict, json)


def _set(wanted: list[Setting], strict: bool, json: bool) -> int:
    from spindle.host.signals import Stopped, unwinding
    from spindle.knobs.session import Session
    from spindle.report.terminal.knobs import made, troubles

    session = Session("set")
    try:
        with unwinding(), session:
            done = _change(session, wanted, strict)
            session.keep()
    except Stopped as stopped:
        return _stopped(stopped)
    finally:
        for line in troubles(session.undone):
            _say(line)
    _print(made(done, json))
    return Exit.FINE


def _stopped(stopped: Stopped) -> int:
    _say(f"stopped by {stopped}; everything was restored")
    return 128 + stopped.signum


@command.command("diff")
@click.argument("device", required=False)
@click.option("--profile", metavar="NAME", help="Compare with this profile instead.")
@json_option
def diff(device: str | None, profile: str | None, json: bool) -> Exit:
    """Show what Spindle changed and did not restore: before, set to, now. With --profile, the differences from it."""
    from spindle.knobs import profile as profiles
    from spindle.knobs.files import Files
    from spindle.knobs.persist import persisted
    from spindle.knobs.places import named
    from spindle.knobs.restore import pending
    from spindle.report.terminal.knobs import against, difference

    place = named(device) if device is not None else None
    if profile is not None:
        wanted = profiles.settings(profiles.load(profile), place)
        now = [(one.address, one.value, one.place.value(one.knob, Files())) for one in wanted]
        _print(against([row for row in now if row[1] != row[2]], json))
        return Exit.FINE
    report = pending(persisted=persisted())
    if place is not None:
        report.items = [item for item in report.items if item.knob.startswith(f"{place.label}.")]
    _print(difference(report, json))
    for line in (*report.refused, *report.notes):
        _say(line)
    return Exit.FINE


class _WithCommand(click.Command):
    """A verb that leaves everything after `--` to the given command, options too."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        head, tail = (args[: args.index("--")], args[args.index("--") + 1 :]) if "--" in args else (args, [])
        context.meta[__name__] = tuple(tail)
        return super().parse_args(context, head)


@command.command("with", cls=_WithCommand, options_metavar="[OPTIONS]")
@click.argument("words", nargs=-1, metavar="[DEVICE] KNOB=VALUE... -- COMMAND")
@_profile_option
@click.option("--strict", is_flag=True, help="Refuse if the kernel uses another value than the one given.")
@json_option
@click.pass_context
def with_(context: click.Context, words: tuple[str, ...], profile: str | None, strict: bool, json: bool) -> int:
    """Change knobs while COMMAND runs, and restore them however it ends.

    The exit status is that of COMMAND. With --json, a report follows the output of COMMAND.
    """
    from spindle.host.signals import Stopped, unwinding
    from spindle.knobs import command as commands
    from spindle.knobs.session import Session
    from spindle.knobs.undo import State
    from spindle.report.terminal.knobs import of_command, troubles

    line: tuple[str, ...] = context.meta[__name__]
    wanted = _wanted(words, profile)
    try:
        commands.check(line)
    except commands.CommandNotFound as error:
        _say(str(error))
        return error.status
    session = Session("with")
    try:
        with unwinding(), session:
            done = _change(session, wanted, strict)
            sys.stdout.flush()
            status = commands.run(line)
    except Stopped as stopped:
        return _stopped(stopped)
    finally:
        for text in troubles(session.undone):
            _say(text)
    if json:
        print(of_command(done, session.undone, status))
    failed = any(item.state is State.FAILED for item in session.undone)
    return status or (Exit.FAILED if failed else Exit.FINE)


@command.group("profile")
def profile_group() -> None:
    """Named sets of values, for any device."""


@profile_group.command("save", cls=WritingCommand)
@click.argument("name")
@click.argument("words", nargs=-1, required=True, metavar="[DEVICE] [KNOB|KNOB=VALUE]...")
@json_option
def profile_save(name: str, words: tuple[str, ...], json: bool) -> Exit:
    """Save profile NAME: the given or the current values; without KNOB all of DEVICE."""
    from spindle.knobs import asking
    from spindle.knobs import profile as profiles
    from spindle.knobs.errors import KnobUsage
    from spindle.knobs.files import Files
    from spindle.knobs.places import named
    from spindle.knobs.session import Setting
    from spindle.report.terminal.knobs import to_json

    files = Files()
    try:
        device: KnobFolder | None = named(words[0]) if "=" not in words[0] else None
        rest = words[1:] if device is not None else words
    except KnobUsage:
        asking.meant(None, words[0])  # then it is a knob, or this raises
        device, rest = None, words
    if not rest and device is not None:
        found = [(device, one) for one in device.knobs(files)]
        settings = [Setting(at, one, value) for at, one in found if (value := at.value(one, files)) is not None]
    else:
        settings = []
        for word in rest:
            if "=" in word:
                settings += asking.settings(device, [word])
                continue
            for at, one in asking.meant(device, word):
                if (value := at.value(one, files)) is None:
                    raise KnobUsage(f"{at.address(one)}: cannot be read here")
                settings.append(Setting(at, one, value))
    # Of a pair such as dirty_ratio and dirty_bytes only one is in force.
    settings = [one for one in settings if one.value != "0" or one.knob.values.parse("0") is not None]
    path = profiles.save(name, settings, forced())
    print(to_json({"profile": name, "path": str(path)}) if json else f"saved {name}: {path}")
    return Exit.FINE


@profile_group.command("apply")
@click.argument("name")
@click.argument("device", required=False)
@click.option("--strict", is_flag=True, help="Refuse if the kernel uses another value than the one given.")
@json_option
def profile_apply(name: str, device: str | None, strict: bool, json: bool) -> int:
    """Set the values of profile NAME, until `spindle restore`."""
    return _set(_wanted((device,) if device is not None else (), name), strict, json)


@profile_group.command("show")
@click.argument("name", required=False)
@json_option
def profile_show(name: str | None, json: bool) -> Exit:
    """List the profiles, or the values of profile NAME."""
    from spindle.knobs import profile as profiles
    from spindle.report.terminal import knobs as report

    if name is None:
        _print(report.profiles([(one, profiles.path_of(one)) for one in profiles.names()], json))
        return Exit.FINE
    values = profiles.load(name)
    print(report.to_json(values) if json else profiles.text(name, values).rstrip())
    return Exit.FINE


@command.command("persist")
@click.argument("words", nargs=-1, metavar="[DEVICE] KNOB=VALUE...")
@_profile_option
@click.option("--tuned", is_flag=True, help="Write a tuned profile `spindle` as well.")
@click.option("--remove", is_flag=True, help="Remove what was persisted (of DEVICE, if given).")
@click.option("--dry-run", is_flag=True, help="Only show the files.")
@click.option("--yes", is_flag=True, help="Do not ask before writing files.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path("/"),
    help="Write below this folder instead of /: for an image.",
)
@json_option
def persist(
    words: tuple[str, ...],
    profile: str | None,
    tuned: bool,
    remove: bool,
    dry_run: bool,
    yes: bool,
    root: Path,
    json: bool,
) -> Exit:
    """Make settings persistent over boots: a udev rule, a sysctl.d file, and with --tuned a tuned profile.

    The files are shown before they are written. The current values do not change; `spindle knobs set` does that.
    """
    from spindle.knobs import persist as persisting
    from spindle.report.terminal.knobs import drafts, to_json

    if remove:
        if len(words) > 1 or profile is not None or any("=" in word for word in words):
            raise click.UsageError("--remove takes a device or no argument")
        gone = [str(path) for path in persisting.remove(root, words[0].removeprefix("/dev/") if words else None)]
        print(
            to_json({"removed": gone}) if json else "\n".join(f"removed {path}" for path in gone) or "nothing to remove"
        )
        return Exit.FINE
    files = persisting.drafts(_wanted(words, profile), root, tuned)
    data = [{"path": str(draft.path), "text": draft.text([]), "sets": dict(draft.sets)} for draft in files]
    if json:
        print(to_json({"files": data, "written": not dry_run}))
    else:
        _print(drafts(files))
    if dry_run:
        return Exit.FINE
    if not yes:
        _confirm(len(files))
    persisting.write(files, root)
    for draft in files:
        print(f"wrote {draft.path}", file=sys.stderr)
    return Exit.FINE


def _confirm(count: int) -> None:
    from spindle.knobs.errors import KnobRefusal

    if not sys.stdin.isatty():
        raise KnobRefusal("there is no terminal to confirm these files; --yes confirms beforehand, nothing was written")
    if not click.confirm(f"Write {'this file' if count == 1 else f'these {count} files'}?", default=False, err=True):
        raise KnobRefusal("nothing was written")
