"""The kernel's source, its configuration and its place in the cache; nothing is built here."""

from __future__ import annotations

from pathlib import Path

import pytest

from spindle.lab import cache, kernel, source
from spindle.lab.errors import LabError, LabMissing
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


def test_the_newest_kernel_of_this_configuration_is_used() -> None:
    put("6.1.99", 250, "abc")
    newest = put("6.1.192", 250, "abc")
    put("6.1.200", 100, "abc")
    put("6.1.201", 250, "def")
    assert cache.built(250, "abc") == newest


def test_a_half_made_kernel_is_not_used(empty_cache: Path) -> None:
    (empty_cache / "kernels/6.1.1-hz250-abc").mkdir(parents=True)
    with pytest.raises(LabMissing):
        cache.built(250, "abc")


def test_another_hz_is_another_kernel() -> None:
    assert kernel.digest(250) != kernel.digest(100)


def test_a_folder_that_is_no_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabMissing, match="not the source of a kernel"):
        source.find(tmp_path)


def test_the_version_is_read_from_the_makefile(tmp_path: Path) -> None:
    makefile = tmp_path / "Makefile"
    makefile.write_text("# SPDX\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 192\nEXTRAVERSION =\n")
    assert source.version(tmp_path) == "6.1.192"
    makefile.write_text("all:\n")
    with pytest.raises(LabError, match="names no version"):
        source.version(tmp_path)


def test_a_kernel_that_is_there_is_not_built_again(tmp_path: Path) -> None:
    (tmp_path / "arch/um").mkdir(parents=True)
    (tmp_path / "arch/um/Kconfig").write_text("not a source that could be built\n")
    (tmp_path / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 7\n")
    there = put("6.1.7", 250, kernel.digest(250))
    assert kernel.build(tmp_path, 250, 1, lambda _line: None) == there


def test_a_source_that_the_lab_does_not_know_is_refused(tmp_path: Path) -> None:
    (tmp_path / "arch/um").mkdir(parents=True)
    (tmp_path / "arch/um/Kconfig").write_text("config HZ\n\tint\n\tdefault 1000\n")
    with pytest.raises(LabError, match=r"arch/um/Kconfig: the kernel's source is not as the lab knows it"):
        kernel._configure(tmp_path, 250)
