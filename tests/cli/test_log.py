"""`--log`: every completion is in a file; the file is read back, and a missing completion is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from spindle.result.completions import COLUMNS, NotALog, completions
from spindle.result.document import decode
from spindle.result.figures import Log
from spindle.result.record import Level, RunRecord
from spindle.result.rules import judge
from spindle.result.rules.log import whole_log
from tests.cli.records import quiet_read
from tests.program import Invoke


def run(invoke: Invoke, *arguments: str) -> RunRecord:
    ended = invoke("run", *arguments, "--json", "--quiet")
    assert ended.status == 0, ended
    found = decode(ended.out.encode(), "stdout")
    assert isinstance(found, RunRecord)
    return found


def test_a_log_has_every_completion_of_the_run(invoke: Invoke, here: Path) -> None:
    record = run(
        invoke, "randomio", "t.bin", "--create", "16MiB", "--workers", "2", "--write-fraction", "0.5",
        "--fsync-fraction", "0.1", "--requests", "500", "--log", "log.csv",
    )  # fmt: skip
    found = list(completions(here / "log.csv"))
    figures = record.figures
    assert figures.log == Log(completions=len(found), lost=0)
    (stream,) = figures.streams
    assert stream.read is not None
    assert stream.write is not None
    assert stream.fsync is not None
    for name, op in (("read", stream.read), ("write", stream.write), ("fsync", stream.fsync)):
        own = [each for each in found if each.operation == name]
        assert len(own) == op.requests
        assert sum(each.bytes for each in own) == op.bytes
        assert max(each.latency_ns for each in own) == op.latency.max_ns
    assert {each.worker for each in found} == {0, 1}
    assert {each.stream for each in found} == {stream.name}
    assert all(each.offset % 4096 == 0 and each.offset < 16 << 20 for each in found)
    assert next(verdict for verdict in record.verdicts if verdict.check == "log").level is Level.OK
    assert sorted(path.name for path in here.iterdir() if path.name != "state") == ["log.csv"]


def test_a_run_without_a_log_does_not_mention_logs(invoke: Invoke, here: Path) -> None:
    record = run(invoke, "randomio", "null:1GiB", "--requests", "100")
    assert record.figures.log is None
    assert "log" not in {verdict.check for verdict in record.verdicts}


def test_the_null_target_is_logged_too_and_an_earlier_log_replaced(invoke: Invoke, here: Path) -> None:
    run(invoke, "saturate", "null:1GiB", "--requests", "50", "--log", "log.csv")
    run(invoke, "saturate", "null:1GiB", "--requests", "100", "--log", "log.csv")
    assert len(list(completions(here / "log.csv"))) == 100


def test_completions_missing_from_a_log_are_a_warning() -> None:
    record = quiet_read()
    lossy = replace(record, figures=replace(record.figures, log=Log(completions=900, lost=100)))
    (verdict,) = whole_log(lossy)
    assert (verdict.level, verdict.numbers) == (Level.WARN, {"completions": 900.0, "lost": 100.0})
    assert "10 %" in verdict.evidence
    full = replace(record, figures=replace(record.figures, log=Log(completions=0, lost=9, error="No space left")))
    assert "No space left" in next(v for v in judge(full) if v.check == "log").evidence


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["randomio", "null:1GiB", "--log", "no/such/log.csv"], 2, "no such folder"),
        (["randomio", "null:1GiB", "--log", "/dev/null"], 2, "not a regular file"),
        (["randomio", "null:1GiB", "--log", "l.csv", "--find-knee"], 2, "a search is many runs"),
        (["randomio", "six-sata-f2", "--log", "l.csv"], 2, "a modelled machine does not have this"),
    ],
)
def test_an_impossible_log_is_refused_in_one_line(
    arguments: list[str], status: int, says: str, invoke: Invoke, here: Path
) -> None:
    ended = invoke("run", *arguments)
    assert (ended.status, ended.out) == (status, "")
    assert says in ended.err
    assert not (here / "l.csv").exists()


@pytest.mark.parametrize(
    "text",
    ["", "time\n", ",".join(COLUMNS) + "\n1,2\n", ",".join(COLUMNS) + "\n1,2,x,read,0,0,4096,main,0\n", "\0\xff"],
)
def test_a_file_that_is_not_a_log_is_reported_with_the_position(text: str, here: Path) -> None:
    (here / "l.csv").write_text(text, encoding="latin-1")
    with pytest.raises(NotALog, match=r"l\.csv:\d"):
        list(completions(here / "l.csv"))


def test_each_phase_has_a_log_of_its_own(invoke: Invoke, here: Path) -> None:
    phases = "".join(f'[[phase]]\nname = "{name}"\nrequests = {count}\n' for name, count in (("one", 30), ("two", 40)))
    (here / "w.toml").write_text(phases)
    ended = invoke("run", "w.toml", "null:1GiB", "--log", "l.csv", "--quiet")
    assert ended.status == 0, ended
    assert [len(list(completions(here / f"l-{name}.csv"))) for name in ("one", "two")] == [30, 40]
    assert not (here / "l.csv").exists()
