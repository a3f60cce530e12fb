"""`spindle-agent session`: orders and reports, and the end of a load that nobody gives orders to."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

TOML = 'size = "4KiB"\n'


class Session:
    """An agent that takes orders."""

    def __init__(self, binary: Path) -> None:
        self.process = subprocess.Popen(
            [binary, "session"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.hello = self.report()

    def order(self, kind: str, **fields: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"kind": kind, **fields}) + "\n")
        self.process.stdin.flush()

    def report(self, *skipped: str) -> Any:
        assert self.process.stdout is not None
        while True:
            found = json.loads(self.process.stdout.readline())
            if found["kind"] not in skipped:
                return found

    def load(self, *options: str, toml: str = TOML) -> None:
        self.order("run", options=list(options), name="load", source="load.toml", toml=toml)

    def clock(self) -> int:
        self.order("clock", number=7)
        found = self.report()
        assert (found["kind"], found["number"]) == ("clock", 7)
        return int(found["at_ns"])


@pytest.fixture
def session(binary: Path) -> Iterator[Callable[[], Session]]:
    made: list[Session] = []

    def begin() -> Session:
        made.append(Session(binary))
        return made[-1]

    yield begin
    for one in made:
        one.process.kill()
        one.process.wait()
        for pipe in (one.process.stdin, one.process.stdout, one.process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


def test_a_load_begins_at_the_time_of_its_order_and_not_before(session: Callable[[], Session]) -> None:
    one = session()
    one.load("--target", "null:1GiB", "--set", "seconds=0.3")
    assert one.report() == {"kind": "ready", "phase": 0}
    at_ns = one.clock() + 400_000_000
    one.order("start", at_ns=at_ns)
    begun = one.report()
    assert begun["kind"] == "started"
    assert 0 <= begun["at_ns"] - at_ns < 100_000_000
    result = one.report("progress")
    assert (result["kind"], result["status"]) == ("result", 0)
    assert result["document"]["kind"] == "agent"
    assert one.process.wait() == 0


def test_phases_begin_one_order_each(session: Callable[[], Session]) -> None:
    one = session()
    one.load("--target", "null:1GiB", toml='seconds = 0.1\n[[phase]]\nname = "a"\n[[phase]]\nname = "b"\n')
    for phase in (0, 1):
        assert one.report("progress") == {"kind": "ready", "phase": phase}
        one.order("start", at_ns=0)
        assert one.report()["phase"] == phase
    assert one.report("progress")["kind"] == "result"


def test_the_end_of_the_orders_ends_the_load_and_its_figures_come_back(session: Callable[[], Session]) -> None:
    one = session()
    one.load("--target", "null:1GiB", "--set", "seconds=60")
    one.report()
    one.order("start", at_ns=0)
    assert one.report()["kind"] == "started"
    assert one.report()["kind"] == "progress"
    assert one.process.stdin is not None
    one.process.stdin.close()
    result = one.report("progress")
    assert result["status"] == 129
    assert result["document"]["runs"][0]["figures"]["ended_by"]["kind"] == "stopped"


@pytest.mark.parametrize("started", [False, True])
def test_silence_ends_a_session(session: Callable[[], Session], started: bool) -> None:
    one = session()
    one.load("--target", "null:1GiB", "--set", "seconds=60")
    one.report()
    if started:
        one.order("start", at_ns=0)
    begun = time.monotonic()
    assert one.report("progress", "started")["status"] == 129
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize(
    ("orders", "status", "words"),
    [
        (['{"kind": "clok"}'], 2, "not an order"),
        (["[1]"], 2, "not an order"),
        (['{"kind": "start", "at_ns": 0}'], 2, "out of order"),
        (['{"kind":"run","options":["--walk"],"name":"x","source":"x","toml":""}'], 2, "--walk"),
        (
            ['{"kind":"run","options":["--target","/nowhere"],"name":"x","source":"x.toml","toml":"seze=1"}'],
            2,
            "x.toml",
        ),
        (['{"kind":"run","options":["--target","/nowhere"],"name":"x","source":"x","toml":""}'], 2, "/nowhere"),
        (['{"kind":"run","options":["--target","/dev/null"],"name":"x","source":"x","toml":""}'], 2, "/dev/null"),
    ],
)
def test_a_wrong_order_is_a_failure_of_one_line(
    session: Callable[[], Session], orders: list[str], status: int, words: str
) -> None:
    one = session()
    assert one.process.stdin is not None
    one.process.stdin.write("".join(f"{order}\n" for order in orders))
    one.process.stdin.flush()
    found = one.report()
    assert (found["kind"], found["status"]) == ("failure", status)
    assert words in found["line"]
    assert one.process.wait() == status
