"""`spindle.durability`, `verify` and `receive_journals` do what the verbs do."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

import spindle
from tests.program import spindle as program


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, Path]:
    """A file that a verified run wrote, and its state."""
    target, state = tmp_path / "data", tmp_path / "data.state"
    spindle.run(
        "randomio", target, create="4MiB", keep=True, seconds="200ms", ramp="0s", verify=True, verify_state=state,
        write_fraction=1.0, direct=False,
    )  # fmt: skip
    return target, state


def test_a_saved_state_is_read_back_as_the_verb_does(saved: tuple[Path, Path]) -> None:
    target, state = saved
    checked = spindle.verify(target, state=state)
    assert checked
    assert checked.to_dict()["run"] == program("verify", target, "--state", state, "--json").json["run"]
    assert "all of them are right" in str(checked)
    target.write_bytes(b"\0" * target.stat().st_size)
    wrong = spindle.verify(target, state=state)
    assert not wrong.sound
    assert wrong.summary.startswith("wrong content: ")
    assert program("verify", target, "--state", state).status == 1


def test_a_durability_run_is_checked_against_its_journal(tmp_path: Path) -> None:
    target, journal = tmp_path / "t", tmp_path / "journal"
    ran = spindle.durability(target, journal, create="4MiB", seconds=0.3, journal_on_target=True, buffered=True)
    assert ran.journal == str(journal)
    assert ran.to_dict()["figures"]["syncs"] > 0
    assert "Acknowledged" in str(ran)
    checked = spindle.verify(after_crash=journal)
    assert checked.sound
    assert checked.summary.startswith("Nothing is lost")
    assert checked.to_dict() == program("verify", "--after-crash", journal, "--json").json


def test_a_journal_is_received_from_a_writer(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    received: list[object] = []
    thread = threading.Thread(target=lambda: received.extend(spindle.receive_journals(port, tmp_path / "there")))
    thread.start()
    options = {"create": "4MiB", "seconds": 0.3, "buffered": True}
    for _ in range(100):  # until it listens
        try:
            spindle.durability(tmp_path / "t", f"tcp://127.0.0.1:{port}", **options)  # type: ignore[arg-type]
            break
        except spindle.Error:
            (tmp_path / "t").unlink(missing_ok=True)
            time.sleep(0.1)
    thread.join(timeout=30)
    assert [each.path for each in received] == [tmp_path / "there"]  # type: ignore[attr-defined]
    assert spindle.verify(after_crash=tmp_path / "there").sound


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"sync": "fsnyc"}, "`sync=` fsnyc: did you mean `fsync`"),
        ({"pattern": "?"}, "`pattern=` ?: it is one of append, random and mixed"),
        ({"workers": 0}, "`workers=` 0: is not a number from 1 to 256"),
        ({"seconds": float("nan")}, "`seconds=` nan"),
        ({"create": "much"}, "`create=` `much` is not a size"),
        ({"block": 0}, "`block=` 0: must be more than 0"),
    ],
)
def test_a_wrong_argument_is_one_clear_line(tmp_path: Path, arguments: dict[str, object], words: str) -> None:
    with pytest.raises(spindle.Error) as refused:
        spindle.durability(tmp_path / "t", tmp_path / "j", **arguments)  # type: ignore[arg-type]
    assert words in str(refused.value)
    assert not (tmp_path / "t").exists()


def test_verify_takes_one_thing_to_compare_with(tmp_path: Path) -> None:
    with pytest.raises(spindle.Error, match="nothing to compare with"):
        spindle.verify(tmp_path)
    with pytest.raises(spindle.Error, match="give one of them"):
        spindle.verify(tmp_path, state="a", after_crash="b")
