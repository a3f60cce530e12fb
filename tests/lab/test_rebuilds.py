"""A rebuild beside a load in the simulator and under the real kernel (`spindle validate rebuild`)."""

from __future__ import annotations

import pytest

from spindle.base.plain import as_json
from spindle.library.validation import validate_rebuild
from spindle.report.terminal.rebuilds import rebuilds_page
from spindle.run.errors import Usage
from spindle.validation import rebuild
from spindle.validation.rebuild import (
    LEVELS,
    LIMITS,
    LOADS,
    Point,
    RebuildFigures,
    RebuildReport,
    compare,
    points,
    simulated,
)
from tests.program import spindle

POINT = Point(level="raid5", load="randread", limit="urgent")


def way(rebuild_s: float | None = 10.0, iops: float = 50.0) -> RebuildFigures:
    return RebuildFigures(rebuild_s=rebuild_s, iops=iops, whole_iops=100.0)


def test_the_points_have_every_level_load_and_limit() -> None:
    found = points()
    assert {point.level for point in found} == set(LEVELS)
    assert {point.load for point in found} == set(LOADS)
    assert {point.limit for point in found} == set(LIMITS)
    assert len({point.name for point in found}) == len(found)


def test_a_rebuild_and_a_slowdown_beyond_the_bound_do_not_agree() -> None:
    assert compare(POINT, way(), way()).agrees
    slow = compare(POINT, way(12.0), way())
    assert slow.rebuild_error == pytest.approx(0.2)
    assert not slow.agrees
    lame = compare(POINT, way(iops=40.0), way())
    assert lame.slowdown_error == pytest.approx(0.25)
    assert not lame.agrees


def test_a_rebuild_that_did_not_end_does_not_agree() -> None:
    unended = compare(POINT, way(), way(None))
    assert unended.rebuild_error is None
    assert not unended.agrees
    report = RebuildReport(compared=[unended, compare(POINT, way(), way())], cpu_s=1)
    assert not report.reaches_goal
    page = list(rebuilds_page(report))
    assert "rebuild time and slowdown within 15%: 1 of 2 (goal 90%: missed)" in page
    assert '"rebuild_error": null' in as_json(report)


def test_the_log_of_the_kernel_has_the_time_of_a_rebuild() -> None:
    log = [
        "[    0.25] md: recovery of RAID array md0",
        "[    1.00] EXT4-fs: mounted",
        "[    4.75] md: md0: recovery done.",
    ]
    assert rebuild.rebuild_time(log) == pytest.approx(4.5)
    assert rebuild.rebuild_time(log[:2]) is None


def test_limits_of_the_speed_change_the_time_in_the_simulator() -> None:
    times = {
        limit: simulated(Point(level="raid5", load="randread", limit=limit), 1).rebuild_s
        for limit in ("", "slow", "urgent")
    }
    assert times["slow"] is not None
    assert times["urgent"] is not None
    assert times[""] is not None
    assert times["slow"] > 128 / 20 * 0.9
    assert times["urgent"] < times[""]
    assert times["urgent"] < 128 / 40 * 1.3


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(Usage, match="no rebuild has this in its name"):
        validate_rebuild("nonsense")


@pytest.mark.usefixtures("agent")
def test_one_point_agrees_with_the_kernel() -> None:
    run = spindle("validate", "rebuild", "--only", "raid6 randread")
    assert run.status == 0, run.out
    assert "1 of 1" in run.out
