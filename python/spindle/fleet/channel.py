"""One host's agent: its ssh, its orders and its reports."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import deque
from pathlib import Path
from typing import Any

from . import commands
from .clock import ClockOffset, offset_of
from .errors import HostError
from .hosts import Host

PROTOCOL = 2
"""Version of orders and reports (crates/agent/src/session.rs)."""
LONGEST_REPORT = 64 << 20
"""Bytes of one line: a result of many phases is a few hundred KiB."""
CONNECT_S = 30.0
"""Time for the connection, the copy of the agent, and its first line."""
SILENT_S = 10.0
"""Time without a report of a load, after which its host counts as lost: it reports each second."""
ALIVE_S = 1.0
"""Between signs of life; an agent that hears nothing for 6 s stops its load."""
TRIPS = 16
"""Round trips of a measurement of the clock."""


class Channel:
    """The connection to one host's agent. Closing it ends what runs there."""

    def __init__(self, host: Host, process: asyncio.subprocess.Process) -> None:
        self.host = host
        self.version = ""
        self.clock = ClockOffset(0, 0)
        self._process = process
        self._notes: deque[str] = deque(maxlen=20)
        self._alive: asyncio.Future[None] | None = None
        self._listening = asyncio.ensure_future(self._listen())

    @classmethod
    async def open(cls, host: Host, agent: Path | None) -> Channel:
        """Connect and greet. `agent`: a binary to copy if the host has none. Raises HostError."""
        data = agent.read_bytes() if agent is not None else b""
        try:
            process = await asyncio.create_subprocess_exec(
                *commands.of_ssh(host, data),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                limit=LONGEST_REPORT, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise HostError(host.name, f"ssh cannot be started ({error.strerror}); install openssh-client") from None
        channel = cls(host, process)
        try:
            await asyncio.wait_for(channel._greet(data), CONNECT_S)
        except TimeoutError:
            await channel.close()
            raise HostError(host.name, f"no answer within {CONNECT_S:.0f} s; try `ssh {host.ssh} true`") from None
        except BaseException:
            await channel.close()
            raise
        return channel

    async def _greet(self, data: bytes) -> None:
        line = await self._line()
        if line == commands.WANT:
            assert self._process.stdin is not None
            self._process.stdin.write(data)
            with contextlib.suppress(ConnectionError):
                await self._process.stdin.drain()
            line = await self._line()
        hello = self._parsed(line)
        if hello.get("kind") != "hello" or hello.get("protocol") != PROTOCOL:
            raise HostError(
                self.host.name, f"its spindle-agent speaks protocol {hello.get('protocol')}, not {PROTOCOL}", 2
            )
        self.version = str(hello.get("version"))
        self._alive = asyncio.ensure_future(self._say_alive())

    def check_version(self, version: str) -> None:
        """Raises HostError if the agent is not of this version."""
        if self.version != version:
            raise HostError(
                self.host.name,
                f"its spindle-agent is version {self.version}, this is {version}; leave `agent` out of the file of "
                "hosts, and this machine's is copied there",
                2,
            )

    async def order(self, kind: str, **fields: object) -> None:
        """Send an order. A host that is gone is noticed by the next report."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"kind": kind, **fields}).encode() + b"\n")
        with contextlib.suppress(ConnectionError):
            await self._process.stdin.drain()

    async def report(self, within_s: float | None = None) -> dict[str, Any]:
        """The next report. Raises HostError for a failure there, or if the host is lost."""
        try:
            found = self._parsed(await asyncio.wait_for(self._line(), within_s))
        except TimeoutError:
            raise HostError(self.host.name, f"lost: no report for {within_s:.0f} s") from None
        if found.get("kind") == "failure":
            raise HostError(self.host.name, str(found.get("line")), int(found.get("status", 1)), reported=True)
        return found

    async def measure_clock(self) -> None:
        """Set `clock` from several round trips. Raises HostError."""
        trips = []
        for number in range(TRIPS):
            sent = time.monotonic_ns()
            await self.order("clock", number=number)
            found = await self.report(SILENT_S)
            received = time.monotonic_ns()
            if found.get("kind") != "clock" or found.get("number") != number:
                raise HostError(self.host.name, "its agent does not answer in order")
            trips.append((sent, int(found["at_ns"]), received))
        self.clock = offset_of(trips)

    def hang_up(self) -> None:
        """Send no more orders: the agent stops its load and reports the figures up to now."""
        if self._alive is not None:
            self._alive.cancel()
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def close(self) -> None:
        """End the connection; ssh is killed if it does not end."""
        self.hang_up()
        try:
            await asyncio.wait_for(self._process.wait(), 2.0)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        self._listening.cancel()

    async def _line(self) -> bytes:
        assert self._process.stdout is not None
        try:
            line = await self._process.stdout.readline()
        except (ValueError, ConnectionError):
            line = b""
        if not line.endswith(b"\n"):
            raise HostError(self.host.name, await self._reason())
        return line

    def _parsed(self, line: bytes) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            shown = line.decode(errors="replace").strip()[:80]
            raise HostError(self.host.name, f"not a report of spindle-agent: {shown}")
        return found

    async def _reason(self) -> str:
        """Why a connection ended: the last line that ssh or the host printed."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._listening), 1.0)
        status = self._process.returncode
        if self._notes:
            return f"the connection ended: {self._notes[-1]}"
        return f"the connection ended{f' (ssh: status {status})' if status else ''}; the host or its agent is gone"

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while line := await self._process.stderr.readline():
            text = "".join(char if char.isprintable() else "?" for char in line.decode(errors="replace").strip())
            if text:
                self._notes.append(text)

    async def _say_alive(self) -> None:
        while True:
            await asyncio.sleep(ALIVE_S)
            await self.order("alive")
