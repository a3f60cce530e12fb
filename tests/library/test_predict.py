"""Predictions: their bands, the causes of these, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import spindle
from spindle.prediction.calibration import LARGE, SMALL, Trial, measured
from tests.program import spindle as program

SERVER = """
[[drive]]
service = "1ms"
capacity = "1GiB"
range = { service = ["500us", "2ms"] }
"""


@pytest.fixture
def server(tmp_path: Path) -> str:
    path = tmp_path / "server.toml"
    path.write_text(SERVER)
    return str(path)


def test_a_band_is_the_figure_at_both_ends_of_the_range(server: str) -> None:
    found = spindle.predict(server, "seeker", seconds=2)
    (read,) = found.operations
    assert (read.iops.least, read.iops.value, read.iops.most) == pytest.approx((500, 1000, 2000), rel=0.01)
    assert (read.mean_ns.least, read.mean_ns.value, read.mean_ns.most) == pytest.approx((5e5, 1e6, 2e6), rel=0.01)
    assert (found.causes[0].part, found.causes[0].key) == ("server", "service")
    assert found.causes[0].iops == pytest.approx(1.5, rel=0.01)


def test_a_figure_is_that_of_the_run_itself() -> None:
    found = spindle.predict("one-sata", "oltp", seconds=3)
    run = spindle.run("oltp", "one-sata", seconds=3)
    assert run.read is not None
    assert found.operations[0].iops.value == run.read.iops
    assert found.operations[0].p99_ns.value == float(run.read.p99)


def test_the_bands_of_two_numbers_are_combined(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(
        SERVER.replace(
            "range = {", 'transfer_rate = "4096000 B/s"\nrange = { transfer_rate = ["2048000 B/s", "8192000 B/s"],'
        )
    )
    (read,) = spindle.predict(path, "seeker", seconds=2, size="4KiB").operations
    # Alone: 1 ms + 1 ms. The service gives 3/2 and 3/4 of that, the transfer the same.
    assert read.mean_ns.most / read.mean_ns.value == pytest.approx(1.5 * 1.5, rel=0.01)
    assert read.mean_ns.least / read.mean_ns.value == pytest.approx(0.75 * 0.75, rel=0.01)


def test_every_operation_and_phase_has_figures(server: str) -> None:
    found = spindle.predict(server, "iozone", filesize="1MiB")
    assert {of.phase for of in found.operations} >= {"write", "read"}
    assert {of.operation for of in found.operations} == {"read", "write", "fsync"}


def test_assumed_numbers_without_a_range_are_named() -> None:
    found = spindle.predict("one-sata", "seeker", seconds=1)
    assert any("assumed" in limit and "segments" in limit for limit in found.limits)
    assert any(cause.key == "settle_margin" for cause in found.causes)


def test_the_verb_prints_what_the_function_returns(server: str) -> None:
    found = spindle.predict(server, "seeker", seconds=1)
    assert program("predict", server, "seeker", "--seconds=1", "--json").json == found.to_dict()
    assert program("predict", server, "seeker", "--seconds=1").out.rstrip("\n") == str(found)


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("null:1GiB", {}, "only a modelled machine"),
        ("one-sata", {"calibrate": True}, "`calibrate=`"),
        ("six-sata-f3.toml", {}, "six-sata-f2"),
        ("/no/such/device", {}, "/no/such/device"),
    ],
)
def test_a_target_without_a_prediction_is_refused(target: str, options: dict[str, bool], words: str) -> None:
    with pytest.raises(spindle.Error, match=words):
        spindle.predict(target, "seeker", **options)


def test_a_virtual_disk_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    from spindle.inspect import Inventory
    from spindle.inspect.model import Device, Drive
    from spindle.prediction import source

    disk = Device(id="vda", kind="disk", path="/dev/vda", size_bytes=1 << 30, drive=Drive(transport="virtio"))
    inventory = Inventory(origin="live", tops=["vda"], devices=[disk])
    monkeypatch.setattr(source, "inspect_stack", lambda *_: inventory)
    with pytest.raises(spindle.Error, match=r"a virtual disk is not modelled.*`calibrate=True`"):
        spindle.predict("/dev/vda", "seeker")


def test_two_sizes_give_the_service_time_and_the_rate() -> None:
    def trial(service_ns: float, rate: float) -> Trial:
        return Trial(service_ns + SMALL / rate * 1e9, service_ns + LARGE / rate * 1e9)

    trials = [trial(100_000, 1e9), trial(90_000, 2e9), trial(130_000, 4e9)]
    found = measured(trials, deep_iops=4e9 / trials[0].small_ns)
    assert found.service_ns == pytest.approx((90_000, 100_000, 130_000))
    assert found.per_byte_ns == pytest.approx((0.25, 0.5, 1.0))
    assert found.at_once == pytest.approx(4, rel=0.05)
