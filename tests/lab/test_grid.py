"""One machine and one load in the simulator and under the real kernel (`spindle validate grid`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from spindle.lab import initramfs, kernel
from spindle.lab.errors import LabMissing
from spindle.lab.load import find_agent
from spindle.library.validation import grid_plot
from spindle.report.terminal.grid import grid_page
from spindle.validation.grid import causes
from spindle.validation.grid.compare import GridReport, compare
from spindle.validation.grid.outcomes import Operation, Outcome, PointOutcomes, simulated
from spindle.validation.grid.points import DEPTHS, LEVELS, OPERATIONS, SCHEDULERS, SIZES_KIB, Point, points
from tests.program import spindle

POINT = Point(
    level="raid5",
    scheduler="bfq",
    drive="plain",
    operation="randwrite",
    size_kib=64,
    outstanding=4,
    threads=True,
)


def outcome(**changes: object) -> Outcome:
    operations = {"write": Operation(100, 2e6, 3_000_000)}
    at_drives = {"reads": 1000, "writes": 1000, "flushes": 0}
    usual = Outcome(iops=1000, bytes_per_s=64e6, mean_ns=2e6, operations=operations, at_drives=at_drives, cpu_s=1)
    return replace(usual, **changes)


def test_the_grid_has_every_value_of_every_factor_and_is_the_same_each_time() -> None:
    grid = points()
    assert len(grid) >= 100
    assert grid == points()
    assert len({point.name for point in grid}) == len(grid)
    pairs = {(point.level, point.scheduler) for point in grid}
    assert len(pairs) == len(LEVELS) * len(SCHEDULERS)
    for factor, values in (("operation", OPERATIONS), ("size_kib", SIZES_KIB), ("outstanding", DEPTHS)):
        found = [getattr(point, factor) for point in grid]
        assert {found.count(value) for value in values} <= {len(grid) // len(values), len(grid) // len(values) + 1}


def test_each_point_runs_in_the_simulator() -> None:
    for point in points():
        found = simulated(point)
        assert found.iops > 0
        assert sum(operation.requests for operation in found.operations.values()) == point.requests


def test_differences_have_a_sign_and_beyond_the_bounds_a_cause() -> None:
    alike = compare(PointOutcomes(POINT, outcome(), outcome()))
    assert (alike.throughput_error, alike.mean_error, alike.p99_error, alike.cause) == (0, 0, 0, None)
    slower = compare(PointOutcomes(POINT, outcome(bytes_per_s=32e6, mean_ns=4e6), outcome()))
    assert (slower.throughput_error, slower.mean_error) == (-0.5, 1.0)
    assert slower.cause == causes.UNKNOWN
    more = outcome(at_drives={"reads": 9000, "writes": 1000, "flushes": 0}, mean_ns=4e6)
    assert compare(PointOutcomes(POINT, outcome(), more)).cause == causes.RETRIED
    other = replace(POINT, level="single", scheduler="none")
    assert compare(PointOutcomes(other, outcome(mean_ns=4e6), outcome())).cause == causes.UNKNOWN


def test_the_page_names_what_differs_and_the_goals(tmp_path: Path) -> None:
    both = [PointOutcomes(POINT, outcome(), outcome()), PointOutcomes(POINT, outcome(bytes_per_s=32e6), outcome())]
    report = GridReport(compared=[compare(of) for of in both], cpu_s=4)
    page = "\n".join(grid_page(report))
    assert "IOPS and throughput within 5%: 1 of 2 (goal 95%: missed)" in page
    assert f"raid5 plain bfq randwrite 64K x4t: throughput -50.0%, mean +0.0%: {causes.UNKNOWN}" in page
    grid_plot(report).save(tmp_path / "grid.svg")
    assert "Mean latency" in (tmp_path / "grid.svg").read_text()


def test_a_name_that_no_point_has_is_one_clear_line() -> None:
    done = spindle("validate", "grid", "--only", "raid7")
    assert done.status == 2
    assert "raid7: no point of the grid" in done.complaint


def test_a_drive_with_a_plain_service_time_agrees() -> None:
    try:
        kernel.current()
        initramfs.current()
        find_agent()
    except LabMissing as error:
        pytest.skip(str(error))
    done = spindle("validate", "grid", "--only", "single plain none")
    assert done.status == 0, done.err
    assert "goal 95%: reached" in done.out
