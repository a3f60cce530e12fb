"""`spindle fio`: fio's command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spindle.cli.exits import Exit
from spindle.cli.options.consent import consent_of, consent_options
from spindle.cli.options.engine import engine_of, engine_options
from spindle.cli.options.preflight import preflight_of, preflight_options
from spindle.cli.options.status import GrowingOutput, Status
from spindle.cli.options.storing import store_options, stored_by
from spindle.cli.options.targets import TARGET
from spindle.cli.output import emit, json_option, one_form
from spindle.cli.writing import WritingCommand, forced, output_of

if TYPE_CHECKING:
    from spindle.formats.fio_job.arguments import CommandLine

_ARGUMENTS = "jobs"


class _FioCommand(WritingCommand):
    """A command that takes fio's options out before click parses its own. A name that both have is fio's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from spindle.library.fio import command_line

        own = {
            name: not (isinstance(parameter, click.Option) and parameter.is_flag)
            for parameter in self.get_params(ctx)
            for name in parameter.opts
        }
        line = command_line(args, own)
        rest = super().parse_args(ctx, line.rest)
        if not line.options and not line.files:
            raise click.UsageError("no job: write --name=JOB and its options, or name a job file")
        ctx.params[_ARGUMENTS] = line
        return rest


@click.command("fio", cls=_FioCommand)
@click.option(
    "--target", type=TARGET, metavar="TARGET", help="Replaces the file, device or directory that the jobs name."
)
@engine_options
@consent_options
@store_options
@json_option
@preflight_options
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(target: str | None, json: bool, quiet: bool, **values: Any) -> Exit:
    """Run fio jobs, given as fio's own command line: `spindle fio --name=a --rw=randread --size=1g ... [JOB FILE]`.

    Options before the first --name apply to all jobs. Job files may follow; `-` is one on the standard input. These of
    fio's own options exist: --section, --output, --output-format (normal, terse, json, json+), --terse-version,
    --status-interval, --readonly, --parse-only, --showcmd and --eta=never. Each job option that is not converted
    exactly is listed; docs/reference/fio-jobs.md has all.

    The options below are Spindle's. Reading is the default: a block device is written to only if --erase names it.
    """
    from spindle.cli.jobfile import print_findings
    from spindle.cli.session import session
    from spindle.library.fio import converted, formats_of, measurement_of, shown
    from spindle.library.outputs import keep_apart

    line: CommandLine = values.pop(_ARGUMENTS)
    one_form(json, line.format != "normal", line.status_interval_s)
    preflight, engine = preflight_of(values), engine_of(values)
    keeping, consent = stored_by(values), consent_of(values)
    if line.show:
        print(shown(line))
        return Exit.FINE
    job = converted(line, target)
    if line.read_only and job.conversion.changes:
        raise click.UsageError("--readonly: a job writes or trims; leave it out, or change rw")
    if line.parse_only:
        print_findings(job.remarks)
        job.require()
        return Exit.FINE
    wanted = measurement_of(job, consent, engine, preflight)
    print_findings(job.findings)
    output = output_of(Path(line.output), "fio-output", "--output") if line.output else None
    if output is not None:
        others = [(file, "a job file") for file in line.files]
        keep_apart([output], [(wanted.order.target.asked, "the target"), *others])
        output.check()
    formats = formats_of(line)
    into = GrowingOutput(output) if output is not None else None
    status = Status(formats, wanted.shape, into)
    with session(quiet or line.quiet) as watch, status.reports(watch, line.status_interval_s) as reports:
        record = wanted.carry_out(watch, None if json else reports, force=forced())
    return emit(record, json, None, preflight.strict, keeping, formats, wanted.shape, into=into)
