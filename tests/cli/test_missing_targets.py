"""A target that is not there, or of a kind that cannot be one, is a wrong command line: exit status 2 of every verb."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.program import spindle

pytestmark = pytest.mark.promise(26)

VERBS = [
    ("run", "randomio"),
    ("quick",),
    ("inspect",),
    ("doctor",),
    ("monitor", "--count=1"),
    ("knobs", "get"),
    ("knobs", "list"),
]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
@pytest.mark.parametrize("target", ["nowhere/file", "./nothing", "a-file/below", "x" * 300])
def test_a_missing_target_is_a_wrong_command_line(verb: tuple[str, ...], target: str, tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("it")
    ended = spindle(*verb, target, cwd=tmp_path)
    assert (ended.status, ended.out) == (2, "")
    assert ended.complaint.startswith("spindle: ")


@pytest.mark.parametrize("verb", [("run", "seeker"), ("inspect",), ("doctor",), ("knobs", "get")], ids=" ".join)
def test_a_target_of_an_unsuitable_kind_is_a_wrong_command_line(verb: tuple[str, ...], tmp_path: Path) -> None:
    assert spindle(*verb, "/dev/zero", cwd=tmp_path).status == 2


@pytest.mark.parametrize("place", ["nowhere/file", "a-file/below"])
def test_a_test_file_cannot_be_made_without_its_folder(place: str, tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("it")
    assert spindle("run", "randomio", place, "--create", "1MiB", cwd=tmp_path).status == 2


def test_a_target_that_may_not_be_written_to_is_refused_and_one_without_room_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("it")
    assert spindle("run", "sdd-write", "mine", cwd=tmp_path).status == 3
    assert spindle("run", "sdd-write", "/dev/nothing", "--erase", "/dev/nothing", cwd=tmp_path).status == 3
