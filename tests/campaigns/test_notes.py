"""Notes of what a killed campaign left are commands that are run: only those that nobody else could have written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from spindle.campaign import leftovers
from spindle.campaign.leftovers import Note, take_down
from spindle.host.trusted import UntrustedFile

pytestmark = pytest.mark.promise(4)


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """A note of a teardown that leaves a trace."""
    with leftovers.noted("c1", "teardown", Note(teardown=(("touch", str(tmp_path / "done")),))):
        path = next(leftovers._folder().glob("c1.*.json"))
        content = path.read_bytes()
    assert msgspec.json.decode(content, type=Note).teardown
    path.touch(0o600)
    path.write_bytes(content)
    return path


def test_a_note_of_ones_own_is_carried_out(note: Path, tmp_path: Path) -> None:
    assert "done" in take_down("c1")[0]
    assert (tmp_path / "done").exists()
    assert not note.exists()


def owned_by_another(path: Path) -> None:
    os.chown(path, 65534, 65534)


def writable_by_all(path: Path) -> None:
    path.chmod(0o666)


def a_link(path: Path) -> None:
    path.rename(path.with_suffix(".elsewhere"))
    path.symlink_to(path.with_suffix(".elsewhere"))


def a_second_name(path: Path) -> None:
    os.link(path, path.with_suffix(".second"))


def in_a_writable_folder(path: Path) -> None:
    path.parent.chmod(0o777)


def below_a_writable_folder(path: Path) -> None:
    path.parent.parent.chmod(0o777)


SPOILERS = (owned_by_another, writable_by_all, a_link, a_second_name, in_a_writable_folder, below_a_writable_folder)


@pytest.mark.parametrize("spoil", SPOILERS)
def test_notes_that_somebody_else_could_have_written_are_refused(
    need_root: None, note: Path, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(note)
    for _ in range(2):
        with pytest.raises(UntrustedFile) as refused:
            take_down("c1")
        assert refused.value.exit_code == 3
    assert not (tmp_path / "done").exists()
    assert os.path.lexists(note)
