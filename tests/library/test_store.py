"""A store from Python: what `spindle store` does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import spindle


@pytest.fixture
def store(tmp_path: Path) -> Iterator[spindle.Store]:
    with spindle.open_store(tmp_path / "s.db") as opened:
        for seed in (1, 2):
            spindle.run("seeker", "one-sata", seed=seed, seconds=1, store=opened, tags=["a"])
        yield opened


def test_results_are_listed_tagged_and_removed(store: spindle.Store) -> None:
    first, second = store.ls()
    assert [each.id for each in store.ls(last=1)] == [second.id]
    assert store.tag(first.id, "b") == 1
    assert store.tags == {"a": 2, "b": 1}
    assert store.untag("tag:a", "a") == 2
    asked: list[str] = []

    def never(words: str) -> bool:
        asked.append(words)
        return False

    assert store.remove("tag:b", confirm=never) is None
    assert (asked, len(store)) == (["1 result"], 2)
    assert store.remove("tag:b") == "1 result"
    assert [each.id for each in store.ls()] == [second.id]


def test_results_are_exported_and_imported_again(store: spindle.Store, tmp_path: Path) -> None:
    assert store.export("tag:a", output=tmp_path / "out").startswith(f"{tmp_path}/out: 2 files, ")
    assert "2 rows" in store.export("tag:a", output=tmp_path / "out.csv")
    with spindle.open_store(tmp_path / "other.db") as other:
        assert other.take_in(tmp_path / "out", tags=["new"]) == f"{tmp_path}/out: 2 results (2 new)"
        assert {each.id for each in other["tag:new"]} == {each.id for each in store["tag:a"]}
    with pytest.raises(spindle.Error, match="`format=` pdf: it is one of"):
        store.export("tag:a", output=tmp_path / "x", format="pdf")  # type: ignore[arg-type]
    with pytest.raises(spindle.Error, match="not empty"):
        store.export("tag:a", output=tmp_path / "out")


def test_a_store_is_checked_and_has_files(store: spindle.Store, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("changed the scheduler\n")
    one = store["last"][0].id
    assert store.attach(one, tmp_path / "note.txt").size_bytes == 22
    assert any("note.txt" in line for line in store.about(store.chosen("last")[0]))
    assert store.check().problems == []
    assert store.info.size_bytes > 0
    before, after = store.vacuum()
    assert 0 < after <= before
    assert store.campaigns == []
