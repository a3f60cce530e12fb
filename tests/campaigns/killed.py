"""A campaign carried out in a child process that kills itself (SIGKILL) at a chosen line of the program."""

from __future__ import annotations

import os
import signal
import sys
import time
from types import FrameType

from spindle.campaign.execution import begin, carry_out, reopened
from spindle.run.watch import SilentWatch
from spindle.store import StoreRefused, open_store
from tests.campaigns import small

ROOMS = ("/spindle/campaign/", "/spindle/store/campaigns.py", "/spindle/store/adding.py", "/spindle/store/database.py")
NAME = "small"


class Countdown:
    """Counts the lines that are run in the rooms concerned; at the last one the process kills itself."""

    def __init__(self, lines: int | None) -> None:
        self.seen, self._last = 0, lines

    def __call__(self, frame: FrameType, event: str, _argument: object) -> Countdown | None:
        if event == "call":
            return self if any(room in frame.f_code.co_filename for room in ROOMS) else None
        if event == "line":
            self.seen += 1
            if self.seen == self._last:
                os.kill(os.getpid(), signal.SIGKILL)
        return self


def go_on(place: str) -> None:
    """As `spindle campaign run`, or `resume` if it has been begun."""
    with open_store(place) as store:
        campaign = store.campaigns.find(NAME)
        if campaign is None:
            found = small.ready(small.SIXTY)
            campaign = begin(found, store, NAME)
        else:
            found = reopened(campaign, store)
        while True:
            try:
                carry_out(campaign, found, store, SilentWatch())
                return
            except StoreRefused as error:  # a server may take a moment to notice that the last one is dead
                if "another process" not in str(error):
                    raise
                time.sleep(0.05)


def run_until(place: str, lines: int | None) -> int | None:
    """In a child; how many lines it was, or None if it was killed."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reads)
            count = Countdown(lines)
            sys.settrace(count)
            go_on(place)
            sys.settrace(None)
            os.write(writes, str(count.seen).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writes)
    said = b""
    with os.fdopen(reads, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return None
    assert os.WEXITSTATUS(status) == 0
    return int(said)
