"""`spindle array layout`: the picture, the figures, the commands, and what it refuses."""

from __future__ import annotations

import json

import pytest

from tests.program import Invoke


def picture(text: str) -> list[str]:
    """Rows of the drawing, without their offsets."""
    lines = text.split("\n\n")[1].splitlines()[1:]
    start = text.split("\n\n")[1].splitlines()[0].index("D1")
    return [" ".join(line[start:].split()) for line in lines]


@pytest.mark.parametrize(
    ("layout", "rows"),
    [
        ("n2", ["A1 A1 A2 A2 A3 A3", "A4 A4 A5 A5 A6 A6"]),
        ("o2", ["A1 A2 A3 A4 A5 A6", "A6 A1 A2 A3 A4 A5", "A7 A8 A9 A10 A11 A12", "A12 A7 A8 A9 A10 A11"]),
    ],
)
def test_raid10_over_six_drives_is_drawn_as_administrators_draw_it(
    invoke: Invoke, layout: str, rows: list[str]
) -> None:
    said = invoke("array", "layout", "--level", "raid10", "--layout", layout, "--drives", "6", "--chunk", "64KiB")
    assert said.status == 0
    assert picture(said.out)[: len(rows)] == rows


def test_a_far_layout_shows_both_halves_the_second_turned_by_one_drive(invoke: Invoke) -> None:
    said = invoke("array", "layout", "--level", "raid10", "--layout", "f2", "--drives", "6", "--chunk", "64KiB")
    rows = [row for row in picture(said.out) if "..." not in row]
    assert rows[0] == "A1 A2 A3 A4 A5 A6"
    assert rows[3] == "A6 A1 A2 A3 A4 A5"
    assert "any 1 drive may fail; at best 3" in said.out
    assert "mdadm --create /dev/md0 --level=10 --layout=f2 --chunk=64K --raid-devices=6 /dev/sd[b-g]" in said.out
    assert "mkfs.xfs -d su=64k,sw=6 /dev/md0" in said.out
    assert "mkfs.ext4 -E stride=16,stripe-width=96 /dev/md0" in said.out


def test_raid5_shows_where_parity_goes_and_what_a_small_write_costs(invoke: Invoke) -> None:
    said = invoke("array", "layout", "--level", "raid5", "--drives", "4", "--chunk", "64KiB", "--drive-size", "500GB")
    assert picture(said.out)[:4] == ["A1 A2 A3 P", "A5 A6 P A4", "A9 P A7 A8", "P A10 A11 A12"]
    assert "4 requests to drives (2 reads + 2 writes)" in said.out
    assert "75.0 %" in said.out


def test_raid6_before_and_after_linux_4_1_pay_differently_for_a_small_write(invoke: Invoke) -> None:
    said = invoke("array", "layout", "--level", "raid6", "--drives", "8")
    assert "Linux 2.6.32: 8 requests to drives (5 reads + 3 writes)" in said.out
    assert "Linux 6.1: 6 requests to drives (3 reads + 3 writes)" in said.out


def test_unequal_drives_of_a_raid0_make_zones(invoke: Invoke) -> None:
    sizes = "32MiB,48MiB,64MiB"
    said = invoke("array", "layout", "--level", "raid0", "--chunk", "64KiB", "--drive-size", sizes, "--rows", "1")
    assert [row for row in picture(said.out) if "..." not in row] == ["A1 A2 A3", "- A1537 A1538", "- - A2049"]
    assert "150994944 bytes" in said.out


def test_groups_of_raid50_are_set_apart_and_made_one_by_one(invoke: Invoke) -> None:
    said = invoke("array", "layout", "--level", "raid50", "--drives", "6", "--groups", "2", "--chunk", "64KiB")
    assert picture(said.out)[0] == "A1 A2 P | A3 A4 P"
    assert said.out.count("mdadm --create") == 3
    assert "any 1 drive may fail; at best 2" in said.out


def test_a_layout_that_mdadm_cannot_make_is_drawn_and_said_to_be_one(invoke: Invoke) -> None:
    said = invoke("array", "layout", "--level", "raid10", "--layout", "n2f2", "--drives", "4")
    assert "mdadm --create" not in said.out
    assert "echo 514 > /sys/block/md0/md/layout" in said.out


