"""Output of a record: to the terminal, a pipe or a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from spindle.cli.exits import Exit, failed
from spindle.cli.failure import spelled
from spindle.cli.writing import OutputOption

if TYPE_CHECKING:  # parsing options must not import what shows the result
    from spindle.cli.options.status import GrowingOutput
    from spindle.cli.options.storing import StoreOptions
    from spindle.formats.fio_json import ReportOptions
    from spindle.formats.fio_output import OutputFormats
    from spindle.host.outputs import Output
    from spindle.result.record import Record


def emit(
    record: Record,
    json: bool,
    output: Output | None,
    strict: bool = False,
    keeping: StoreOptions | None = None,
    output_format: OutputFormats | None = None,
    shape: ReportOptions | None = None,
    into: GrowingOutput | None = None,
    why: bool = False,
) -> Exit:
    """Print (save, store) the record and return the exit status by its verdicts. `shape`: shape of fio's formats.
    `into`: write to this file instead of printing. `why`: show every warning in full."""
    from spindle.result.document import encode

    data = encode(record)
    if output is not None:
        output.save(data)
    unkept = _keep(record, keeping)
    put(record, data, json, output_format, shape, into, why)
    if unkept is not None:
        raise unkept
    return status_of([record], strict)


def put(
    record: Record,
    data: bytes = b"",
    json: bool = False,
    output_format: OutputFormats | None = None,
    shape: ReportOptions | None = None,
    into: GrowingOutput | None = None,
    why: bool = False,
    runs: Sequence[Record] | None = None,
    is_last: bool = True,
) -> None:
    """Print a record, or write it to a file. `data`: its own JSON. `runs`: the runs to show in fio's formats.
    `is_last`: it is the result, not a status report."""
    from spindle.run.errors import RunFailed

    printed = _printed(record, data, json, output_format, shape, why, runs or [record], terminal=into is None)
    if not is_last and (output_format is None or output_format.normal):
        printed += b"\n"  # between two pages
    try:
        if into is not None:
            into.save(printed) if is_last else into.add(printed)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(printed)
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RunFailed(f"the result cannot be written to stdout ({error.strerror}); use --output FILE") from None


def _printed(
    record: Record,
    data: bytes,
    json: bool,
    wanted: OutputFormats | None,
    shape: ReportOptions | None,
    why: bool,
    runs: Sequence[Record],
    *,
    terminal: bool,
) -> bytes:
    """Return the text of a record; `data`: its own JSON, `runs`: the runs to show in fio's formats."""
    if json:
        return data
    if wanted is None:
        return _page(record, why, terminal)
    from spindle.formats import fio_output

    found = fio_output.write(runs, wanted, shape)
    return found + (_page(record, why, terminal) if wanted.normal else b"")


def _page(record: Record, why: bool, terminal: bool) -> bytes:
    from spindle.report.terminal.page import page
    from spindle.report.terminal.style import Style, style_of

    lines = page(record, style_of(sys.stdout, why) if terminal else Style())
    text = "".join(f"{spelled(line)}\n" for line in lines)
    if not terminal:
        return text.encode()
    return text.encode(sys.stdout.encoding, sys.stdout.errors or "strict")


def _keep(record: Record, keeping: StoreOptions | None) -> Exception | None:
    """Store the record. Return the error, which is raised only after the result was shown."""
    if keeping is None:
        return None
    from spindle.store.errors import StoreError

    try:
        keeping.keep(record)
    except StoreError as error:
        return error
    return None


def status_of(records: Sequence[Record], strict: bool) -> Exit:
    """Return FAILED if a verdict is invalid, or not ok with `strict`, and print the first such verdict."""
    bad = [record for record in records if _is_bad(record, strict)]
    if not bad:
        return Exit.FINE
    also = f" ({len(bad)} of {len(records)} results)" if len(records) > 1 else ""
    return failed(f"{_reason(bad[0])}{also}")


def _is_bad(record: Record, strict: bool) -> bool:
    from spindle.result.record import Level

    return record.level is Level.INVALID or (strict and record.level is not Level.OK)


def _reason(record: Record) -> str:
    """Return the worst verdict of a record in words; first the one that ended the run, as others follow from it."""
    found = [(_place_of(record), verdict) for verdict in record.verdicts]
    for run in getattr(record, "runs", ()):
        found += [(run.target.asked, verdict) for verdict in run.verdicts]
    place, worst = max(found, key=lambda each: (each[1].level.rank, each[1].check == "interrupted"))
    named = "" if worst.check == "interrupted" else f"{worst.check}: "
    return f"{place}: {named}{worst.evidence}" + (f"; {worst.advice}" if worst.advice else "")


def _place_of(record: Record) -> str:
    from spindle.result.record import ImportedRecord, RunRecord

    match record:
        case RunRecord():
            return record.target.asked
        case ImportedRecord():
            return record.source.file
        case _:
            return record.runs[0].target.asked if record.runs else record.id


def put_lines(lines: Iterable[str]) -> None:
    """Print text that names keywords of the library, with their options instead."""
    for line in lines:
        print(spelled(line))


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


def one_form(json: bool, output_format: object, status_interval: float | None = None) -> None:
    """Refuse two output formats, and status reports in a format without any."""
    if json and status_interval is not None:
        raise click.UsageError("--json is one document with all seconds; with --status-interval use --output-format")
    if json and output_format:
        raise click.UsageError("--json and --output-format exclude each other; leave one out")


def _output_format(_context: click.Context, _parameter: click.Parameter, text: str | None) -> OutputFormats | None:
    if text is None:
        return None
    from spindle.formats import fio_output

    try:
        return fio_output.parse(text)
    except ValueError as unknown:
        names = ", ".join(fio_output.NAMES)
        raise click.BadParameter(f"`{unknown}` is not one of {names}; Spindle's own JSON is --json") from None


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
    """`--strict` of verbs that show a result; verbs that measure have it among the preflight options."""
    return click.option("--strict", is_flag=True, help="Exit with 1 on a warning as well.")(command)
