"""The archives that the lab's kernel unpacks, and the programs that go into them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from spindle.lab import initramfs, programs
from spindle.lab.cpio import Archive
from spindle.lab.errors import LabMissing


def unpacked(data: bytes, folder: Path) -> Path:
    """Unpack with busybox, another implementation of the format."""
    busybox = programs.find("busybox")
    if busybox is None:
        pytest.skip("busybox is not installed")
    subprocess.run([busybox, "cpio", "-idm"], input=data, cwd=folder, check=True, capture_output=True)
    return folder


def test_an_archive_is_read_by_another_program(tmp_path: Path) -> None:
    archive = Archive()
    archive.file("usr/bin/tool", b"#!/bin/sh\n")
    archive.file("etc/odd", b"12345", 0o600)
    archive.link("bin", "usr/bin")
    folder = unpacked(archive.to_bytes(), tmp_path)
    assert (folder / "bin/tool").read_bytes() == b"#!/bin/sh\n"
    assert (folder / "etc/odd").read_bytes() == b"12345"
    assert (folder / "etc/odd").stat().st_mode & 0o777 == 0o600
    assert (folder / "usr/bin/tool").stat().st_mode & 0o777 == 0o755


def test_the_first_of_a_name_stays_and_folders_are_added_once() -> None:
    archive = Archive()
    archive.file("a/b", b"1")
    archive.file("a/b", b"2")
    archive.folder("a")
    data = archive.to_bytes()
    assert data.count(b"a/b\0") == 1
    assert data.count(b"a\0") == 1


def test_a_second_archive_may_follow() -> None:
    archive = Archive()
    archive.file("name", b"x")
    assert len(archive.to_bytes()) % 4 == 0
    assert len(Archive().to_bytes()) % 4 == 0


def test_equal_contents_are_equal_bytes() -> None:
    def made() -> bytes:
        archive = Archive()
        initramfs.add_program(archive, "ls")
        return archive.to_bytes()

    assert made() == made()


def test_a_program_comes_with_its_libraries(tmp_path: Path) -> None:
    data = initramfs.for_command(["ls"], ["ls"])
    folder = unpacked(data, tmp_path)
    assert list(folder.rglob("libc.so.6"))
    assert (folder / "usr/local/bin/ls").exists()
    assert (folder / "lab/command").read_text() == "exec ls\n"


def test_a_command_is_quoted_for_the_shell() -> None:
    data = initramfs.for_command(["sh", "-c", "echo 'a b' $HOME"])
    assert b"exec sh -c 'echo '\"'\"'a b'\"'\"' $HOME'\n" in data


def test_missing_programs_are_named_with_the_command_that_installs_them() -> None:
    with pytest.raises(LabMissing, match=r"`apt-get install alpha beta` installs them"):
        programs.require({"no-such-a": "beta", "no-such-b": "alpha", "sh": "dash"})
    with pytest.raises(LabMissing, match="no-such-program: no such program, neither here nor in the lab"):
        initramfs.for_command(["no-such-program"])


def test_a_script_has_no_libraries(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert programs.libraries(script) == []
