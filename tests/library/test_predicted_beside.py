"""Measured beside predicted: each rule with a record that it explains, and live on a loop device."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import spindle
from spindle.library.predicting import Prediction, beside_of
from spindle.prediction.beside import Side
from spindle.result.record import DeviceCounters, Level, RunRecord, Verdict
from tests.program import spindle as program
from tests.workbench import Workbench

SERVER = """
[[drive]]
service = "1ms"
capacity = "1GiB"
flush = "0s"
range = { service = ["900us", "1.1ms"] }
"""
BUFFERED = {"direct": False, "pattern": "sequential", "size": "1MiB"}


@pytest.fixture
def server(tmp_path: Path) -> Callable[..., tuple[RunRecord, Prediction]]:
    """A run on a machine with another service time than the predicted one, and the prediction."""

    def made(service: str = "1ms", **keys: Any) -> tuple[RunRecord, Prediction]:
        path = tmp_path / "server.toml"
        path.write_text(SERVER)
        found = spindle.predict(path, "seeker", seconds=1, **keys)
        path.write_text(SERVER.replace('service = "1ms"', f'service = "{service}"').split("range")[0])
        record = spindle.run("seeker", path, seconds=1, **keys).record
        assert isinstance(record, RunRecord)
        return record, found

    return made


def counters(name: str, role: str, **delta: float) -> DeviceCounters:
    return DeviceCounters(name=name, role=role, seconds=1.0, delta=delta, iostat={"aqu-sz": delta.pop("queue", 1.0)})


def rules(record: RunRecord, found: Prediction, **changed: Any) -> list[str]:
    hints = beside_of(msgspec.structs.replace(record, **changed), found).hints
    assert all(hint.evidence and hint.cause for hint in hints)
    return [hint.rule for hint in hints]


def test_a_figure_within_its_band_has_no_hints(server: Callable[..., tuple[RunRecord, Prediction]]) -> None:
    record, found = server()
    compared = beside_of(record, found)
    assert [of.side for of in compared.operations] == [Side.WITHIN]
    assert compared.hints == []


def test_reads_that_no_device_made_are_a_page_cache(server: Callable[..., tuple[RunRecord, Prediction]]) -> None:
    record, found = server("100us")
    asked = record.figures.total_read_bytes
    assert rules(record, found, devices=[counters("sda", "target", reads=9.0, read_bytes=asked / 10)]) == ["page-cache"]
    assert rules(record, found, devices=[counters("sda", "target", reads=9.0, read_bytes=asked)]) == ["cache-below"]


def test_one_slow_member_is_named(server: Callable[..., tuple[RunRecord, Prediction]]) -> None:
    record, found = server("3ms")

    def member(name: str, ms: float) -> DeviceCounters:
        return counters(name, "below", reads=100.0, read_ms=100 * ms)

    alike = [member(name, 5.0) for name in ("sda", "sdb", "sdc")]
    slow = beside_of(msgspec.structs.replace(record, devices=[*alike, member("sdd", 20.0)]), found)
    assert [(hint.rule, hint.cause.split()[0]) for hint in slow.hints] == [("slow-member", "sdd")]
    assert rules(record, found, devices=alike) == []


def test_split_requests_are_a_misalignment(server: Callable[..., tuple[RunRecord, Prediction]]) -> None:
    record, found = server("3ms")
    requests = float(record.figures.requests)
    split = [counters("md0", "target", reads=requests), counters("sda", "below", reads=2 * requests)]
    assert rules(record, found, devices=split) == ["misaligned"]
    assert rules(record, found, devices=[split[0]]) == []


def test_short_reads_of_the_device_are_a_small_read_ahead(
    server: Callable[..., tuple[RunRecord, Prediction]],
) -> None:
    record, found = server("3ms", **BUFFERED)
    assert found.read_size is not None

    def device(size: float) -> list[DeviceCounters]:
        return [counters("sda", "target", reads=100.0, read_bytes=100 * size)]

    assert rules(record, found, devices=device(found.read_size / 4)) == ["read-ahead"]
    assert rules(record, found, devices=device(found.read_size)) == []


def test_a_write_cache_that_is_off_is_named(server: Callable[..., tuple[RunRecord, Prediction]]) -> None:
    record, found = server("3ms", write_fraction=1)
    settings = msgspec.structs.replace(record.settings, before={"sda.write_cache": "write through"})
    assert rules(record, found, settings=settings) == ["write-cache"]
    on = msgspec.structs.replace(record.settings, before={"sda.write_cache": "write back"})
    assert rules(record, found, settings=on) == []


def test_more_commands_than_the_drives_take_are_a_deep_controller(
    server: Callable[..., tuple[RunRecord, Prediction]],
) -> None:
    record, found = server("100us", workers=32)
    deep = counters("sda", "target", reads=9.0, queue=30.0)
    assert rules(record, found, devices=[deep]) == ["deep-queue"]


def test_other_users_of_the_device_are_named(server: Callable[..., tuple[RunRecord, Prediction]]) -> None:
    record, found = server("3ms")
    verdict = Verdict(check="other-io", level=Level.WARN, evidence="others read 3 GB")
    assert rules(record, found, verdicts=[verdict]) == ["others"]


def test_a_search_has_no_prediction_beside_it(server: Callable[..., tuple[RunRecord, Prediction]]) -> None:
    _, found = server()
    with pytest.raises(spindle.Error, match="many runs"):
        found.beside(spindle.run("randomio", "one-sata", find_knee=True, seconds=1))


def test_the_verb_puts_measured_beside_predicted(tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    path.write_text(SERVER)
    out = program("run", "seeker", str(path), "--seconds=1", "--predict").out
    assert "measured beside predicted" in out
    assert "as predicted" in out
    refused = program("run", "seeker", str(path), "--predict", "--json")
    assert (refused.status, refused.err.count("\n")) == (2, 1)


LOADS: list[tuple[str, dict[str, Any]]] = [
    ("seeker", {"seconds": 1}),
    ("randomio", {"seconds": 1, "write_fraction": 0, "fsync_fraction": 0}),
    ("sdd-read", {"seconds": 1}),
    ("sdd-read", {"seconds": 1, "direct": False}),
    ("oltp", {"seconds": 1, "write_fraction": 0}),
]


@pytest.fixture(scope="module")
def loop(shared_bench: Workbench) -> str:
    """A loop device over a file with data."""
    image = shared_bench.image(512 << 20)
    with image.open("r+b") as file:
        for _ in range(512):
            file.write(bytes(range(256)) * 4096)
    return shared_bench.loop(image)


@pytest.fixture(scope="module")
def described(loop: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The machine file of the loop device that `inspect` writes."""
    path = tmp_path_factory.mktemp("machine") / "loop.toml"
    assert program("inspect", loop, "--machine", str(path), "--calibrate").status == 0
    return path


