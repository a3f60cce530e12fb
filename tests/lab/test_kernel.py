"""The kernel's source, its configuration and its place in the cache; nothing is built here."""

from __future__ import annotations

from pathlib import Path

import pytest

from spindle.lab import cache, kernel, source
from spindle.lab.errors import LabError, LabMissing
from spindle.lab.machine import last_words
from tests.program import spindle


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/spindle/lab"


def put(version: str, hz: int, digest: str) -> cache.Kernel:
    found = cache.Kernel(version, hz, digest)
    found.folder.mkdir(parents=True)
    found.program.write_bytes(b"")
    return found


def test_without_a_kernel_one_line_says_how_to_get_it() -> None:
    with pytest.raises(LabMissing, match=r"^the lab's kernel is not built; `spindle lab build` \(or `make lab`\)"):
        kernel.current()


@pytest.mark.parametrize(
    "command",
    [
        ("lab", "exec", "one-sata", "--", "true"),
        ("run", "randomio", "one-sata", "--kernel"),
        ("durability", "one-sata", "--kernel"),
    ],
)
def test_each_verb_says_in_one_line_how_to_get_it(command: tuple[str, ...]) -> None:
    ended = spindle(*command)
    assert ended.status == 2
    assert "`spindle lab build` (or `make lab`)" in ended.complaint


def of(version: str, hz: int = 250) -> cache.Kernel:
    """A kernel of the configuration in force."""
    series = ".".join(version.split(".")[:2])
    return put(version, hz, kernel.digest(series, hz))


def test_the_newest_kernel_of_this_configuration_is_used() -> None:
    of("6.1.99")
    newest = of("6.1.192")
    of("6.1.200", hz=100)
    put("6.1.201", 250, "def")
    assert kernel.current() == newest


def test_another_series_is_used_where_it_is_named_or_alone() -> None:
    other = of("6.12.90")
    assert kernel.current() == other
    first = of("6.1.192")
    assert kernel.current() == first
    assert kernel.current(version="6.12") == kernel.current(version="6.12.90") == other


@pytest.mark.parametrize(
    "command",
    [
        ("lab", "exec", "one-sata", "--kernel", "6.9", "--", "true"),
        ("lab", "build", "--kernel", "6.9"),
        ("run", "randomio", "one-sata", "--kernel=6.9"),
    ],
)
def test_an_unknown_version_is_one_line_with_the_possible_ones(command: tuple[str, ...]) -> None:
    of("6.1.192")
    ended = spindle(*command)
    assert (ended.status, ended.complaint) == (
        2,
        "spindle: Linux 6.9: the lab's kernel is 6.1 or 6.12; name one of them",
    )


def test_a_series_that_is_not_built_is_one_line_that_builds_it() -> None:
    of("6.1.192")
    ended = spindle("lab", "exec", "one-sata", "--kernel", "6.12", "--", "true")
    assert ended.status == 2
    assert "the lab's Linux 6.12 is not built; `spindle lab build --kernel 6.12` builds it" in ended.complaint


def test_a_release_that_is_not_built_names_those_that_are() -> None:
    of("6.1.192")
    with pytest.raises(LabMissing, match=r"^the lab has no Linux 6\.1\.7, but 6\.1\.192; write `6\.1`, or build it$"):
        kernel.current(version="6.1.7")


def test_a_half_made_kernel_is_not_used(empty_cache: Path) -> None:
    of("6.1.1").program.unlink()
    with pytest.raises(LabMissing):
        kernel.current()


def test_another_hz_and_another_series_are_other_kernels() -> None:
    assert len({kernel.digest("6.1", 250), kernel.digest("6.1", 100), kernel.digest("6.12", 250)}) == 3


def test_a_folder_that_is_no_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabMissing, match="not the source of a kernel"):
        source.find(tmp_path)


def unpacked(folder: Path, version: str) -> Path:
    """The beginning of a source."""
    (folder / "arch/um").mkdir(parents=True)
    (folder / "arch/um/Kconfig").write_text("config HZ\n\tint\n\tdefault 1000\n")
    names = zip(("VERSION", "PATCHLEVEL", "SUBLEVEL"), version.split("."), strict=True)
    (folder / "Makefile").write_text("# SPDX\n" + "".join(f"{name} = {number}\n" for name, number in names))
    return folder


def test_the_version_is_read_from_the_makefile(tmp_path: Path) -> None:
    assert source.version(unpacked(tmp_path, "6.1.192")) == "6.1.192"
    (tmp_path / "Makefile").write_text("all:\n")
    with pytest.raises(LabError, match="names no version"):
        source.version(tmp_path)


def test_a_source_of_another_series_than_the_named_one_is_refused(tmp_path: Path) -> None:
    folder = unpacked(tmp_path, "6.12.90")
    assert source.find(folder).series == source.find(folder, "6.12").series == "6.12"
    with pytest.raises(LabMissing, match=r"the source of Linux 6\.12\.90, not of 6\.1$"):
        source.find(folder, "6.1")
    with pytest.raises(LabMissing, match=r"^Linux 6\.6\.1: the lab's kernel is 6\.1 or 6\.12; name one of them$"):
        source.find(unpacked(tmp_path / "other", "6.6.1"))


def test_a_kernel_that_is_there_is_not_built_again(tmp_path: Path) -> None:
    there = of("6.1.7")
    assert kernel.build(source.find(unpacked(tmp_path, "6.1.7")), 250, 1, lambda _line: None) == there


@pytest.mark.parametrize("series", source.SERIES)
def test_a_source_that_the_lab_does_not_know_is_refused(tmp_path: Path, series: str) -> None:
    folder = unpacked(tmp_path / "source", f"{series}.1")
    with pytest.raises(LabError, match=r"arch/um/Kconfig: the kernel's source is not as the lab knows it"):
        kernel.build(source.find(folder), 250, 1, lambda _line: None)
    assert not [path for path in cache.folder().rglob("*") if path.is_file()]


def test_a_kernel_that_panics_is_told_by_its_reason() -> None:
    before = "Linux version 6.1.192\n\nuserspace - ptrace set fp regs failed, errno = 14\n"
    panic = "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b\n"
    after = "CPU: 0 PID: 1 Comm: init Not tainted 6.1.192 #1\nStack:\nCall Trace:\n [<6002cf63>] ? panic+0x0/0x363\n"
    assert last_words(before + panic + after).endswith(f"errno = 14 / {panic.strip()}")
    assert last_words("one\ntwo\n\nthree\nfour\n") == "two / three / four"
    assert last_words("") == ""
