"""A run that is to go on until it is steady: when it was, what counts, and that a drift is not called steady."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec.structs import replace

from spindle.report.terminal.page import page
from spindle.report.terminal.style import Style
from spindle.result.document import decode
from spindle.result.figures import EndedBySteady, EndedByTime, Figures, Steady
from spindle.result.record import Level, RunRecord
from spindle.result.rules import judged
from spindle.result.steady import steady_part
from spindle.run.resolve import resolve
from spindle.stats.metric import values
from tests.cli.records import figures, op, quiet_read, series, stream
from tests.program import Invoke

SECOND = 1_000_000_000
FOUND = Steady(
    at_ns=100 * SECOND,
    from_ns=40 * SECOND,
    mean=1000.0,
    range=0.01,
    slope=0.001,
    drift_per_minute=0.0005,
    drift_range=(-0.001, 0.002),
    evaluations=7,
)


def patient(found: Figures) -> RunRecord:
    spec = resolve("randomio", [("until_steady", "true"), ("write_fraction", "0"), ("fsync_fraction", "0")]).spec
    return judged(replace(quiet_read(), workload=spec, figures=found))


def warmed_up() -> Figures:
    """Twice as fast for 40 s, as caches are before they are full."""
    course = series([2 * 4096e3] * 40 + [4096e3] * 60)
    return figures(
        stream(op(1400.0, 100.0), seconds=100.0), seconds=100.0, series=course, ended_by=EndedBySteady(), steady=FOUND
    )


def test_the_steady_part_is_separate_from_the_whole_run() -> None:
    part = steady_part(warmed_up())
    assert part is not None
    assert (part.from_s, part.to_s, part.iops, part.bytes_per_s) == (40.0, 100.0, 1000.0, 4096e3)
    record = patient(warmed_up())
    assert values(record)["steady.iops"] == 1000.0
    assert values(record)["iops"] == 1400.0
    shown = "\n".join(page(record, Style(width=200)))
    assert "steady from 40 s to 1 min 40 s: 1 000 IOPS, 4.10 MB/s" in shown


def test_the_verdict_names_the_window_and_the_drift_it_rules_out() -> None:
    verdict = next(each for each in patient(warmed_up()).verdicts if each.check == "steady")
    assert verdict.level is Level.OK
    assert "steady from 40 s to 1 min 40 s" in verdict.evidence
    assert verdict.numbers["drift_high"] == 0.002


def test_a_run_that_did_not_become_steady_in_time_is_warned_about() -> None:
    found = replace(warmed_up(), ended_by=EndedByTime(), steady=None)
    record = patient(found)
    verdict = next(each for each in record.verdicts if each.check == "steady")
    assert verdict.level is Level.WARN
    assert "was not steady within 1 min 40 s" in verdict.evidence
    assert "steady.iops" not in values(record)


def test_a_modelled_disk_is_steady_once_its_noise_rules_a_drift_out(invoke: Invoke, here: Path) -> None:
    asked = ("run", "randomio", "one-sata", "--until-steady", "--write-fraction", "0", "--workers", "4", "-q")
    assert invoke(*asked, "--steady-drift", "2%", "--seconds", "1800", "-o", "a.json").status == 0
    found = decode((here / "a.json").read_bytes(), "a.json")
    assert isinstance(found, RunRecord)
    assert isinstance(found.figures.ended_by, EndedBySteady)
    window = found.figures.steady
    assert window is not None
    assert window.at_ns - window.from_ns >= 60 * SECOND
    assert -0.02 <= window.drift_range[0] <= window.drift_range[1] <= 0.02
    assert window.at_ns <= found.figures.measured_ns


def test_the_time_limit_ends_the_run(invoke: Invoke) -> None:
    ended = invoke(
        *("run", "randomio", "one-sata", "--until-steady", "--steady-drift", "0.001%", "--seconds", "70"),
        *("--write-fraction", "0", "--json", "-q"),
    )
    found = json.loads(ended.out)
    assert found["figures"]["ended_by"]["kind"] == "time"
    assert found["figures"]["steady"] is None


def test_the_latency_of_an_open_loop_can_be_what_must_be_steady(invoke: Invoke) -> None:
    ended = invoke(
        *("run", "randomio", "one-sata", "--until-steady", "--steady-metric", "latency", "--rate", "40 IOPS"),
        *("--steady-window", "10s", "--steady-drift", "none", "--write-fraction", "0", "--json", "-q"),
    )
    found = json.loads(ended.out)
    assert found["figures"]["ended_by"]["kind"] == "steady"
    assert 5e6 < found["figures"]["steady"]["mean"] < 20e6


def test_a_rule_without_until_steady_is_wrong_usage(invoke: Invoke) -> None:
    ended = invoke("run", "randomio", "null:1GiB", "--steady-window", "30s")
    assert ended.status == 2
    assert "only means something with until_steady" in ended.err
