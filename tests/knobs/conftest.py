"""Shared by tests of knobs: a kernel made of files, and real loop queues that are restored after each test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.knobs.kernel_of_files import FakeKernel
from tests.queue import Queue
from tests.workbench import Workbench


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path / "machine")


@pytest.fixture
def untouched_vm() -> Iterator[None]:
    """Virtual memory as it was, even if the code under test fails."""
    folder = Path("/proc/sys/vm")
    names = ("dirty_ratio", "dirty_bytes", "dirty_background_ratio", "dirty_background_bytes", "swappiness",
             "dirty_expire_centisecs", "dirty_writeback_centisecs", "vfs_cache_pressure")  # fmt: skip
    before = {name: (folder / name).read_text() for name in names}
    yield
    for name, value in before.items():
        if value.strip() != "0" and (folder / name).read_text() != value and os.geteuid() == 0:
            (folder / name).write_text(value)


@pytest.fixture
def loop(bench: Workbench, untouched_vm: None) -> Callable[[], Queue]:
    """Makes loop devices."""
    return lambda: Queue(Path(bench.loop()).name)
