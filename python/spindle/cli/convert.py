"""`spindle convert`: fio's job files as native workloads."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from spindle.cli.exits import Exit
from spindle.cli.output import check_place, json_option, save


@click.command("convert")
@click.argument("job")
@click.argument("target", required=False)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE.toml",
    help="Write the workload here; of several phases, FILE-1.toml, FILE-2.toml and so on.",
)
@json_option
def command(job: str, target: str | None, output: Path | None, json: bool) -> Exit:
    """Turn fio's job file JOB into a workload for `spindle run`, and tell each option that is not carried over.

    TARGET stands for the file or device that the jobs name. Nothing is run.
    """
    from spindle.cli.jobfile import tell
    from spindle.formats.fio_job import JobFileRefused, Level, as_json, convert, toml_of

    conversion = convert(job, target)
    if json:
        print(as_json(conversion))
    errors = [finding for finding in conversion.findings if finding.level is Level.ERROR]
    tell([] if json else [finding for finding in conversion.findings if finding.level is not Level.ERROR])
    if errors:
        raise JobFileRefused(errors)
    texts = [toml_of(conversion, phase) for phase in conversion.phases]
    if output is not None:
        for path, text in zip(_places(output, len(texts)), texts, strict=True):
            save(text.encode(), path)
    elif not json:
        if len(texts) > 1:
            raise click.UsageError(f"{job}: {len(texts)} phases, each a workload of its own; give -o FILE.toml")
        sys.stdout.write(texts[0])
    return Exit.FINE


def _places(output: Path, count: int) -> list[Path]:
    if count == 1:
        return [check_place(output)]
    return [check_place(output.with_name(f"{output.stem}-{number}{output.suffix}")) for number in range(1, count + 1)]
