"""A served drive as a file."""

from __future__ import annotations

import mmap
import os
import random
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.program import ended, spindle
from tests.serve.served import QUICK, SIZE, Serve
from tests.workbench import DETACH_LOOP, Workbench


def test_the_file_has_what_was_written_and_no_other_size(serve: Serve, folder: Path) -> None:
    server = serve(*QUICK, "--file", folder)
    disk = folder / "disk"
    assert os.listdir(folder) == ["disk"]
    assert disk.stat().st_size == SIZE
    data = random.Random(1).randbytes(100_000)
    with disk.open("r+b", buffering=0) as file:
        file.seek(1000)
        assert file.write(data) == len(data)
        os.fsync(file)
        file.seek(0)
        assert file.read(1000 + len(data)) == bytes(1000) + data
        with pytest.raises(PermissionError):
            file.truncate(0)
        with pytest.raises(OSError, match="No space"):
            os.pwrite(file.fileno(), bytes(2), SIZE - 1)
        assert os.pread(file.fileno(), 4096, SIZE - 100) == bytes(100)
    with pytest.raises(OSError, match="other"):
        (folder / "other").touch()
    figures = server.figures()
    assert figures["counts"]["written_bytes"] == len(data)
    assert figures["counts"]["flushes"] == 1
    assert os.listdir(folder) == []


def test_holes_read_as_zeros(serve: Serve, folder: Path) -> None:
    server = serve(*QUICK, "--file", folder)
    with (folder / "disk").open("r+b", buffering=0) as file:
        file.write(b"x" * 16384)
        for option, offset in (("--punch-hole", 4096), ("--zero-range", 8192)):
            command = ["fallocate", option, "--keep-size", "--offset", str(offset), "--length", "4096"]
            subprocess.check_call([*command, folder / "disk"])
        assert os.pread(file.fileno(), 16384, 0) == b"x" * 4096 + bytes(8192) + b"x" * 4096
    counts = server.figures()["counts"]
    assert (counts["discards"], counts["write_zeroes"]) == (1, 1)


def test_direct_requests_of_many_threads_keep_their_data(serve: Serve, folder: Path) -> None:
    serve(*QUICK, "--file", folder)
    fd = os.open(folder / "disk", os.O_RDWR | os.O_DIRECT)
    wrong = []

    def use(number: int) -> None:
        buffer = mmap.mmap(-1, 4096)
        for place in range(number, 800, 8):
            buffer[:] = bytes([place % 251]) * 4096
            os.pwritev(fd, [buffer], place * 4096)
            buffer[:] = bytes(4096)
            os.preadv(fd, [buffer], place * 4096)
            if buffer[:] != bytes([place % 251]) * 4096:
                wrong.append(place)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(fd)
    assert wrong == []


def test_a_file_system_on_a_loop_device_on_it(serve: Serve, folder: Path, bench: Workbench) -> None:
    server = serve("service", "--size", "32MiB", "--key=service=20us", "--key=queue_depth=32", "--file", folder)
    device = bench.loop(folder / "disk", "--direct-io=on")
    assert Path(f"/sys/block/{Path(device).name}/loop/dio").read_text().strip() == "1"
    bench.run("mkfs.ext4", "-q", device)
    point = bench.mount(device)
    data = random.Random(4).randbytes(4 << 20)
    (point / "file").write_bytes(data)
    bench.run("umount", point)
    bench.run("mount", device, point)
    assert (point / "file").read_bytes() == data
    bench.run("umount", point)
    bench.run(*DETACH_LOOP, device)
    counts = server.figures()["counts"]
    assert counts["written_bytes"] >= len(data) <= counts["read_bytes"]
    assert counts["flushes"] > 0


def test_the_contents_stay_in_a_file(serve: Serve, folder: Path, tmp_path: Path) -> None:
    contents = tmp_path / "contents"
    first = serve(*QUICK, "--file", folder, "--contents", contents)
    with (folder / "disk").open("r+b", buffering=0) as file:
        os.pwrite(file.fileno(), b"kept", 1 << 20)
    second = spindle("drive", "serve", *QUICK, "--nbd", tmp_path / "s", "--contents", contents)
    assert second.status == 3
    assert "another server" in second.complaint
    assert first.figures()["memory_bytes"] == 0
    assert contents.stat().st_size == SIZE
    assert contents.stat().st_blocks < 1000
    again = serve(*QUICK, "--file", folder, "--contents", contents)
    with (folder / "disk").open("rb", buffering=0) as file:
        assert os.pread(file.fileno(), 4, 1 << 20) == b"kept"
    again.end()


def test_an_unmount_ends_the_server(serve: Serve, folder: Path) -> None:
    server = serve(*QUICK, "--file", folder)
    subprocess.check_call(["umount", folder])
    assert ended(server.process, timeout=None).status == 0


def test_a_dead_mount_is_recognised(serve: Serve, folder: Path) -> None:
    server = serve(*QUICK, "--file", folder)
    server.end(signal.SIGKILL)
    left = spindle("drive", "serve", *QUICK, "--file", folder)
    assert left.status == 3
    assert f"`umount {folder}`" in left.complaint
    subprocess.check_call(["umount", folder])
    assert serve(*QUICK, "--file", folder).end(signal.SIGINT).status == 0


def test_a_folder_in_use_is_refused(serve: Serve, folder: Path, tmp_path: Path) -> None:
    serve(*QUICK, "--file", folder)
    assert "another server" in spindle("drive", "serve", *QUICK, "--file", folder).complaint
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert "not empty" in spindle("drive", "serve", *QUICK, "--file", tmp_path / "full").complaint


def test_a_file_of_contents_that_is_another_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("mine")
    left = spindle("drive", "serve", *QUICK, "--nbd", tmp_path / "s", "--contents", path)
    assert (left.status, path.read_text()) == (3, "mine")
    path.unlink()
    path.symlink_to("/dev/null")
    assert spindle("drive", "serve", *QUICK, "--nbd", tmp_path / "s", "--contents", path).status == 3
