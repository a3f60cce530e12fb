"""Address maps compared with lists of real arrays: a line each, and the first difference."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from spindle import _core
from spindle.report.terminal.style import style_of
from spindle.report.terminal.table import Column, table
from spindle.result.maps import MapsReport, maps_report_from_json


def maps_report(directory: str) -> MapsReport:
    """Compare every list in a directory. Raises ConfigError if it has none."""
    return maps_report_from_json(_core.validate_maps(directory))


def maps_page(report: MapsReport) -> Iterator[str]:
    """Yield the page, with the first difference at its end."""
    columns = [Column("list", words=True), Column("array", words=True), Column("member blocks"), Column("verdict")]
    rows = [[file.file, file.array, str(file.blocks), "differs" if file.mismatch else "same"] for file in report.files]
    yield from table(columns, rows, style_of(sys.stdout))
    yield ""
    if report.first_mismatch is None:
        yield f"{report.arrays} arrays, {report.blocks} member blocks: all as the map says"
    else:
        yield f"{report.mismatches} of {report.arrays} arrays differ; the first: {report.first_mismatch}"
