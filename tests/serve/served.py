"""A served drive as a process of its own."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.program import Ended, ended

SIZE = 8 << 20
QUICK = ("service", "--size", "8MiB", *(f"--key={key}" for key in ("service=20us", "flush=20us", "queue_depth=8")))
"""A drive that takes 20 us for each request."""


@dataclass
class Serving:
    """A server that clients may use."""

    process: subprocess.Popen[str]
    line: str

    def end(self, number: int = signal.SIGTERM) -> Ended:
        """End it with a signal."""
        self.process.send_signal(number)
        return ended(self.process, timeout=None)

    def figures(self) -> dict[str, Any]:
        """End it; its figures."""
        left = self.end()
        assert left.status == 0, left.err
        return dict(json.loads(left.out))


Serve = Callable[..., Serving]


def is_dropped(client: socket.socket) -> bool:
    """True if the connection ends next; it ends with `ECONNRESET` where the server left bytes unread."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
