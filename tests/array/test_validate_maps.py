"""`spindle validate maps`: true lists agree, false ones are found, and nothing passes for want of lists."""

from __future__ import annotations

import json
from pathlib import Path

LISTS = Path(__file__).resolve().parent.parent / "data/md-maps"


def test_the_maps_reproduce_every_list_of_a_real_array(invoke) -> None:
    said = invoke("validate", "maps", str(LISTS))
    assert said.status == 0
    count = len(list(LISTS.glob("*.csv")))
    assert f"{count} arrays" in said.out.splitlines()[-1]
    assert "differs" not in said.out


def test_a_moved_block_is_named_and_the_exit_status_is_1(invoke, tmp_path: Path) -> None:
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


def test_a_wrong_size_is_a_difference(invoke, tmp_path: Path) -> None:
    text = (LISTS / "raid1_n2.csv").read_text()
    (tmp_path / "list.csv").write_text(text.replace("array_bytes=2162688", "array_bytes=2183168"))
    said = invoke("validate", "maps", str(tmp_path))
    assert said.status == 1
    assert "array_bytes" in said.out


def test_a_folder_without_lists_is_not_a_success(invoke, tmp_path: Path) -> None:
    said = invoke("validate", "maps", str(tmp_path))
    assert said.status == 2
    assert "no .csv file" in said.err
    assert invoke("validate", "maps", str(tmp_path / "none")).status == 2
