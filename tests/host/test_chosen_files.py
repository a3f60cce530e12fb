"""Files that a person chose to be obeyed are refused if somebody else could have written or replaced them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spindle.host.trusted import UntrustedFile, check_chosen, read_chosen
from spindle.store.lock import FileLock
from tests.program import spindle

pytestmark = pytest.mark.promise(4)
STRANGER = 65534
PLAN = """
target = "one-sata"
workload = "randomio"

[options]
seconds = 1

[factors.readers]
sets = "options.workers"
values = [1, 2]

[trials]
count = 2
"""


def owned_by_another(path: Path) -> None:
    os.chown(path, STRANGER, STRANGER)


def writable_by_all(path: Path) -> None:
    path.chmod(0o666)


def writable_by_another_group(path: Path) -> None:
    os.chown(path, -1, STRANGER)
    path.chmod(0o664)


def a_link(path: Path) -> None:
    path.rename(path.with_suffix(".elsewhere"))
    path.symlink_to(path.with_suffix(".elsewhere"))


def a_second_name(path: Path) -> None:
    os.link(path, path.with_suffix(".second"))


def in_a_writable_folder(path: Path) -> None:
    path.parent.chmod(0o777)


def in_a_sticky_folder(path: Path) -> None:
    path.parent.chmod(0o1777)


def in_a_folder_of_another(path: Path) -> None:
    os.chown(path.parent, STRANGER, STRANGER)


SPOILERS = (
    owned_by_another, writable_by_all, writable_by_another_group, a_link, a_second_name, in_a_writable_folder,
    in_a_sticky_folder, in_a_folder_of_another,
)  # fmt: skip


@pytest.fixture
def chosen(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "chosen"
    path.parent.mkdir()
    path.write_text("it")
    return path


@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_chosen_file_that_somebody_else_could_have_written_is_refused(
    need_root: None, chosen: Path, spoil: Callable[[Path], None]
) -> None:
    assert read_chosen(chosen) == b"it"
    spoil(chosen)
    with pytest.raises(UntrustedFile):
        check_chosen(chosen)


def test_under_sudo_the_callers_files_are_obeyed_and_nobody_elses(
    need_root: None, chosen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(chosen, STRANGER, STRANGER)
    os.chown(chosen.parent, STRANGER, STRANGER)
    chosen.chmod(0o664)  # umask 002, with a group of his own
    monkeypatch.setenv("SUDO_UID", str(STRANGER - 1))
    with pytest.raises(UntrustedFile):
        check_chosen(chosen)
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    assert read_chosen(chosen) == b"it"


def test_a_store_that_somebody_else_could_have_written_is_not_resumed(need_root: None, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    ran = spindle("campaign", "run", "plan.toml", "--store", "./s.db", cwd=tmp_path)
    assert ran.status == 0, ran.err
    owned_by_another(tmp_path / "s.db")
    refused = spindle("campaign", "resume", "plan", "--store", "./s.db", cwd=tmp_path)
    assert refused.status == 3
    assert "s.db: belongs to" in refused.complaint
    assert spindle("campaign", "show", "plan", "--store", "./s.db", cwd=tmp_path).status == 0


def test_a_profile_that_somebody_else_could_have_written_is_not_applied(
    need_root: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    spindle("knobs", "profile", "save", "calm", "vm.swappiness=60")
    path = tmp_path / "config/spindle/profiles/calm.toml"
    assert spindle("knobs", "profile", "show", "calm").status == 0
    writable_by_all(path)
    for verb in ("apply", "show"):
        refused = spindle("knobs", "profile", verb, "calm")
        assert refused.status == 3
        assert "others may write to it" in refused.complaint


def test_the_lock_of_a_store_is_not_opened_through_a_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    lock = FileLock(tmp_path / "s.db", "c1", "mine")
    (tmp_path / "s.db.c1.lock").symlink_to(precious)
    with pytest.raises(UntrustedFile):
        lock.take()
    assert precious.read_text() == "mine"
    (tmp_path / "s.db.c1.lock").unlink()
    lock.take()
    lock.release()
