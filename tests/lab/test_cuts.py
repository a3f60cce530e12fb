"""Power cuts in the lab. They need its kernel and spindle-agent (`make lab`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.program import Ended, inside, spindle, started, wait_until


@pytest.fixture
def machine(four: Path, agent: None) -> Path:
    """Three drives as RAID5 with XFS."""
    text = four.read_text().replace("count = 4", "count = 3")
    four.write_text(f"{text}[filesystem]\ntype = 'xfs'\n")
    return four


def cut(machine: Path, *options: str) -> Ended:
    return spindle("durability", str(machine), "--kernel", *options)


def test_xfs_on_raid5_keeps_what_was_synced(machine: Path) -> None:
    ended = cut(machine, "--cuts", "3", "--json")
    assert ended.status == 0, ended.err
    found = json.loads(ended.out)["cuts"]
    assert [each["findings"]["verdict"] for each in found] == ["kept"] * 3
    assert all(sum(each["findings"]["journal"]["acknowledged"]) > 10 for each in found)
    assert all(each["findings"]["journal"]["end"] is None for each in found)


def test_drives_that_ignore_flushes_are_caught(machine: Path) -> None:
    lies = [word for drive in ("vda", "vdb", "vdc") for word in ("--lying", drive)]
    machine.write_text(machine.read_text().split("[filesystem]")[0])
    ended = cut(machine, "--cuts", "3", "--sync", "fdatasync", "--pattern", "random", *lies)
    assert ended.status == 1
    assert "lost 3" in ended.err


def test_equal_seeds_give_equal_cuts(machine: Path) -> None:
    first, again, other = (cut(machine, "--cuts", "1", "--seed", seed).out for seed in ("5", "5", "6"))
    assert first == again != other


def test_a_killed_series_leaves_no_process_and_no_file(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = machine.parent / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    process = started("durability", str(machine), "--kernel", "--cuts", "50", cwd=machine.parent)
    try:
        # The folder of the drives, and that of a boot.
        wait_until(lambda: len(list(folder.iterdir())) > 1 and bool(inside(folder)))
    finally:
        process.kill()
        process.communicate()
    wait_until(lambda: not inside(folder) and not list(folder.iterdir()))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--kernel", "--journal", "j"), "--journal: not with --kernel"),
        (("--kernel", "--create", "1MiB"), "--create: not with --kernel"),
        (("--kernel", "--size", "1MiB", "--block", "1MiB"), "more than the target's"),
        (("--cuts", "3", "--journal", "j"), "use them with --kernel"),
        ((), "--journal is missing"),
    ],
)
def test_options_that_do_not_fit_are_one_line(machine: Path, options: tuple[str, ...], said: str) -> None:
    assert said in spindle("durability", str(machine), *options).complaint
