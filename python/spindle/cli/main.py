"""The group of verbs, each imported only when it is used, and the one place where errors become lines."""

from __future__ import annotations

import fcntl
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from spindle.cli.exits import Exit

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VERBS = {
    "run": "Run a workload on a file, a device or a modelled machine.",
    "quick": "Measure in about a minute what a device delivers.",
    "assess": "Is this storage good enough for a purpose?",
    "predict": "Predict what a target should deliver, with a band.",
    "design": "Find the cheapest drives and array that meet a need.",
    "verify": "Check that a target still has what was written to it.",
    "durability": "Find acknowledged writes that a power cut loses.",
    "campaign": "Compare alternatives: plans, random order, resumable.",
    "tune": "Find the best settings for a load, and how sure that is.",
    "fleet": "Run one load on many hosts at one instant; compare them.",
    "fio": "Run jobs of fio, given as fio's own command line.",
    "convert": "Turn fio's job files into workloads; list what differs.",
    "show": "Show a saved result.",
    "compare": "Compare alternatives: differences, intervals, a ranking.",
    "check": "Exit with 1 if results are worse than a baseline.",
    "report": "Make one file of results: HTML, Markdown, CSV, a picture.",
    "store": "List, show, tag, export, import and check stored results.",
    "sql": "Query the store in SQL.",
    "inspect": "Show the block stack from mount point to controller.",
    "doctor": "Find problems of the block stack, with their remedies.",
    "knobs": "Show and change settings of devices, memory and CPUs.",
    "restore": "Put back every setting that was changed.",
    "monitor": "Show I/O of disks, CPUs and control groups as it happens.",
    "lab": "Run the real kernel in virtual time, on modelled drives.",
    "array": "Draw a RAID array; its cost and risk; advice for your drives.",
    "drives": "List the drives that models are made of, or draw one.",
    "drive": "Serve a modelled drive as a disk in real time.",
    "validate": "Check the models against data of real arrays and drives.",
    "presets": "List the presets, or print one.",
    "metrics": "List the metrics that results are compared by.",
    "verdicts": "List the verdicts on results.",
    "schema": "Print the JSON Schema of results, workloads, inventories.",
    "help": "Show the pages of the documentation.",
    "completion": "Print the completion script of a shell.",
}
"""Verb -> its help line. The module of the same name has its `command`."""


COMPLETE = "_SPINDLE_COMPLETE"
"""The variable by which a shell's completion script asks what fits."""


class Verbs(click.Group):
    """A group that lists its verbs without importing them."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"spindle.cli.verbs.{name}").command
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in VERBS and not name.startswith("-") and not context.resilient_parsing:
            from spindle.base.suggestions import meant

            hint = meant(name, VERBS, f"the verbs are {', '.join(VERBS)}")
            context.fail(f"no verb `{name}`; {hint}")
        return super().resolve_command(context, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """The verbs with their lines, none of them imported."""
        from click.shell_completion import CompletionItem

        verbs = [CompletionItem(name, help=line) for name, line in VERBS.items() if name.startswith(incomplete)]
        return verbs or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


def _version(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from spindle import _core

        print(f"spindle {_core.__version__}")
        context.exit()


@click.group(
    cls=Verbs,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""`spindle VERB --help` shows the options of a verb, `spindle help` the pages of the documentation.

    Exit status: 0 fine, 1 the run failed or a verdict is invalid, 2 usage, 3 refused for safety.""",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.pass_context
def spindle(context: click.Context) -> Exit | None:
    """Measure, explain, tune and predict the performance of disks, RAID arrays and file systems."""
    if context.invoked_subcommand is not None:
        return None
    print(context.get_help(), file=sys.stderr)
    return Exit.USAGE


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit with its status, never with a traceback."""
    _open_standard_streams()
    if asked := os.environ.get(COMPLETE):
        sys.exit(_complete(asked))
    status = _interruptible(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        _forget_stdout()
        if status is Exit.FINE and not isinstance(error, BrokenPipeError):
            print(f"spindle: the output cannot be written ({error.strerror})", file=sys.stderr)
            status = Exit.FAILED
    # Everything is printed and cleaned up: a late second Ctrl-C must not change the status.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(status)


def _complete(asked: str) -> int:
    """Print what fits a line that is being typed: nothing, if the line is wrong so far."""
    from click.shell_completion import shell_complete

    try:
        return shell_complete(spindle, {}, "spindle", COMPLETE, asked)
    except Exception:
        return Exit.FAILED


def _interruptible(arguments: Sequence[str] | None) -> int:
    """Run the verb. Ctrl-C unwinds it; before and after it, Ctrl-C ends the process silently."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # nohup
    try:
        if not ignored:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return invoke(arguments)
    except KeyboardInterrupt:  # a second signal while the first was being explained
        return Exit.FAILED
    finally:
        if not ignored:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _open_standard_streams() -> None:
    """Open closed standard streams, so that no other file takes their number and receives the terminal's text; let
    names that are not UTF-8 be printed.
    """
    with open(os.devnull, "r+") as nowhere:
        spare = fcntl.fcntl(nowhere.fileno(), fcntl.F_DUPFD_CLOEXEC, 3)
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(spare, number)
    os.close(spare)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def invoke(arguments: Sequence[str] | None = None) -> int:
    """Run a verb. Every error becomes one line on stderr. The status is an `Exit`, or that of a command it ran."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        # Not `spindle.main`: it would turn the signals that unwind a run into its own Abort.
        with spindle.make_context("spindle", list(words)) as context:
            status = spindle.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        _forget_stdout()
        return Exit.FAILED
    except click.exceptions.NoArgsIsHelpError as error:  # a verb with subcommands, and none was given
        print(error.ctx.get_help() if error.ctx is not None else error.format_message(), file=sys.stderr)
        return Exit.USAGE
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get("SPINDLE_TRACEBACK") == "1":
            raise
        from spindle.cli.failure import explain

        if isinstance(error, click.UsageError) and error.ctx is None:
            error.ctx = _context_of(words)
        line, failed = explain(error)
        print(line, file=sys.stderr)
        return failed
    return status or Exit.FINE


def _context_of(words: Sequence[str]) -> click.Context:
    """The verb of a command line; click does not always say which one it could not parse."""
    command: click.Command = spindle
    context = click.Context(command, info_name="spindle")
    for word in words:
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is None:
            break
        command, context = found, click.Context(found, parent=context, info_name=word)
    return context


def _forget_stdout() -> None:
    """Drop buffered output: its reader is gone, and the interpreter would complain at exit."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
