"""Folders and processes that end with Spindle; nothing is booted here."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spindle.lab.errors import LabError
from spindle.lab.janitor import passing_folder
from tests.program import inside, wait_until

WORK = """
import subprocess, sys, time
from pathlib import Path
from spindle.lab.janitor import passing_folder
with passing_folder(Path(sys.argv[1])) as janitor:
    (janitor.folder / "deep").mkdir()
    command = "sleep 600 & sleep 600"
    made = subprocess.Popen(["sh", "-c", command], cwd=janitor.folder / "deep", process_group=0)
    with janitor.watching(made.pid):
        print("ready", flush=True)
        time.sleep(600)
"""


def test_a_killed_program_leaves_neither_folder_nor_processes(tmp_path: Path) -> None:
    working = subprocess.Popen([sys.executable, "-c", WORK, str(tmp_path)], stdout=subprocess.PIPE)
    assert working.stdout is not None
    assert working.stdout.readline() == b"ready\n"
    wait_until(lambda: len(inside(tmp_path)) >= 3)
    working.send_signal(signal.SIGKILL)
    working.communicate()
    wait_until(lambda: not inside(tmp_path) and not list(tmp_path.iterdir()))


def test_processes_are_left_alone_once_they_are_not_watched(tmp_path: Path) -> None:
    sleeping = subprocess.Popen(["sleep", "600"], process_group=0)
    try:
        with passing_folder(tmp_path) as janitor:
            with janitor.watching(sleeping.pid):
                pass
            assert janitor.folder.parent == tmp_path
        assert not list(tmp_path.iterdir())
        assert sleeping.poll() is None
    finally:
        sleeping.kill()
        sleeping.wait()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"no-such: no folder can be made there$"), passing_folder(tmp_path / "no-such"):
        pass
