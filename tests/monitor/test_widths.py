"""The summary on a narrow terminal."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from spindle.monitor import DISK, HOST, Extent
from spindle.report.terminal.monitor.rows import summary_lines
from spindle.report.terminal.style import Style

pytestmark = pytest.mark.promise(30)


def summary(devices: int) -> SimpleNamespace:
    """The summary of devices that used every column."""
    every = {column.name: Extent(1234.5, 56789.12) for column in DISK}
    return SimpleNamespace(
        intervals=3,
        seconds=3.0,
        machines={"": {column.name: Extent(1.0, 2.0) for column in HOST}},
        disks={f"nvme{at}n1": every for at in range(devices)},
        cgroups={},
    )


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_narrow_summary_is_a_table_of_the_main_columns(width: int) -> None:
    lines = summary_lines(summary(4), Style(width=width))  # type: ignore[arg-type]
    devices = lines[[line.startswith("Device") for line in lines].index(True) :]
    assert max(map(len, devices)) <= width
    assert len(lines) <= 20
    assert devices[0].split()[:4] == ["Device", "r/s", "rkB/s", "r_await"]
    rest = " ".join(devices[9:])
    assert "`json=` or `output=` shows" in rest
    assert all(column.name in devices[0].split() or column.name in rest for column in DISK)


def test_a_wide_summary_has_all_columns() -> None:
    lines = summary_lines(summary(1), Style(width=400))  # type: ignore[arg-type]
    assert "wider" not in "\n".join(lines)
    assert all(column.name in "\n".join(lines) for column in DISK)
