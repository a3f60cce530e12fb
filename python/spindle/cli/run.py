"""`spindle run`: a workload on a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from spindle.cli.care import care_of, care_options
from spindle.cli.consent import consent_of, consent_options
from spindle.cli.exits import Exit
from spindle.cli.jobfile import prepared, section_option
from spindle.cli.keys import key_options, overrides_of, set_option, vary_option
from spindle.cli.making import making_of, making_options
from spindle.cli.output import emit, json_option, one_form, output_format_option, output_option, why_option
from spindle.cli.preconditioning import precondition_options, preconditioning_of
from spindle.cli.searching import search_of, search_options
from spindle.cli.status import Status, status_option
from spindle.cli.storing import keep_options, keeping_of
from spindle.cli.targets import TARGET
from spindle.cli.writing import OutputOption, Writing, keep_apart

if TYPE_CHECKING:
    from spindle.formats.fio_output import Wanted
    from spindle.host.outputs import Output


@click.command("run", cls=Writing)
@click.argument("workload")
@click.argument("target", type=TARGET, required=False)
@click.option(
    "--create",
    metavar="[SIZE]",
    is_flag=False,
    flag_value="auto",
    help="Make TARGET, a test file of this size; it is removed at the end. Without SIZE, or with `auto`: as large as "
    "the caches ask for, if space and time permit.",
)
@click.option("--keep", is_flag=True, help="Leave the test file in place.")
@section_option
@precondition_options
@search_options
@set_option
@vary_option
@key_options
@making_options
@consent_options
@click.option(
    "--trace",
    cls=OutputOption,
    kind="trace",
    help="Modelled machines: write every command of every drive here (CSV).",
)
@click.option(
    "--log",
    cls=OutputOption,
    kind="log",
    help="Write every completion here (CSV): time, latency, operation, place. Best on another disk than TARGET's.",
)
@click.option(
    "--verify-state",
    cls=OutputOption,
    kind="state",
    help="With --verify: keep here what must be on TARGET; `spindle verify --state FILE` reads it back on another day.",
)
@keep_options
@json_option
@why_option
@output_format_option
@output_option
@status_option
@care_options
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    workload: str,
    target: str | None,
    create: str | None,
    keep: bool,
    sections: tuple[str, ...],
    assignments: tuple[tuple[str, str], ...],
    variations: tuple[str, ...],
    trace: Output | None,
    log: Output | None,
    verify_state: Output | None,
    json: bool,
    why: bool,
    output_format: Wanted | None,
    output: Output | None,
    status_interval: float | None,
    quiet: bool,
    **values: Any,
) -> Exit:
    """Run WORKLOAD (a preset, see `spindle presets`, a TOML file, or a job file of fio, `-`
    being one on the standard input) on TARGET: a file, a block
    device, a modelled machine (a TOML file, see docs/simulator.md), or null:SIZE, which measures the load generator
    itself. A job file may name TARGET itself.

    Reading is the default. A block device is written to only with --erase naming it, a file only if --create made it.
    """
    from dataclasses import replace

    from spindle.cli.session import session
    from spindle.run import order, varied
    from spindle.run.order import Order

    one_form(json, output_format, status_interval)
    care, keeping, consent = care_of(values), keeping_of(values), consent_of(values)
    search, preconditioning = search_of(values), preconditioning_of(values)
    asked = prepared(workload, target, replace(making_of(values), log=log), sections)
    keep_apart(
        [each for each in (trace, log, verify_state, output) if each is not None], [(asked.target.asked, "the target")]
    )
    wanted = varied.parse(variations)
    if wanted and status_interval is not None:
        raise click.UsageError(
            "--status-interval: --vary is many runs, and their progress says where they are; leave it out"
        )
    one = Order(
        workload=asked.source or workload,
        target=asked.target,
        text=asked.text,
        overrides=(*asked.overrides, *overrides_of(values), *assignments),
        create=create or asked.create,
        keep=keep,
        search=search or asked.search,
        precondition=preconditioning,
        consent=consent,
        making=asked.making,
        care=care,
        verify_state=verify_state,
        trace=trace,
    )
    status = Status(output_format, asked.shape)
    with (
        session(quiet) as watch,
        asked.logging() as making,
        status.reports(watch, status_interval) as reports,
    ):
        one = replace(one, making=replace(making, status=None if json else reports))
        record = varied.carry_out(one, wanted, watch) if wanted else order.carry_out(one, watch)
    return emit(record, json, output, care.strict, keeping, output_format, asked.shape, why=why)
