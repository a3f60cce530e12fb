"""Servers and mounts of a test, each taken down again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.program import COMMAND
from tests.serve.nbd import Clients, Nbd
from tests.serve.served import Serve, Serving


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server, which is ended with the test."""
    started = []

    def start(*arguments: str | Path) -> Serving:
        process = subprocess.Popen(
            [*COMMAND, "drive", "serve", *map(str, arguments), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stderr is not None
        return Serving(process, process.stderr.readline())

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder for a mount, which is taken down even if the server was killed."""
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("needs root and FUSE")
    made = tmp_path / "mnt"
    made.mkdir()
    yield made
    subprocess.run(["umount", "--lazy", made], capture_output=True, check=False)


@pytest.fixture
def nbd() -> Iterator[Clients]:
    """Connect a client, which is closed with the test."""
    made = []

    def connect(path: Path) -> Nbd:
        made.append(Nbd(path))
        return made[-1]

    yield connect
    for client in made:
        client.close()