@pytest.mark.parametrize(("load", "keys"), LOADS)
def test_five_loads_run_beside_their_predictions(loop: str, described: Path, load: str, keys: dict[str, Any]) -> None:
    options = [f"--{name.replace('_', '-')}={value}" for name, value in keys.items() if name != "direct"]
    options += ["--buffered"] if keys.get("direct") is False else []
    out = program("run", load, loop, *options, "--predict", str(described)).out
    table = out.split("measured beside predicted", 1)[1]
    assert "main read" in table
    assert re.search(r"(as predicted|(below|above) the band)", table)


@pytest.mark.parametrize("size", ["64KiB", "1MiB"])
@pytest.mark.parametrize("read_ahead_kb", [0, 16, 128, 4096])
def test_reads_of_a_device_are_those_of_the_modelled_page_cache(
    loop: str, described: Path, read_ahead_kb: int, size: str
) -> None:
    """Number and size of the device's reads within 2 %: buffered sequential reads, by the kernel's own counters."""
    Path(f"/sys/block/{Path(loop).name}/queue/read_ahead_kb").write_text(str(read_ahead_kb))
    described.write_text(
        re.sub(r'read_ahead = "\d+ KiB"', f'read_ahead = "{read_ahead_kb} KiB"', described.read_text())
    )
    keys: dict[str, Any] = {"direct": False, "size": size, "seconds": "none", "bytes": "512MiB"}
    subprocess.run(["blockdev", "--flushbufs", loop], check=True)
    before = device_reads(loop)
    spindle.run("sdd-read", loop, **keys)
    reads, read_bytes = (after - start for after, start in zip(device_reads(loop), before, strict=True))
    found = spindle.predict(described, "sdd-read", **keys)
    assert found.read_size is not None
    assert found.device_reads == pytest.approx(reads, rel=0.02)
    assert found.read_size == pytest.approx(read_bytes / reads, rel=0.02)


def device_reads(device: str) -> tuple[int, int]:
    """Reads and bytes read, from /sys/block/*/stat."""
    counters = Path(f"/sys/block/{Path(device).name}/stat").read_text().split()
    return int(counters[0]), 512 * int(counters[2])
