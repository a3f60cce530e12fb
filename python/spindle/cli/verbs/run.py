"""`spindle run`: run a workload on a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spindle.cli.exits import Exit
from spindle.cli.grouped import GroupedCommand
from spindle.cli.jobfile import print_findings, section_option
from spindle.cli.options.consent import consent_of, consent_options
from spindle.cli.options.engine import engine_of, engine_options
from spindle.cli.options.groups import COMMON, RUN
from spindle.cli.options.keys import key_options, overrides_of, set_option, vary_option
from spindle.cli.options.preconditioning import precondition_options, preconditioning_of
from spindle.cli.options.predicting import check_calibrate, predict_options
from spindle.cli.options.preflight import preflight_of, preflight_options
from spindle.cli.options.searching import search_of, search_options
from spindle.cli.options.status import Status, status_option
from spindle.cli.options.storing import store_options, stored_by
from spindle.cli.options.targets import TARGET
from spindle.cli.output import emit, json_option, one_form, output_format_option, output_option, why_option
from spindle.cli.writing import OutputOption, WritingCommand, forced

if TYPE_CHECKING:
    from spindle.formats.fio_output import OutputFormats
    from spindle.host.outputs import Output
    from spindle.result.record import Record


class Run(GroupedCommand, WritingCommand):
    """Its options in groups; it writes files."""


@click.command("run", cls=Run, groups=RUN, common=COMMON)
@click.argument("workload")
@click.argument("target", type=TARGET, required=False)
@click.option(
    "--create",
    metavar="[SIZE]",
    is_flag=False,
    flag_value="auto",
    help="Create TARGET, a test file of this size; it is removed at the end. Without SIZE, or with `auto`: large "
    "enough for the caches, if space and time permit.",
)
@click.option("--keep", is_flag=True, help="Keep the test file.")
@click.option(
    "--kernel",
    metavar="[VERSION]",
    is_flag=False,
    flag_value="default",
    help="Modelled machines: run the real Linux kernel on the modelled drives, in virtual time (`spindle help lab`).",
)
@predict_options
@section_option
@precondition_options
@search_options
@set_option
@vary_option
@key_options
@engine_options
@consent_options
@click.option(
    "--trace",
    cls=OutputOption,
    kind="trace",
    help="Modelled machines: write every command of every drive to this file (CSV).",
)
@click.option(
    "--log",
    cls=OutputOption,
    kind="log",
    help="Write every completion to this file (CSV): time, latency, operation, place. Use another disk than TARGET's.",
)
@click.option(
    "--verify-state",
    cls=OutputOption,
    kind="state",
    help="With --verify: save here what must be on TARGET; `spindle verify --state FILE` reads it back later.",
)
@store_options
@json_option
@why_option
@output_format_option
@output_option
@status_option
@preflight_options
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    workload: str,
    target: str | None,
    create: str | None,
    keep: bool,
    kernel: str | None,
    predict: str | None,
    calibrate: bool,
    sections: tuple[str, ...],
    assignments: tuple[tuple[str, str], ...],
    variations: tuple[str, ...],
    trace: Output | None,
    log: Output | None,
    verify_state: Output | None,
    json: bool,
    why: bool,
    output_format: OutputFormats | None,
    output: Output | None,
    status_interval: float | None,
    quiet: bool,
    **values: Any,
) -> Exit:
    """Run WORKLOAD on TARGET, and print what it delivers and how far the figures can be trusted.

    WORKLOAD: a preset (`spindle presets`), a TOML file (`spindle help workload`), or a job file of fio (`-`: standard
    input). TARGET: a file, a directory, a block device, a modelled machine (a TOML file, `spindle help simulator`), or
    null:SIZE, which measures the load generator itself. A job file may name TARGET.

    The default is to read. A block device is written to only with --erase DEVICE, a file only if --create made it.
    """
    from spindle.cli.session import session
    from spindle.library.measurement import measurement, variations_of

    one_form(json, output_format, status_interval)
    check_calibrate(predict, calibrate)
    if predict is not None:
        _check_predict(json, output_format, variations)
    preflight_options, keeping = preflight_of(values), stored_by(values)
    # Each takes its own values: what is left overrides the workload.
    search, precondition, engine = search_of(values), preconditioning_of(values), engine_of(values)
    overrides = (*overrides_of(values), *assignments)
    wanted = measurement(
        workload,
        target,
        sections=sections,
        consent=consent_of(values),
        search=search,
        precondition=precondition,
        engine_options=engine,
        overrides=overrides,
        varied=variations_of(variations),
        preflight_options=preflight_options,
        create=create,
        keep=keep,
        kernel=kernel,
        trace=trace,
        log=log,
        verify_state=verify_state,
        output=output,
        status_interval=status_interval,
    )
    print_findings(wanted.prepared.findings)
    status = Status(output_format, wanted.shape)
    with session(quiet) as watch, status.reports(watch, status_interval) as reports:
        record = wanted.carry_out(watch, None if json else reports, force=forced())
    status_of_run = emit(record, json, output, preflight_options.strict, keeping, output_format, wanted.shape, why=why)
    if predict is not None:
        _put_beside(record, predict or wanted.order.target.asked, calibrate, workload, overrides, quiet)
    return status_of_run


def _check_predict(json: bool, output_format: OutputFormats | None, variations: tuple[str, ...]) -> None:
    if json or output_format is not None or variations:
        raise click.UsageError(
            "--predict prints a table for people, of one run; leave --json, --output-format and --vary out"
            " (`spindle predict --json` gives the prediction)"
        )


def _put_beside(
    record: Record, machine: str, calibrate: bool, workload: str, overrides: tuple[tuple[str, str], ...], quiet: bool
) -> None:
    import sys

    from spindle.cli.output import put_lines
    from spindle.cli.session import live_line
    from spindle.library.predicting import beside_of, predicted
    from spindle.report.terminal.style import style_of

    found = predicted(machine, workload, overrides, calibrate, live_line(quiet))
    put_lines(["", *beside_of(record, found).page(style_of(sys.stdout))])
