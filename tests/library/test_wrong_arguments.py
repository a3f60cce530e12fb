"""A wrong argument is one line under `spindle.Error` that names it, before anything is done."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
        ({"cpus": 3}, "`cpus=` 3: must be a list of whole numbers or None"),
        ({"cpus": "0-1"}, "`cpus=` 0-1: must be a list of whole numbers or None"),
        ({"wait_idle": "long"}, "`wait_idle=` long: must be a number"),
        ({"wait_idle": -1}, "`wait_idle=` -1"),
        ({"latency_target": "p99:5ms", "search": "deep"}, "`search=` deep: did you mean `depth`?"),
        ({"vary": {"workers": []}}, "`vary=` workers: has no list of values"),
        ({"vary": "workers=1,2"}, "`vary=` workers=1,2: must be a dict or None"),
        ({"tags": ["a"]}, "`tags=`: tags are of stored results"),
        ({"trace": 3}, "`trace=` 3: must be text, a path or None"),
    ],
)
def test_options_of_a_run(options: dict[str, object], words: str) -> None:
    refused(lambda: spindle.run("randomio", NULL, **options), words)  # type: ignore[arg-type]


def test_names_of_a_run() -> None:
    refused(lambda: spindle.run(None, NULL), "`workload=` None: must be text or a path")  # type: ignore[arg-type]
    refused(lambda: spindle.run("randomio", 3), "`target=` 3: must be text, a path or None")  # type: ignore[arg-type]
    refused(lambda: spindle.quick(3), "`target=` 3: must be text, a path or None")  # type: ignore[arg-type]


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
        ({"power": "much"}, "`power=` much: must be a number"),
        ({"metrics": "iopss"}, "`metric=` iopss"),
    ],
)
def test_options_of_a_comparison(result: spindle.Result, options: dict[str, object], words: str) -> None:
    refused(lambda: spindle.compare(result, result, **options), words)  # type: ignore[arg-type]


def test_alternatives_of_a_comparison(result: spindle.Result) -> None:
    number: Any = 3
    refused(lambda: spindle.compare(result, number), "`alternatives` 3: must be text, a path, a Selection,")
    refused(lambda: spindle.compare(result, [1]), "`alternatives` [1]: must be text")  # type: ignore[list-item]


def test_numbers_of_an_array_and_uses_of_a_stack() -> None:
    refused(lambda: spindle.array_map("raid5", "x"), "`drives=` x: must be a whole number or None")  # type: ignore[arg-type]
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


def test_a_missing_and_an_unknown_argument_too() -> None:
    refused(lambda: spindle.drive(), "`spindle.drive`: missing a required argument: 'name'")  # type: ignore[call-arg]
    refused(lambda: spindle.quick(targets="/"), "got an unexpected keyword argument 'targets'")  # type: ignore[call-arg]
    refused(lambda: spindle.drive("wd10eacss"), "did you mean")
    refused(lambda: spindle.array_map("raid5", 3, chunk="big"), "`chunk=` `big` is not a size")


FUNCTIONS = {name: each for name in spindle.__all__ if not isinstance(each := getattr(spindle, name), type | str)}
NOWHERE = "/nowhere/at/all"
HARMLESS = {"level": "raid5", "listen": 70_000, "name": "wd10eacs", "workload": "randomio"}
"""For parameters that are not the wrong one; the rest is nowhere, if it must be given or is a target."""


def parameters() -> Iterator[tuple[str, str]]:
    for name, function in FUNCTIONS.items():
        yield from ((name, parameter) for parameter in inspect.signature(function).parameters)


@pytest.mark.parametrize(("name", "parameter"), list(parameters()))
@pytest.mark.usefixtures("here")
def test_every_parameter_of_every_function_refuses_a_wrong_type_in_one_line(
    name: str, parameter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINDLE_STORE", "store.db")
    found = inspect.signature(FUNCTIONS[name]).parameters
    given = {
        each.name: HARMLESS.get(each.name, NOWHERE)
        for each in found.values()
        if (each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD) or each.name in ("target", "path")
    }
    kind = found[parameter].kind
    for value in (70_000, -1, None, 0.5, object(), "no such thing", b"bytes", [object()], {"a": object()}):
        if value is found[parameter].default:
            continue
        positional = [value] if kind is inspect.Parameter.VAR_POSITIONAL else []
        keywords = given | ({} if positional else {"zz" if kind is inspect.Parameter.VAR_KEYWORD else parameter: value})
        with contextlib.suppress(spindle.Error):
            FUNCTIONS[name](*positional, **keywords)
