"""A record to where it was asked for: the terminal, a pipe, a file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from spindle.cli.exits import Exit
from spindle.cli.writing import OutputOption

if TYPE_CHECKING:  # a verb's options are made without what shows its result
    from spindle.cli.storing import Keeping
    from spindle.formats.fio_json import Shape
    from spindle.formats.fio_output import Wanted
    from spindle.host.outputs import Output
    from spindle.result.record import Record


def emit(
    record: Record,
    json: bool,
    output: Output | None,
    strict: bool = False,
    keeping: Keeping | None = None,
    output_format: Wanted | None = None,
    shape: Shape | None = None,
    into: Output | None = None,
    why: bool = False,
) -> Exit:
    """Print (save, store) the record; the exit status follows from its verdicts. `shape`: of fio's formats. `into`:
    what would be printed goes to this file instead. `why`: every warning in full."""
    from spindle.result.document import encode
    from spindle.run.errors import RunFailed

    data = encode(record)
    if output is not None:
        output.save(data)
    unkept = _keep(record, keeping)
    try:
        if into is not None:
            into.save(_printed(record, data, json, output_format, shape, why, terminal=False))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(_printed(record, data, json, output_format, shape, why, terminal=True))
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RunFailed(f"the result cannot be written to stdout ({error.strerror}); use --output FILE") from None
    complain(record)
    if unkept is not None:
        raise unkept
    return status_of(record, strict)


def _printed(
    record: Record, data: bytes, json: bool, wanted: Wanted | None, shape: Shape | None, why: bool, *, terminal: bool
) -> bytes:
    """What is shown of a record; `data`: its own JSON."""
    if json:
        return data
    if wanted is None:
        return _page(record, why, terminal)
    from spindle.formats import fio_output

    found = fio_output.write(record, wanted, shape)
    return found + (_page(record, why, terminal) if wanted.normal else b"")


def _page(record: Record, why: bool, terminal: bool) -> bytes:
    from spindle.report.page import page
    from spindle.report.style import Style, style_of

    lines = page(record, style_of(sys.stdout, why) if terminal else Style())
    text = "".join(f"{line}\n" for line in lines)
    if not terminal:
        return text.encode()
    return text.encode(sys.stdout.encoding, sys.stdout.errors or "strict")


def _keep(record: Record, keeping: Keeping | None) -> Exception | None:
    """What keeps the store from taking it: said when the result was shown, which is then all there is of it."""
    if keeping is None:
        return None
    from spindle.store.errors import StoreError

    try:
        keeping.keep(record)
    except StoreError as error:
        return error
    return None


def status_of(record: Record, strict: bool) -> Exit:
    """Failed if a verdict is invalid; with `strict`, if one is not ok."""
    from spindle.result.record import Level

    bad = record.level is Level.INVALID or (strict and record.level is not Level.OK)
    return Exit.FAILED if bad else Exit.FINE


def complain(record: Record) -> None:
    """A run that an error ended says so on stderr, whatever became of stdout."""
    from spindle.result.figures import EndedByError
    from spindle.result.record import RunRecord

    for run in [record] if isinstance(record, RunRecord) else record.runs:
        if isinstance(run.figures.ended_by, EndedByError):
            verdict = next(verdict for verdict in run.verdicts if verdict.check == "interrupted")
            print(f"spindle: {run.target.asked}: {verdict.evidence}; {verdict.advice}", file=sys.stderr)
            return


def json_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--json`."""
    return click.option("--json", is_flag=True, help="Print the result as JSON instead of tables.")(command)


def why_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--why`."""
    return click.option("--why", is_flag=True, help="Show every warning in full, not only the worst.")(command)


def output_format_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--output-format`."""
    return click.option(
        "--output-format",
        metavar="FORMAT",
        callback=_output_format,
        help="Print what fio's option of this name prints: json, json+ (with all latencies), terse, normal (Spindle's "
        "tables), or several as in json,terse. Spindle's own JSON is --json.",
    )(command)


def one_form(json: bool, output_format: object) -> None:
    """Refuse a result that is to be printed in two forms."""
    if json and output_format:
        raise click.UsageError("--json and --output-format exclude each other; leave one out")


def _output_format(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Wanted | None:
    if text is None:
        return None
    from spindle.formats import fio_output

    try:
        return fio_output.parse(text)
    except ValueError as unknown:
        names = ", ".join(fio_output.NAMES)
        raise click.BadParameter(f"`{unknown}` is none of {names}; Spindle's own JSON is --json") from None


def output_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--output FILE`."""
    return click.option(
        "-o",
        "--output",
        cls=OutputOption,
        kind="result",
        help="Save the result (JSON) to a file as well; `spindle show FILE` shows it again.",
    )(command)


def strict_option(command: click.decorators.FC) -> click.decorators.FC:
    """`--strict`, for verbs that look at a result; those that measure have it from `care`."""
    return click.option("--strict", is_flag=True, help="Exit with 1 on a warning as well.")(command)