def test_json_has_the_same_figures(invoke: Invoke) -> None:
    arguments = ["array", "layout", "--level", "raid10", "--layout", "f2", "--drives", "6", "--chunk", "64KiB"]
    found = json.loads(invoke(*arguments, "--json").out)
    assert found["config"]["chunk"] == 65536
    assert found["md_layout"] == 0x201
    assert found["tolerance"] == {"guaranteed": 1, "best_case": 3}
    assert str(found["capacity"]) in invoke(*arguments).out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--level raid6 --drives 3", "raid6 needs at least 4"),
        ("--level raid5 --drives 4 --chunk 12KiB", "a power of two of at least 4 KiB"),
        ("--level raid9 --drives 3", "one of linear, raid0"),
        ("--level raid10 --drives 4 --layout x2", "n2 (near), f2 (far), o2 (offset)"),
        ("--level raid10 --drives 2 --layout n3", "at least 3 drives"),
        ("--level raid10 --drives 5 --layout n2o2", "use a multiple of 2 drives"),
        ("--level raid0", "give --drives N"),
        ("--drives 3", "--level"),
        ("--level raid5 --drives 3 --drive-size 1GB,2GB", "2 drive sizes"),
        ("--level raid5 --drives 3 --drive-size 4KiB", "too small"),
        ("--level raid5 --drives 3 --drive-size 10XB", "XB"),
        ("--level raid50 --drives 7", "do not make 2 equal groups"),
        ("--level raid5 --drives 6 --groups 2", "raid5 has no groups"),
        ("--level raid0 --drives 999999999", "at most 384"),
        ("--level raid0 --drives 3 --drive-size 9000PiB", "larger than 2^64 bytes"),
        ("--level raid1 --drives 2 --chunk 64KiB", "raid1 wants none"),
        ("--level raid5 --drives 3 --groups 99999999999", "--groups"),
        ("--level raid10 --drives 3 --chunk 8192PiB --layout f2 --drive-size 1000PiB", "too small"),
    ],
)
def test_what_md_would_refuse_is_refused_in_one_line(invoke: Invoke, arguments: str, says: str) -> None:
    said = invoke("array", "layout", *arguments.split())
    assert said.status == 2
    assert said.out == ""
    assert says in said.err
    assert said.err.count("\n") == 1


@pytest.mark.promise(30)
@pytest.mark.parametrize(
    ("level", "drives", "failed", "read", "server", "desktop"),
    [
        ("raid5", 12, "1 drive", "198.00 TB", "79.5 %", "above 99.9 %"),
        ("raid6", 12, "2 drives", "180.00 TB", "76.3 %", "above 99.9 %"),
        ("raid10", 4, "1 drive", "18.00 TB", "13.4 %", "76.3 %"),
        ("raid1", 3, "2 drives", "18.00 TB", "13.4 %", "76.3 %"),
        ("raid50", 8, "1 drive", "54.00 TB", "35.1 %", "98.7 %"),
    ],
)
def test_a_rebuild_has_a_time_and_a_risk_with_their_assumptions(
    invoke: Invoke, level: str, drives: int, failed: str, read: str, server: str, desktop: str
) -> None:
    said = invoke("array", "layout", "--level", level, "--drives", str(drives), "--drive-size", "18TB")
    assert "24 h 24 min or more at 204.80 MB/s (md's own limit, speed_limit_max" in said.out  # 18e12 / 204.8e6 s
    assert f"with {failed} failed, {read} must be read" in said.out
    assert f"{server} at 1 error in 1e15 bits, {desktop} at 1 error in 1e14 bits" in said.out


@pytest.mark.promise(30)
def test_the_rate_of_a_rebuild_is_given_and_levels_without_one_say_nothing(invoke: Invoke) -> None:
    line = ["array", "layout", "--drives", "4", "--drive-size", "18TB", "--level"]
    assert "50 h or more at 100 MB/s (as given" in invoke(*line, "raid5", "--rebuild-rate", "100MB").out
    found = json.loads(invoke(*line, "raid5", "--rebuild-rate", "100MB", "--json").out)["rebuild"]
    assert (found["failed"], round(found["seconds"], -3)) == (1, 180_000)
    assert [each["errors_per_bit"] for each in found["unreadable"]] == [1e-15, 1e-14]
    assert "Rebuild" not in invoke(*line, "raid0").out
    assert json.loads(invoke(*line, "linear", "--json").out)["rebuild"] is None
    refused = invoke(*line, "raid5", "--rebuild-rate", "0")
    assert refused.status == 2
    assert "--rebuild-rate 0" in refused.err
