"""The simulator accepts the machine file of an inspection, with the settings that were found."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from spindle import _core
from tests.inspect.trees import load
from tests.program import Ended

Invoke = Callable[..., Ended]


def written(invoke: Invoke, tmp_path: Path, name: str, target: str) -> str:
    root = load(name).lay_out(tmp_path / "tree")
    file = tmp_path / "machine.toml"
    status, out, err = invoke("inspect", "--root", str(root), "--machine", str(file), target)
    assert (status, err) == (0, "")
    assert out
    return file.read_text()


def test_fourteen_drives_with_near_copies(invoke: Invoke, tmp_path: Path) -> None:
    text = written(invoke, tmp_path, "md-raid10-n2-xfs", "/data")
    found = tomllib.loads(text)
    assert found["host"]["kernel"] == "6.1.0"
    start = 262144 * 512
    array = {"level": "raid10", "layout": "n2", "chunk": "524288 B", "data_offset": f"{start} B"}
    assert found["array"] == array | {"bitmap": "internal", "bitmap_chunk": "67108864 B"}
    assert found["queue"]["scheduler"] == "mq-deadline"
    assert found["queue"]["nr_requests"] == 256
    assert found["queue"]["max_request"] == "1280 KiB"
    assert found["queue"]["iosched"]["write_expire"] == "5000ms"
    assert found["drive"] == [
        {
            "model": "ST3600057SS",
            "count": 14,
            "queue_depth": 254,
            "write_cache": False,
            "region": f"0 B-{start + 585930240 * 1024} B",
        }
    ]
    _core.Machine.parse(text, "machine.toml")


def test_far_copies(invoke: Invoke, tmp_path: Path) -> None:
    assert tomllib.loads(written(invoke, tmp_path, "md-raid10-f2-xfs", "/data"))["array"]["layout"] == "f2"


def test_an_nvme_partition(invoke: Invoke, tmp_path: Path) -> None:
    found = tomllib.loads(written(invoke, tmp_path, "nvme-ext4", "/"))
    assert found["queue"]["scheduler"] == "none"
    assert [drive["model"] for drive in found["drive"]] == ["970-PRO-1TB"]
    assert found["drive"][0]["region"].startswith(f"{1050624 * 512} B-")
    assert "array" not in found


def test_a_rebuild_and_its_limits(invoke: Invoke, tmp_path: Path) -> None:
    layout = load("raid6-degraded-resync")
    for path in [path for path in layout.files if path.endswith("/model")]:
        layout.files[path] = b"ST3600057SS\n"
    root = layout.lay_out(tmp_path / "tree")
    file = tmp_path / "machine.toml"
    status, _, err = invoke("inspect", "--root", str(root), "--machine", str(file), "/backup")
    assert (status, err) == (0, "")
    array = tomllib.loads(file.read_text())["array"]
    assert array["rebuild"] == 5
    assert (array["sync_speed_min"], array["sync_speed_max"]) == ("1000 KiB/s", "200000 KiB/s")
    assert array["stripe_cache_size"] == 8192


@pytest.mark.parametrize(
    ("name", "target", "complaint"),
    [
        ("raid6-degraded-resync", "/backup", "the catalogue has no drive"),
        ("raid-3ware", "/data", "RAID controller"),
        ("dm-multipath", "/san", "multipath"),
        ("bcache", "/home", "bcache"),
        ("lvm-on-md", "/var/lib/my sql", "not modelled"),
    ],
)
def test_a_stack_that_cannot_be_modelled_is_refused_and_nothing_is_saved(
    invoke: Invoke, tmp_path: Path, name: str, target: str, complaint: str
) -> None:
    root = load(name).lay_out(tmp_path / "tree")
    file = tmp_path / "machine.toml"
    status, out, err = invoke("inspect", "--root", str(root), "--machine", str(file), target)
    assert (status, out) == (1, "")
    assert complaint in err
    assert err.count("\n") == 1
    assert not file.exists()


def test_a_machine_is_one_stack(invoke: Invoke, tmp_path: Path) -> None:
    root = load("lvm-on-md").lay_out(tmp_path / "tree")
    status, _, err = invoke("inspect", "--root", str(root), "--machine", str(tmp_path / "m.toml"))
    assert status == 2
    assert "name a mount point or a device" in err
