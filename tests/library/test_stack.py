"""`spindle.inspect`, `capture` and `doctor`: what the verbs show."""

from __future__ import annotations

from pathlib import Path

import pytest

import spindle
from spindle.cli.failure import spelled
from tests.program import spindle as program


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of this machine."""
    file = tmp_path_factory.mktemp("capture") / "here.tar.gz"
    spindle.capture(file, mask_serials=True)
    return file


def test_a_capture_is_inspected_as_on_the_command_line(taken: Path) -> None:
    stack = spindle.inspect(root=taken)
    assert stack.to_dict() == program("inspect", "--root", taken, "--json").json
    assert spelled(str(stack)) == program("inspect", "--root", taken).out.rstrip("\n")
    assert stack._repr_html_().startswith("<pre>")


def test_findings_are_those_of_the_verb(taken: Path) -> None:
    found = spindle.doctor(root=taken, workload="random")
    assert (
        found.to_dict()["findings"]
        == program("doctor", "--root", taken, "--workload=random", "--json").json["findings"]
    )
    assert len(found.to_table()) == len(found) == len(list(found))
    assert found.fix_plan.startswith("#!")


def test_one_rule_alone_is_applied(taken: Path) -> None:
    found = spindle.doctor(root=taken, rules=["scheduler"])
    assert found.diagnosis.rules == ["scheduler"]
    with pytest.raises(spindle.Error, match="no rule `schedular`; did you mean `scheduler`"):
        spindle.doctor(root=taken, rules=["schedular"])


def test_a_target_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(spindle.Error) as error:
        spindle.inspect(tmp_path / "nothing")
    assert "\n" not in str(error.value)


def test_a_capture_does_not_replace_another_file(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(spindle.Error, match="exists, and is not a capture of Spindle"):
        spindle.capture(tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "mine"
