"""Attempts to get past the guard: links and files replaced, several names, at the worst moments."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spindle.host.errors import Refusal, TargetError
from spindle.host.guard import StreamAccess, open_target
from spindle.host.testfile import TestFile
from tests.workbench import Workbench

MIB = 1 << 20
WRITE = [StreamAccess(write=True, direct=False)]
READ = [StreamAccess(direct=False)]


def point(link: Path, goal: str | Path) -> None:
    """Replace a link in one step, as an attacker would."""
    fresh = link.with_name(f"{link.name}.{threading.get_ident()}")
    fresh.symlink_to(goal)
    fresh.rename(link)


@contextmanager
def flipping(link: Path, goals: list[str | Path]) -> Iterator[None]:
    """Point a link to one goal after the other, as fast as possible."""
    stop = threading.Event()

    def flip() -> None:
        while not stop.is_set():
            for goal in goals:
                point(link, goal)

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_link_replaced_after_the_check_leads_nowhere_else(
    bench: Workbench, tmp_path: Path, content: Callable[[str | Path], str]
) -> None:
    free, precious = bench.loop(), bench.loop()
    bench.run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0", precious)
    before = content(precious)
    link = tmp_path / "link"
    link.symlink_to(free)

    def exchange(_: str) -> bool:
        point(link, precious)
        return True

    with open_target(link, WRITE, erase=str(link), confirm=exchange) as target:
        assert link.resolve() == Path(precious)
        assert os.fstat(target.files[0].fd).st_rdev == os.stat(free).st_rdev
        os.pwrite(target.files[0].fd, b"\xaa" * MIB, 0)
    assert content(precious) == before


def test_a_link_replaced_all_the_time_never_opens_an_unnamed_target(
    bench: Workbench, tmp_path: Path, content: Callable[[str | Path], str]
) -> None:
    free, mounted = bench.loop(), bench.loop()
    bench.run("mkfs.ext4", "-q", mounted)
    bench.mount(mounted, "-o", "ro")  # a journal is written now and then even when nobody uses the file system
    before = content(mounted)
    link = tmp_path / "link"
    link.symlink_to(free)
    opened = refused = 0
    with flipping(link, [free, mounted]):
        while opened + refused < 40:
            for erase in (str(link), free):
                try:
                    with open_target(link, WRITE, erase=erase) as target:
                        opened += 1
                        assert os.fstat(target.files[0].fd).st_rdev == os.stat(free).st_rdev
                        os.pwrite(target.files[0].fd, b"\xaa" * 4096, 0)
                except Refusal:
                    refused += 1
    assert content(mounted) == before
    assert refused > 0


def test_a_link_that_flips_between_a_device_and_a_file_never_opens_the_file(bench: Workbench, tmp_path: Path) -> None:
    free = bench.loop()
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine" * 1024)
    link = tmp_path / "link"
    link.symlink_to(free)
    with flipping(link, [free, victim]):
        for _ in range(40):
            try:
                with open_target(link, WRITE, erase=free) as target:
                    os.pwrite(target.files[0].fd, b"\xaa" * 4096, 0)
            except Refusal:
                pass
    assert victim.read_bytes() == b"mine" * 1024


def test_the_file_behind_a_loop_device_is_not_a_target_for_writing(bench: Workbench, tmp_path: Path) -> None:
    image = bench.image()
    device = bench.loop(image)
    bench.run("mkfs.ext4", "-q", device)
    with pytest.raises(Refusal, match=f"is the file behind {device};"):
        open_target(image, WRITE)
    bench.mount(device)
    for name in (image, tmp_path / "link", tmp_path / "hard"):
        if name.name == "link":
            name.symlink_to(image)
        elif name.name == "hard":
            name.hardlink_to(image)
        with pytest.raises(Refusal, match="which is mounted on"):
            open_target(name, WRITE, erase=str(name), erase_signature="ext4", erase_stacked=True)
        with pytest.raises(Refusal, match="already exists"):
            TestFile.create(name, MIB)


@pytest.mark.parametrize("consent", [{}, {"erase": "self"}, {"erase": "self", "erase_signature": "ext4"}])
def test_a_file_of_the_user_is_not_a_target_for_writing(tmp_path: Path, consent: dict[str, str]) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    hard, soft = tmp_path / "hard", tmp_path / "soft"
    hard.hardlink_to(victim)
    soft.symlink_to(victim)
    for name in (victim, hard, soft, tmp_path / "x" / ".." / "victim"):
        (tmp_path / "x").mkdir(exist_ok=True)
        given = {key: str(name) if value == "self" else value for key, value in consent.items()}
        with pytest.raises(Refusal, match="is not a file that Spindle made"):
            open_target(name, WRITE, **given)  # type: ignore[arg-type]
    assert victim.read_bytes() == b"mine"


def test_not_even_a_test_file_of_another_run_is_written_by_its_name(tmp_path: Path) -> None:
    with (
        TestFile.create(tmp_path / "t.bin", MIB) as file,
        pytest.raises(Refusal, match="is not a file that Spindle made"),
    ):
        open_target(file.path, WRITE)


def test_a_file_that_takes_the_name_of_a_test_file_is_not_written(tmp_path: Path) -> None:
    with TestFile.create(tmp_path / "t.bin", MIB) as file:
        file.path.rename(tmp_path / "moved")
        file.path.write_bytes(b"mine" * 1024)
        with open_target(file, WRITE) as target:
            os.pwrite(target.files[0].fd, b"\xaa" * 4096, 0)
        assert file.path.read_bytes() == b"mine" * 1024
        assert "left alone" in (file.remove() or "")
    assert file.path.read_bytes() == b"mine" * 1024


def test_a_removed_test_file_is_not_a_target_any_more(tmp_path: Path) -> None:
    file = TestFile.create(tmp_path / "t.bin", MIB)
    file.remove()
    with pytest.raises(TargetError, match="already removed"):
        open_target(file, WRITE)


def test_a_target_that_may_only_be_read_is_opened_for_reading_only(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine" * 1024)
    with open_target(victim, READ) as target:
        assert target.size_bytes == 4096
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.write(target.files[0].fd, b"x")
        # nor by way of the descriptor's own link without asking the guard
        assert os.fstat(target.files[0].fd).st_ino == victim.stat().st_ino


def test_nothing_stays_open_after_a_refusal_or_a_close(bench: Workbench, tmp_path: Path) -> None:
    free = bench.loop()
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(Refusal):
            open_target(free, WRITE)
        with pytest.raises(Refusal):
            open_target(free, WRITE, erase=free, confirm=lambda _: False)
        with open_target(free, WRITE * 4, erase=free):
            pass
        with pytest.raises(TargetError):
            open_target(tmp_path / "none", READ)
    assert set(os.listdir("/proc/self/fd")) == before


def test_descriptors_are_not_inherited_by_other_programs(bench: Workbench) -> None:
    free = bench.loop()
    with open_target(free, WRITE, erase=free) as target:
        assert not os.get_inheritable(target.files[0].fd)
