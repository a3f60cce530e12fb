"""`spindle knobs`: settings that can be changed while the machine runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from spindle.cli.exits import Exit
from spindle.cli.output import json_option, put_lines
from spindle.cli.showing import put
from spindle.cli.writing import WritingCommand, forced


@click.group("knobs")
def command() -> None:
    """Show, change and restore settings of devices, virtual memory, arrays and CPUs."""


def _say(line: str) -> None:
    from spindle.cli.failure import one_line

    print(f"spindle: {one_line(line)}", file=sys.stderr)


def _profile_option(command: click.decorators.FC) -> click.decorators.FC:
    return click.option("--profile", metavar="NAME", help="Include the settings of this profile.")(command)


@command.command("list")
@click.argument("target", required=False)
@json_option
def list_(target: str | None, json: bool) -> Exit:
    """List the knobs; with TARGET (a device, vm, raid, cpu0, irq35) those it has, with their values."""
    from spindle.library.settings import places_of
    from spindle.report.terminal.knobs import at_places, catalogue

    put_lines(catalogue(json) if target is None else at_places(places_of(target), json))
    return Exit.FINE


@command.command("get")
@click.argument("words", nargs=-1, required=True, metavar="[DEVICE] [KNOB]...")
@json_option
def get(words: tuple[str, ...], json: bool) -> Exit:
    """Print knobs as KNOB=VALUE, as `set` takes them; without KNOB all of DEVICE."""
    from spindle.library.settings import chosen
    from spindle.report.terminal.knobs import values

    put_lines(values(chosen(words), json))
    return Exit.FINE


@command.command("set")
@click.argument("words", nargs=-1, metavar="[DEVICE] KNOB=VALUE...")
@_profile_option
@click.option("--strict", is_flag=True, help="Refuse if the kernel uses another value than the one given.")
@json_option
def set_(words: tuple[str, ...], profile: str | None, strict: bool, json: bool) -> int:
    """Change knobs until `spindle restore`. Either all of them are changed, or none."""
    return _set(words, profile, strict, json)


def _set(words: Sequence[str], profile: str | None, strict: bool, json: bool) -> int:
    from spindle.library.settings import kept, wanted_of
    from spindle.report.terminal.knobs import made

    changes = kept(wanted_of(words, profile), strict, _say)
    if not changes.status:
        put_lines(made(changes.done, json))
    return changes.status


@command.command("diff")
@click.argument("device", required=False)
@click.option("--profile", metavar="NAME", help="Compare with this profile instead.")
@json_option
def diff(device: str | None, profile: str | None, json: bool) -> Exit:
    """Show what Spindle changed and did not restore: before, set to, now. With --profile, the differences from it."""
    from spindle.library.settings import different, left_changed
    from spindle.report.terminal.knobs import against, difference

    if profile is not None:
        put_lines(against(different(profile, device), json))
        return Exit.FINE
    report = left_changed(device)
    put_lines(difference(report, json))
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
    from spindle.library.settings import wanted_of, with_command
    from spindle.report.terminal.knobs import of_command

    changes = with_command(context.meta[__name__], wanted_of(words, profile), strict, _say)
    if json and changes.has_run:
        print(of_command(changes.done, changes.undone, changes.status))
    return changes.status or (Exit.FAILED if changes.failed else Exit.FINE)


@command.group("profile")
def profile_group() -> None:
    """Named sets of values, for any device."""


@profile_group.command("save", cls=WritingCommand)
@click.argument("name")
@click.argument("words", nargs=-1, required=True, metavar="[DEVICE] [KNOB|KNOB=VALUE]...")
@json_option
def profile_save(name: str, words: tuple[str, ...], json: bool) -> Exit:
    """Save profile NAME: the given or the current values; without KNOB all of DEVICE."""
    from spindle.library.settings import saved_profile

    path = str(saved_profile(name, words, forced()))
    return put({"profile": name, "path": path}, [f"saved {name}: {path}"], json)


@profile_group.command("apply")
@click.argument("name")
@click.argument("device", required=False)
@click.option("--strict", is_flag=True, help="Refuse if the kernel uses another value than the one given.")
@json_option
def profile_apply(name: str, device: str | None, strict: bool, json: bool) -> int:
    """Set the values of profile NAME, until `spindle restore`."""
    return _set((device,) if device is not None else (), name, strict, json)


@profile_group.command("show")
@click.argument("name", required=False)
@json_option
def profile_show(name: str | None, json: bool) -> Exit:
    """List the profiles, or the values of profile NAME."""
    from spindle.library.settings import profile_files, profile_values
    from spindle.report.terminal.knobs import profile_text, profiles

    put_lines(profiles(profile_files(), json) if name is None else profile_text(name, profile_values(name), json))
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
    from spindle.library.settings import boot_files, remove_boot_files, wanted_of, write_boot_files
    from spindle.report.terminal.knobs import drafts, removed

    if remove:
        if len(words) > 1 or profile is not None or any("=" in word for word in words):
            raise click.UsageError("--remove takes a device or no argument")
        put_lines(removed(remove_boot_files(root, words[0] if words else None), json))
        return Exit.FINE
    files = boot_files(wanted_of(words, profile), root, tuned)
    put_lines(drafts(files, json, not dry_run))
    if dry_run:
        return Exit.FINE
    write_boot_files(files, root, yes or _confirmed(len(files)))
    for draft in files:
        print(f"wrote {draft.path}", file=sys.stderr)
    return Exit.FINE


def _confirmed(count: int) -> bool | None:
    """Ask; None: there is no terminal."""
    if not sys.stdin.isatty():
        return None
    return click.confirm(f"Write {'this file' if count == 1 else f'these {count} files'}?", default=False, err=True)
