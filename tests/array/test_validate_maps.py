"""`spindle validate maps`: true lists agree, false ones are found, and nothing passes for want of lists."""

from __future__ import annotations

import json
from pathlib import Path

from tests.program import Invoke

LISTS = Path(__file__).resolve().parent.parent / "data/md-maps"


def test_the_maps_reproduce_every_list_of_a_real_array(invoke: Invoke) -> None:
    said = invoke("validate", "maps", str(LISTS))
    assert said.status == 0
    count = len(list(LISTS.glob("*.csv")))
    assert f"{count} arrays" in said.out.splitlines()[-1]
    assert "differs" not in said.out


def test_a_moved_block_is_named_and_the_exit_status_is_1(invoke: Invoke, tmp_path: Path) -> None:
    for name in ("raid10_f2_n4.csv", "raid5_n3_default.csv"):
        (tmp_path / name).write_text((LISTS / name).read_text())
    far = tmp_path / "raid10_f2_n4.csv"
    far.write_text(far.read_text().replace("D,1,0,16,1,256", "D,1,0,16,2,256"))
    said = invoke("validate", "maps", str(tmp_path))
    assert said.status == 1
    assert "1 of 2 arrays differ" in said.out
    assert "raid10_f2_n4.csv: line 19: member 2 block 256" in said.out
    found = json.loads(invoke("validate", "maps", str(tmp_path), "--json").out)
    assert found["mismatches"] == 1
    assert found["first_mismatch"].startswith("raid10_f2_n4.csv: ")


def test_a_wrong_size_is_a_difference(invoke: Invoke, tmp_path: Path) -> None:
    text = (LISTS / "raid1_n2.csv").read_text()
    (tmp_path / "list.csv").write_text(text.replace("array_bytes=2162688", "array_bytes=2183168"))
    said = invoke("validate", "maps", str(tmp_path))
    assert said.status == 1
    assert "array_bytes" in said.out


def of_two_members(row: str) -> str:
    """The list of a RAID5 of two members, 64 KiB chunks, with each stripe's rows as `row` makes them."""
    header = """\
# member_data_kib=256,256
# array_bytes=262144
# md: level=raid5 layout=2 raid_disks=2 chunk_size=65536 component_size=256
role,idx,lblk,len,dev,dblk
"""
    # Left-symmetric: the parity of stripes 0, 2 ... is on member 1.
    lines = []
    for stripe in range(4):
        data, parity = (0, 1) if stripe % 2 == 0 else (1, 0)
        lines.append(row.format(lblk=stripe * 16, block=stripe * 16, data=data, parity=parity))
    return header + "\n".join(lines) + "\n"


DATA_AND_PARITY = "D,0,{lblk},16,{data},{block}\nP,0,-1,16,{parity},{block}"


def test_with_two_members_parity_may_be_listed_as_data(invoke: Invoke, tmp_path: Path) -> None:
    kinds = {
        "different": DATA_AND_PARITY,
        "changed-places": "P,0,-1,16,{data},{block}\nD,0,{lblk},16,{parity},{block}",
        "two-copies": "D,0,{lblk},16,0,{block}\nD,1,{lblk},16,1,{block}",
    }
    for name, row in kinds.items():
        (tmp_path / f"{name}.csv").write_text(of_two_members(row))
    said = invoke("validate", "maps", str(tmp_path))
    assert said.status == 0, said.out


def test_with_two_members_other_data_are_still_a_difference(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(of_two_members(DATA_AND_PARITY).replace("D,0,16,16", "D,0,17,16"))
    said = invoke("validate", "maps", str(tmp_path))
    assert said.status == 1
    assert "listed as array block 17" in said.out


def test_with_two_members_a_block_that_is_parity_twice_is_a_difference(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(of_two_members(DATA_AND_PARITY).replace("D,0,16,", "P,0,-1,"))
    said = invoke("validate", "maps", str(tmp_path))
    assert said.status == 1
    assert "0 copies in the list" in said.out


def test_a_folder_without_lists_is_not_a_success(invoke: Invoke, tmp_path: Path) -> None:
    said = invoke("validate", "maps", str(tmp_path))
    assert said.status == 2
    assert "no .csv file" in said.err
    assert invoke("validate", "maps", str(tmp_path / "none")).status == 2
