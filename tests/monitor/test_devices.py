"""Which devices are watched, and devices that come, go and are exchanged."""

from __future__ import annotations

import os
from typing import Any

import pytest

from spindle.monitor import Selection, UnknownDevice, between
from tests.workbench import Workbench

USED = "100 0 800 50 0 0 0 0 0 40 50 0 0 0 0 0 0"
UNUSED = "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
MORE = "150 0 1200 90 0 0 0 0 0 60 90 0 0 0 0 0 0"


def test_by_default_every_whole_disk_with_a_size_that_ever_did_io(tree: Any) -> None:
    tree.disk("sda", "8:0")
    tree.disk("sda1", "8:1", parent="sda")
    tree.disk("sdb", "8:16")
    tree.disk("loop0", "7:0", size=0)
    tree.disk("cciss!c0d0", "104:0")
    tree.stats(
        f"8 0 sda {USED}", f"8 1 sda1 {USED}", f"8 16 sdb {UNUSED}", f"7 0 loop0 {USED}", f"104 0 cciss/c0d0 {USED}"
    )
    assert list(tree.sampler().take().disks) == ["sda", "cciss/c0d0"]


def test_a_device_that_is_named_is_shown_though_it_never_did_io_and_in_the_order_given(tree: Any) -> None:
    for name, number in (("sda", "8:0"), ("sdb", "8:16")):
        tree.disk(name, number)
    tree.disk("sda1", "8:1", parent="sda")
    tree.stats(f"8 0 sda {USED}", f"8 1 sda1 {USED}", f"8 16 sdb {UNUSED}")
    assert list(tree.sampler("sdb", "sda1", "sdb").take().disks) == ["sdb", "sda1"]


def test_a_device_that_comes_is_told_and_counted_from_then_on(tree: Any) -> None:
    tree.disk("sda", "8:0", diskseq=1)
    tree.disk("sdb", "8:16", diskseq=2)
    sampler = tree.sampler()
    tree.stats(f"8 0 sda {USED}")
    first = sampler.take()
    tree.stats(f"8 0 sda {USED}", f"8 16 sdb {USED}")
    second = sampler.take()
    interval = between(first, second)
    assert (interval.appeared, interval.gone, list(interval.disks)) == (["sdb"], [], ["sda"])
    tree.stats(f"8 0 sda {USED}", f"8 16 sdb {MORE}")
    interval = between(second, sampler.take())
    assert interval.disks["sdb"].delta is not None
    assert interval.disks["sdb"].delta.reads == 50


def test_a_device_that_goes_is_told_and_the_others_go_on(tree: Any) -> None:
    tree.disk("sda", "8:0")
    tree.disk("sdb", "8:16")
    sampler = tree.sampler("sda", "sdb")
    tree.stats(f"8 0 sda {USED}", f"8 16 sdb {USED}")
    first = sampler.take()
    tree.unplug("sdb")
    tree.stats(f"8 0 sda {MORE}")
    interval = between(first, sampler.take())
    assert (interval.gone, list(interval.disks)) == (["sdb"], ["sda"])


def test_another_disk_under_the_same_name_is_not_taken_for_the_old_one(tree: Any) -> None:
    tree.disk("sdb", "8:16", diskseq=7)
    sampler = tree.sampler("sdb")
    tree.stats(f"8 16 sdb {USED}")
    first = sampler.take()
    tree.diskseq("sdb", 8)
    tree.stats(f"8 16 sdb {MORE}")  # its counters are higher than the old one's: only its number differs
    interval = between(first, sampler.take())
    assert (interval.appeared, interval.disks) == (["sdb"], {})


def test_without_disk_numbers_another_disk_shows_by_counters_that_fell(tree: Any) -> None:
    tree.disk("sdb", "8:16")
    interval = tree.interval([f"8 16 sdb {MORE}"], [f"8 16 sdb {USED}"], "sdb")
    assert interval.disks["sdb"].delta is None
    assert set(interval.disks["sdb"].columns().values()) == {None}


def test_a_partition_is_as_new_as_its_disk(tree: Any) -> None:
    tree.disk("sda", "8:0", diskseq=3)
    tree.disk("sda1", "8:1", parent="sda")
    sampler = tree.sampler("sda1")
    tree.stats(f"8 1 sda1 {USED}")
    first = sampler.take()
    assert first.disks["sda1"].diskseq == 3
    tree.diskseq("sda", 4)
    assert between(first, sampler.take()).appeared == ["sda1"]


@pytest.mark.parametrize("name", ["nosuch", "", "..", ".", "/dev/nosuch", "/dev/null", "a\nb", "/proc", "x" * 5000])
def test_a_name_without_a_block_device_is_one_line_and_exit_status_2(tree: Any, name: str) -> None:
    with pytest.raises(UnknownDevice) as error:
        Selection([name], tree.machine)
    assert error.value.exit_code == 2
    assert "\n" not in str(error.value)


def test_a_misspelt_name_gets_the_right_one_suggested(tree: Any) -> None:
    tree.disk("nvme0n1", "259:0")
    with pytest.raises(UnknownDevice, match="did you mean nvme0n1"):
        Selection(["nvme0n"], tree.machine)


# --- of this machine ------------------------------------------------------------------------------------------------


def test_a_device_is_found_by_node_link_and_file_system(bench: Workbench, tmp_path: Any) -> None:
    device = bench.loop()
    name = os.path.basename(device)
    link = tmp_path / "by-id"
    link.symlink_to(device)
    bench.run("mkfs.ext4", "-q", device)
    mount = bench.mount(device)
    for given in (name, device, str(link), str(mount), str(mount / "lost+found")):
        assert list(Selection([given]).pick({})) == [name], given
    assert Selection([str(link)]).aliases == {name: str(link)}
    assert list(Selection([name, device, str(link)]).pick({})) == [name]


def test_a_link_that_changes_to_another_device_is_followed(bench: Workbench, tmp_path: Any) -> None:
    devices = [bench.loop(), bench.loop()]
    link = tmp_path / "link"
    link.symlink_to(devices[0])
    selection = Selection([str(link)])
    assert list(selection.pick({})) == [os.path.basename(devices[0])]
    link.unlink()
    link.symlink_to(devices[1])
    assert list(selection.pick({})) == [os.path.basename(devices[1])]
