"""The group of verbs, each imported only when it is used, and the one place where errors become lines."""

from __future__ import annotations

import fcntl
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence

import click

from spindle.cli.exits import Exit

VERBS = {
    "run": "Run a workload on a file, a block device or a modelled machine.",
    "fio": "Run jobs of fio, given as fio's own command line.",
    "durability": "Write, sync, and note elsewhere what was acknowledged, until the power is cut.",
    "verify": "Tell whether a target still holds what was written to it.",
    "convert": "Turn fio's job files into workloads, and tell what is not carried over.",
    "campaign": "Compare alternatives: plans, trials in fair order, resumable.",
    "quick": "Tell in about a minute what a device delivers.",
    "store": "List, show, tag, export, import and check stored results.",
    "sql": "Ask the store in SQL.",
    "inspect": "Show the block stack from mount point to controller, with its settings.",
    "doctor": "Tell what is wrong with the block stack, and what would mend it.",
    "compare": "Tell by how much alternatives differ, how sure that is, and which is the best.",
    "check": "Exit with 1 if results got worse than a baseline, beyond chance.",
    "show": "Show a result that was saved.",
    "report": "Make one file of results: HTML, Markdown, CSV, text or a picture.",
    "knobs": "See and change settings of devices, memory and CPUs.",
    "restore": "Put back every setting that was changed.",
    "monitor": "Show what disks, CPUs and control groups do, interval by interval.",
    "array": "Draw a RAID array and tell what it holds, bears and costs.",
    "drives": "List the drives that models are made of, or draw one.",
    "validate": "Hold the models against data of real arrays and drives.",
    "presets": "List the presets, or print one.",
    "metrics": "List the metrics that results are compared by.",
    "verdicts": "List the verdicts on results.",
    "schema": "Print the JSON Schema of results, workloads or inventories.",
}
"""Verb -> one line; the module of the same name has it as `command`."""


class Verbs(click.Group):
    """Lists the verbs without importing them."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"spindle.cli.{name}").command
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            from spindle.base.suggestions import meant

            hint = meant(name, VERBS, f"the verbs are {', '.join(VERBS)}")
            context.fail(f"no verb `{name}`; {hint}")
        return super().resolve_command(context, args)

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
    epilog="Exit status: 0 fine, 1 the run failed or a verdict is invalid, 2 usage, 3 refused for safety.",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.pass_context
def spindle(context: click.Context) -> Exit | None:
    """Measure disks, arrays and file systems: true figures, and whether they can be believed."""
    if context.invoked_subcommand is not None:
        return None
    print(context.get_help(), file=sys.stderr)
    return Exit.USAGE


def main(arguments: Sequence[str] | None = None) -> None:
    """The program: exits with the status, never with a traceback."""
    _open_standard_streams()
    status = _interruptible(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        _forget_stdout()
        if status is Exit.FINE and not isinstance(error, BrokenPipeError):
            print(f"spindle: the output cannot be written ({error.strerror})", file=sys.stderr)
            status = Exit.FAILED
    # All is said and cleaned up: a late second Ctrl-C must not make another status of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(status)


def _interruptible(arguments: Sequence[str] | None) -> int:
    """Ctrl-C unwinds the verb; before and after it, it ends the process silently."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # as nohup asks
    try:
        if not ignored:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return invoke(arguments)
    except KeyboardInterrupt:  # a second one, while the first was being explained
        return Exit.FAILED
    finally:
        if not ignored:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _open_standard_streams() -> None:
    """Started with one of them closed, the next file opened would take its number, and with it what is meant for
    the terminal; and names that are not UTF-8 must not keep a result from being shown.
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
    try:
        # Not `spindle.main`: it would turn the signals that unwind a run into an Abort of its own.
        with spindle.make_context("spindle", list(sys.argv[1:] if arguments is None else arguments)) as context:
            status = spindle.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        _forget_stdout()
        return Exit.FAILED
    except click.exceptions.NoArgsIsHelpError as error:  # a verb with parts, and none was named
        print(error.ctx.get_help() if error.ctx is not None else error.format_message(), file=sys.stderr)
        return Exit.USAGE
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get("SPINDLE_TRACEBACK") == "1":
            raise
        from spindle.cli.failure import explain

        line, failed = explain(error)
        print(line, file=sys.stderr)
        return failed
    return status or Exit.FINE


def _forget_stdout() -> None:
    """Whoever read our output is gone; without this the interpreter complains at its end."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
