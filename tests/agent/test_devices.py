"""The agent's guard: a block device is written only if it is named, unused and empty."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spindle import formats
from spindle.result.record import RunRecord
from tests.program import Ended
from tests.workbench import MIB, Workbench

Agent = Callable[..., Ended]

WRITES = 'requests = 200\nsize = "4KiB"\nwrite_fraction = 1\nworkers = 1\n'


@pytest.fixture
def writes(tmp_path: Path) -> Path:
    path = tmp_path / "writes.toml"
    path.write_text(WRITES)
    return path


def refusal(done: Ended) -> str:
    assert done.status == 3, done.err
    assert len(done.err.splitlines()) == 1
    return done.err


def test_an_empty_device_that_is_named_is_written_and_counted(
    bench: Workbench, agent: Agent, writes: Path, tmp_path: Path
) -> None:
    device, output = bench.loop(), tmp_path / "r.json"
    assert agent(writes, device, output, "--erase", device).status == 0
    (record,) = formats.read(output)
    assert isinstance(record, RunRecord)
    name = device.removeprefix("/dev/")
    assert record.target.kind == "device"
    assert record.counters is not None
    assert record.counters.name == name
    assert record.counters.bytes_of("write") == 200 * 4096
    assert f"{name}.scheduler" in record.settings.before


def test_without_consent_nothing_is_written(
    bench: Workbench, agent: Agent, writes: Path, tmp_path: Path, content: Callable[[str | Path], str]
) -> None:
    device, other = bench.loop(), bench.loop()
    before = content(device)
    assert "--erase" in refusal(agent(writes, device, "-"))
    assert "another device" in refusal(agent(writes, device, "-", "--erase", other))
    assert "another device" in refusal(agent("seeker", device, "-", "--erase", other))
    assert content(device) == before
    assert list(tmp_path.glob("*.json")) == []


def test_a_device_that_is_not_empty_needs_a_second_consent(bench: Workbench, agent: Agent, writes: Path) -> None:
    device = bench.loop()
    bench.run("mkfs.ext4", "-q", device)
    assert "--erase-content" in refusal(agent(writes, device, "-", "--erase", device))
    assert agent(writes, device, "-", "--erase", device, "--erase-content").status == 0


def test_a_device_in_use_is_refused_whatever_is_agreed(
    bench: Workbench, agent: Agent, writes: Path, content: Callable[[str | Path], str]
) -> None:
    mounted = bench.loop()
    bench.run("mkfs.ext4", "-q", mounted)
    point = bench.mount(mounted)
    agreed = ("--erase-content", "--erase-stacked")
    assert f"is mounted on {point}" in refusal(agent(writes, mounted, "-", "--erase", mounted, *agreed))

    below = bench.loop()
    above = bench.loop(below)
    assert "is behind" in refusal(agent(writes, below, "-", "--erase", below, *agreed))
    assert "over a block device" in refusal(agent(writes, above, "-", "--erase", above, *agreed))

    held = bench.loop(size=32 * MIB)
    with open(held, "r+b", buffering=0):
        assert "is open for writing by process" in refusal(agent(writes, held, "-", "--erase", held, *agreed))


def test_a_mounted_device_may_be_read(bench: Workbench, agent: Agent, tmp_path: Path) -> None:
    device, output = bench.loop(), tmp_path / "r.json"
    bench.run("mkfs.ext4", "-q", device)
    bench.mount(device)
    done = agent("seeker", device, output, "--set", "seconds=none", "requests=50")
    assert done.status == 0, done.err
    (record,) = formats.read(output)
    assert isinstance(record, RunRecord)
    assert record.figures.requests == 50
