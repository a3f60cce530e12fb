"""The lab's prompt, at a terminal that the test plays. It needs the lab's kernel (`make lab`)."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


class Person:
    """Types at a terminal of 100 columns and 30 rows."""

    def __init__(self, machine: Path) -> None:
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
            os.execv(sys.executable, [sys.executable, "-m", "spindle.cli", "lab", "shell", str(machine)])

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def wait_for(self, text: str, seconds: float = 60.0) -> str:
        seen = ""
        until = time.monotonic() + seconds
        while text not in seen:
            assert time.monotonic() < until, f"no {text!r} in {seen!r}"
            if select.select([self.terminal], [], [], 1.0)[0]:
                seen += os.read(self.terminal, 4096).decode(errors="replace")
        return seen

    def status(self) -> int:
        while True:
            try:
                if not os.read(self.terminal, 4096):
                    break
            except OSError:  # the other end is closed
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


@pytest.fixture
def person(four: Path) -> Iterator[Person]:
    found = Person(four)
    yield found
    os.close(found.terminal)


def test_a_person_types_and_leaves(person: Person) -> None:
    person.wait_for("# ")
    person.type("stty size; echo a$((1+2))b\n")
    assert "30 100" in person.wait_for("a3b\r\n")
    person.type("sleep 1000\n")
    time.sleep(0.5)
    person.type("\x03")
    person.wait_for("# ")
    person.type("exit 5\n")
    assert person.status() == 5


def test_time_passes_as_it_does_for_the_person(person: Person) -> None:
    person.wait_for("# ")
    began = time.monotonic()
    person.type("sleep 2; echo slept$((3+4))\n")
    person.wait_for("slept7")
    assert time.monotonic() - began >= 2
    person.type("exit\n")
    assert person.status() == 0


def test_a_key_leaves_at_once(person: Person) -> None:
    person.wait_for("# ")
    person.type("\x1d")
    assert person.status() == 1
