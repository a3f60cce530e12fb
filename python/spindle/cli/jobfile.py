"""A job file of fio on the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from spindle.formats.fio_job import JobFinding

section_option = click.option(
    "--section",
    "sections",
    multiple=True,
    metavar="NAME",
    help="Run only this job of a fio job file. May be repeated.",
)


def print_findings(findings: Iterable[JobFinding]) -> None:
    """Print each difference from fio on stderr, a line each."""
    from spindle.cli.failure import one_line

    for finding in findings:
        print(f"spindle: {one_line(str(finding))}", file=sys.stderr)
