"""Output for a person while a command runs."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pytest

from spindle.base import units
from spindle.report.terminal import progress
from spindle.report.terminal.progress import LiveLine, SparseLines, watching, words
from spindle.run.engine import EngineOptions
from spindle.run.load import _Pace
from spindle.run.quick import Lengths, quick
from spindle.run.resolve import resolve
from spindle.run.total_time import TotalTimeWatch
from spindle.run.watch import Moment


def moment(**changes: Any) -> Moment:
    values: dict[str, Any] = {
        "label": "randomio",
        "phase": "measure",
        "done_fraction": 0.45,
        "left_s": 33.0,
        "iops": 12_345.0,
        "bytes_per_s": 50.6e6,
        "errors": 0,
    }
    return Moment(**{**values, **changes})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_moment_says_rate_share_and_time_left() -> None:
    assert words(moment()) == "randomio: 12 345 IOPS, 50.6 MB/s, 45 %, 33 s left"
    assert words(moment(phase="calibrate")) == "randomio: calibrating"
    assert words(moment(errors=3)).startswith("randomio: 12 345 IOPS, 50.6 MB/s, 3 errors")
    assert words(moment(done_fraction=None, left_s=None)) == "randomio: 12 345 IOPS, 50.6 MB/s"


def test_a_pipe_gets_a_line_only_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    out = io.StringIO()
    lines = SparseLines(out, quiet=False)
    for _ in range(700):
        lines.moment(moment())
        now[0] += 0.1
    assert len(out.getvalue().splitlines()) == 2
    lines.say("spindle: removed t.bin")
    assert out.getvalue().endswith("spindle: removed t.bin\n")


def test_a_terminal_gets_one_line_that_changes_and_goes_away() -> None:
    out = Terminal()
    with watching(out) as watch:
        assert isinstance(watch, LiveLine)
        watch.step("syncing")
        watch.moment(moment())
        watch.say("spindle: removed t.bin")
    shown = out.getvalue()
    assert "syncing ..." in shown
    assert "33 s left" in shown
    assert "\nspindle: removed t.bin\n" in shown or "spindle: removed t.bin\n" in shown
    assert shown.rindex("\x1b[2K") > shown.index("33 s left")


def test_the_live_line_stays_within_one_line_and_shows_no_control_characters() -> None:
    assert progress.clipped("a\x1b[2Jb\nc", 80) == "a[2Jbc"
    assert progress.clipped("x" * 100, 80) == "x" * 79
    assert progress.clipped("\u76d8" * 50, 80) == "\u76d8" * 39


def test_quiet_shows_only_necessary_lines() -> None:
    out = Terminal()
    with watching(out, quiet=True) as watch:
        watch.step("syncing")
        watch.moment(moment())
        watch.say("spindle: removed t.bin")
    assert out.getvalue() == "spindle: removed t.bin\n"


def test_the_time_left_is_that_of_the_end_that_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("spindle.run.load.time.monotonic", lambda: now[0])
    pace = _Pace(resolve("randomio", [("seconds", "60"), ("requests", "1000"), ("ramp", "4s")]).spec, "randomio")

    def at(seconds: float, requests: int) -> Moment:
        now[0] = seconds
        counts = {"reads": requests, "writes": 0, "read_bytes": requests * 4096, "write_bytes": 0, "errors": 0}
        return pace.moment({"phase": "measure", "elapsed_ns": int(seconds * 1e9), "streams": [counts]})

    first = at(0.0, 0)
    assert first.left_s == 64.0
    second = at(1.0, 100)
    assert second.iops == 100.0
    assert second.left_s == pytest.approx(9.0)
    assert second.done_fraction == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.size(64 * 1024), "64 KiB"),
        (units.size(1.5 * 2**30), "1.50 GiB"),
        (units.rate(411e6), "411 MB/s"),
        (units.rate(0), "0 B/s"),
        (units.duration(85_300), "85.3 us"),
        (units.duration(1.2e6), "1.20 ms"),
        (units.seconds(0.0032), "3.20 ms"),
        (units.seconds(0.25), "0.25 s"),
        (units.seconds(59.6), "1 min"),
        (units.seconds(200), "3 min 20 s"),
        (units.seconds(7500), "2 h 5 min"),
        (units.count(73.44), "73.4"),
        (units.count(1234567), "1 234 567"),
        (units.percent(0.004), "0.4 %"),
        (units.percent(0.12), "12 %"),
        (units.percent(0.9998), "99.98 %"),
        (units.percent(0.999999), "over 99.99 %"),
        (units.percent(1.0), "100 %"),
        (units.significant(0.0000123), "0.0000123"),
        (units.significant(9.999), "10.00"),
    ],
)
def test_quantities_have_three_digits(text: str, expected: str) -> None:
    assert text == expected


class Heard:
    """Keeps the events of a watch."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def say(self, text: str) -> None:
        self.texts.append(text)

    def step(self, text: str) -> None:
        self.texts.append(text)

    def portion(self, text: str, done: int, total: int) -> None:
        self.texts.append(text)

    def moment(self, moment: Moment) -> None:
        self.texts.append(words(moment))

    def end(self) -> None:
        pass


@pytest.mark.promise(30)
def test_several_loads_have_one_time_left() -> None:
    heard = Heard()
    whole = TotalTimeWatch(heard, [("a", 5.0), ("b", 3.0), ("b", 3.0), ("c", 60.0)])
    whole.step("making a file")
    whole.begins("a")
    whole.moment(moment(label="a", left_s=4.0))
    whole.begins("b")
    whole.portion("reading", 1, 2)
    whole.begins("c")  # the second b was left out
    whole.moment(moment(label="c", left_s=None, done_fraction=None, phase="calibrate"))
    whole.moment(moment(label="c", left_s=0.2))
    assert heard.texts == [
        "about 1 min 11 s left in all; making a file",
        "about 1 min 10 s left in all; a: 12 345 IOPS, 50.6 MB/s, 45 %, 4 s left",
        "about 1 min 6 s left in all; reading",
        "about 1 min left in all; c: calibrating",
        "c: 12 345 IOPS, 50.6 MB/s, 45 %, 0 s left",
    ]


@pytest.mark.promise(30)
def test_quick_shows_the_total_time_left(tmp_path: Path) -> None:
    heard = Heard()
    lengths = Lengths(step_s=0.2, sweep_step_s=0.2, zone_s=0.2, file_bytes=1 << 20)
    quick(str(tmp_path), heard, EngineOptions(), lengths)
    left = [float(text.split()[1]) for text in heard.texts if text.startswith("about ") and "min" not in text]
    assert left[0] == 2  # two loads, nine points, and the mix: 12 x 0.2 s
    assert left == sorted(left, reverse=True)
