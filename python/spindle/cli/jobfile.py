"""A job file of fio where a workload is expected."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from spindle.formats.fio_job import Finding
    from spindle.run.bench import Making


def tell(findings: Iterable[Finding]) -> None:
    """What differs, on stderr, a line each."""
    from spindle.cli.failure import one_line

    for finding in findings:
        print(f"spindle: {one_line(str(finding))}", file=sys.stderr)


def prepared(workload: str, target: str | None, making: Making) -> tuple[str, Making]:
    """The target and the engine that a workload asks for, where the command line leaves them open."""
    from spindle.run.resolve import is_job_file

    if not is_job_file(workload):
        if target is None:
            raise click.UsageError(
                "missing argument 'TARGET'; name a file, a block device, a modelled machine or null:SIZE"
            )
        return target, making
    from dataclasses import replace

    from spindle.formats.fio_job import convert

    conversion = convert(workload, target)
    phase = conversion.one_phase()
    if phase.target is None:
        raise click.UsageError(f"{workload}: its jobs name no file; give TARGET behind it")
    tell(conversion.findings)
    if making.engine == "auto" and not phase.target.endswith(".toml"):
        making = replace(making, engine=phase.engine)
    return phase.target, making
