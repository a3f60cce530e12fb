"""Jobs on several devices and existing files: each is used unchanged, and guarded as if it were the only one."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from spindle.formats.fio_job import convert_text
from spindle.host.errors import TargetError
from spindle.host.several import erase_of_each, joined, split
from tests.program import spindle
from tests.workbench import Workbench

pytestmark = pytest.mark.promise(20)


@pytest.fixture
def disks(bench: Workbench) -> tuple[str, str]:
    return bench.loop(size=8 << 20), bench.loop(size=16 << 20)


JOBS = """[global]
direct=1
bs=4k
[a]
filename={0}:{1}
rw=randread
size=4m
[b]
stonewall
filename={1}
rw=write
size=2m
[c]
filename={0}
rw=read
bs=64k
"""


def counted(record: dict[str, Any], *devices: str) -> list[tuple[int, int]]:
    """Bytes read and written of each device, over all phases."""
    found = []
    for device in devices:
        deltas = [
            each["delta"] for run in record["runs"] for each in run["devices"] if f"/dev/{each['name']}" == device
        ]
        moved = [int(sum(delta[kind] for delta in deltas)) for kind in ("read_bytes", "write_bytes")]
        found.append((moved[0], moved[1]))
    return found


def of_the_kernel(device: str) -> tuple[int, int]:
    words = Path(f"/sys/block/{device.removeprefix('/dev/')}/stat").read_text().split()
    return int(words[2]) * 512, int(words[6]) * 512


def test_each_device_gets_the_same_bytes_as_from_fio(tmp_path: Path, disks: tuple[str, str]) -> None:
    (tmp_path / "j.fio").write_text(JOBS.format(*disks))
    ended = spindle("run", "j.fio", "--erase", disks[1], "--yes", "--erase-stacked", "--json", "-q", cwd=tmp_path)
    assert ended.status in (0, 1), ended.err
    record = json.loads(ended.out)
    ours = counted(record, *disks)
    assert record["runs"][0]["target"]["kind"] == "device"
    assert record["runs"][0]["target"]["size_bytes"] == 24 << 20
    assert ours == [((2 + 8) << 20, 0), (2 << 20, 2 << 20)]
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    before = [of_the_kernel(disk) for disk in disks]
    subprocess.run(["fio", "j.fio"], cwd=tmp_path, capture_output=True, check=True)
    after = [of_the_kernel(disk) for disk in disks]
    theirs = [(now[0] - then[0], now[1] - then[1]) for then, now in zip(before, after, strict=True)]
    # fio's own checks of a device are additional.
    assert [read >> 20 for read, _ in theirs] == [read >> 20 for read, _ in ours]
    assert [written for _, written in theirs] == [written for _, written in ours]


def test_a_device_is_written_only_if_erase_names_it_among_them(tmp_path: Path, disks: tuple[str, str]) -> None:
    (tmp_path / "j.fio").write_text(JOBS.format(*disks))
    before = of_the_kernel(disks[1])[1]
    for words, reported in [
        ([], f"{disks[1]}: writing destroys its data; --erase {disks[1]} agrees to that"),
        (["--erase", disks[0]], f"{disks[1]}: writing destroys its data"),
        (["--erase", f"{disks[0]}:/dev/null"], "--erase names it, but it is none of"),
    ]:
        ended = spindle("run", "j.fio", *words, "--yes", "-q", cwd=tmp_path)
        assert ended.status == 3
        assert reported in ended.err
    assert of_the_kernel(disks[1])[1] == before


def test_a_workload_runs_over_several_devices_named_with_colons(disks: tuple[str, str]) -> None:
    ended = spindle("run", "randomio", ":".join(disks), "--requests", "400", "--write-fraction", "0%", "--json", "-q")
    assert ended.status in (0, 1), ended.err
    record = json.loads(ended.out)
    counts = [each["delta"]["reads"] for each in record["devices"] if f"/dev/{each['name']}" in disks]
    assert sum(counts) >= 400
    assert all(count > 150 for count in counts)
    refused = spindle("run", "paraseq", ":".join(disks))
    assert refused.status == 2
    assert "makes its own files" in refused.err


def test_existing_files_are_read_and_never_written(tmp_path: Path) -> None:
    for name in ("a", "b:c"):
        (tmp_path / name).write_bytes(bytes(1 << 20))
    (tmp_path / "read.fio").write_text("[x]\nfilename=a:b\\:c\nrw=read\nbs=64k\n")
    record = json.loads(spindle("run", "read.fio", "--log", "l.csv", "--json", "-q", cwd=tmp_path).out)
    assert record["target"]["detail"]["sets"][0]["paths"] == ["a", "b:c"]
    assert record["figures"]["streams"][0]["read"]["bytes"] == 2 << 20
    (tmp_path / "write.fio").write_text("[x]\nfilename=a:b\\:c\nrw=write\nbs=64k\n")
    refused = spindle("run", "write.fio", cwd=tmp_path)
    assert refused.status == 3
    assert "is not a file that Spindle made" in refused.err
    assert (tmp_path / "a").read_bytes() == bytes(1 << 20)


def test_one_target_named_twice_and_jobs_with_other_files_are_refused(tmp_path: Path, disks: tuple[str, str]) -> None:
    (tmp_path / "again").symlink_to(disks[0])
    with pytest.raises(TargetError, match="is the same as"):
        erase_of_each([disks[0], str(tmp_path / "again")], None)
    refused = convert_text(f"[a]\nfilename={disks[0]}:{disks[1]}\n[b]\nsize=1m\n", "j")
    assert [finding.option for finding in refused.findings if finding.is_error] == ["filename"]


def test_names_with_colons_come_back_from_a_list() -> None:
    assert split(joined(["/dev/a", "/dev/disk/pci-0:1"])) == ["/dev/a", "/dev/disk/pci-0:1"]


def test_the_first_of_several_directories_is_used_unless_clones_need_the_others(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    job = f"[a]\ndirectory={tmp_path}/one:{tmp_path}/two\nsize=64k\nrw=write\n"
    assert convert_text(job, "j").target == f"{tmp_path}/one"
    assert not convert_text(job + "filename=x\nnumjobs=3\n", "j").refused
    errors = [finding.option for finding in convert_text(f"{job}numjobs=2\n", "j").findings if finding.is_error]
    assert errors == ["directory"]
