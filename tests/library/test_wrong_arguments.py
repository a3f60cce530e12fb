"""A wrong argument is one line under `spindle.Error` that names it, before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import spindle

NULL = "null:1GiB"


@pytest.fixture(scope="module")
def result() -> spindle.Result:
    return spindle.run("seeker", "one-sata", seconds=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"engine": "uring"}, "`engine=` uring: did you mean `io_uring`?"),
        ({"timestamps": "x"}, "`timestamps=` x: it is one of request and batch"),
        ({"sync": "x"}, "`sync=` x: it is one of target and machine"),
        ({"cpus": 3}, "`cpus=` 3: is not a list of numbers"),
        ({"cpus": "0-1"}, "`cpus=` 0-1: is not a list of numbers"),
        ({"wait_idle": "long"}, "`wait_idle=` long: is not a number from 0 to 86400"),
        ({"wait_idle": -1}, "`wait_idle=` -1"),
        ({"latency_target": "p99:5ms", "search": "deep"}, "`search=` deep: did you mean `depth`?"),
        ({"vary": {"workers": []}}, "`vary=` workers: has no list of values"),
        ({"vary": "workers=1,2"}, "`vary=` workers=1,2: is not a dict"),
        ({"tags": ["a"]}, "`tags=`: tags are of stored results"),
        ({"trace": 3}, "`trace=` 3: is neither a text nor a path"),
    ],
)
def test_options_of_a_run(options: dict[str, object], words: str) -> None:
    refused(lambda: spindle.run("randomio", NULL, **options), words)  # type: ignore[arg-type]


def test_names_of_a_run() -> None:
    refused(lambda: spindle.run(None, NULL), "`workload=` None: is neither a text nor a path")  # type: ignore[arg-type]
    refused(lambda: spindle.run("randomio", 3), "`target=` 3: is neither a text nor a path")  # type: ignore[arg-type]
    refused(lambda: spindle.quick(3), "`target=` 3: is neither a text nor a path")  # type: ignore[arg-type]


def test_names_of_figures(result: spindle.Result) -> None:
    refused(lambda: result["read.p9_ns"], "read.p9_ns: did you mean `read.p9")
    refused(lambda: result.intervals["iops"], "iops: not a column of the table; it has start_s")
    with pytest.raises(KeyError):  # as of a dict
        _ = result["read.p9_ns"]


def test_a_sweep_is_drawn_over_figures_only() -> None:
    swept = spindle.sweep("seeker", "one-sata", workers=[1, 2], seconds=1)
    refused(lambda: swept.plot("level"), "level: not a figure of the runs")
    refused(lambda: swept.plot("workers"), "workers: not a figure of the runs")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"confidence": 3}, "`confidence=` 3: is not a number between 0.5 and 1"),
        ({"apart": 0}, "`apart=` 0: is not a number between 0 and 10"),
        ({"power": "much"}, "`power=` much: is not a number between 0 and 1"),
        ({"metrics": "iopss"}, "`metric=` iopss"),
    ],
)
def test_options_of_a_comparison(result: spindle.Result, options: dict[str, object], words: str) -> None:
    refused(lambda: spindle.compare(result, result, **options), words)  # type: ignore[arg-type]


def test_alternatives_of_a_comparison(result: spindle.Result) -> None:
    refused(lambda: spindle.compare(result, 3), "3: not a selection, a result")  # type: ignore[arg-type]
    refused(lambda: spindle.compare(result, [1]), "not a selection, a result")  # type: ignore[list-item]


def test_numbers_of_an_array_and_uses_of_a_stack() -> None:
    refused(lambda: spindle.array_map("raid5", "x"), "`drives=` x: is not a number")  # type: ignore[arg-type]
    refused(lambda: spindle.array_map("raid5", 3, rows=0), "`rows=` 0")
    refused(lambda: spindle.doctor("/", workload="oltp"), "`workload=` oltp")  # type: ignore[arg-type]
    refused(lambda: spindle.doctor("/", rules="no-such-rule"), "no rule `no-such-rule`")
    refused(lambda: spindle.simulate("seeker", "one-sata", interval_ns=0), "`interval_ns=` 0")


def test_one_tag_may_be_a_text(tmp_path: Path) -> None:
    spindle.run("seeker", "one-sata", seconds=1, store=tmp_path / "s.db", tags="old")
    with spindle.open_store(tmp_path / "s.db") as store:
        assert store.tags == {"old": 1}


def refused(call: Callable[[], object], words: str) -> None:
    """The call raises one line with these words."""
    with pytest.raises(spindle.Error) as found:
        call()
    assert words in str(found.value)
    assert "\n" not in str(found.value)
