"""Ctrl-C at any instant of the start: silence or one line, never a traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

AT_IMPORT = """
import os, signal, sys
at, count = int(sys.argv[1]), 0
def interrupt(event, arguments):
    global count
    if event == "import":
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
from spindle.cli import main
sys.argv = ["spindle", *sys.argv[2:]]
sys.addaudithook(interrupt)
try:
    main()
finally:
    if not at:
        print(f"imports {count}", file=sys.stderr)
"""


def run(at: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", AT_IMPORT, str(at), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.promise(8)
@pytest.mark.parametrize(
    "arguments", [("presets",), ("knobs", "list"), ("restore",), ("store", "ls"), ("run", "/nowhere", "/nowhere")]
)
def test_ctrl_c_at_any_import_of_the_start_is_silent_or_one_line(arguments: tuple[str, ...]) -> None:
    whole = run(0, *arguments)
    count = int(whole.stderr.rpartition("imports ")[2])
    assert count > 10
    for at in [1, 2, 3, *range(4, count, max(1, count // 8))]:
        ended = run(at, *arguments)
        assert "Traceback" not in ended.stderr, (at, ended.stderr)
        assert "defect" not in ended.stderr, (at, ended.stderr)
        assert len(ended.stderr.splitlines()) <= 1, (at, ended.stderr)
        assert ended.returncode in (-2, 1, 2, 130), (at, ended.returncode)
