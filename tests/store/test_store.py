"""Stored objects come out unchanged: records, tags, selections, on SQLite and PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from spindle.result.document import encode
from spindle.result.record import MachineActivity
from spindle.result.record import Sample as Beside
from spindle.stats.metric import values
from spindle.store import Store, StoreUsage, select
from tests.store.made import modelled, record, same


def test_a_record_comes_back_byte_for_byte(store: Store, fresh: Callable[[], Store]) -> None:
    run_id = store.add(modelled())
    assert run_id == modelled().id
    with fresh() as again:
        assert same(modelled(), again.document(run_id))
        assert again.record(run_id) == modelled()


def test_the_same_record_twice_is_there_once_with_the_tags_of_both(store: Store) -> None:
    assert store.add(record(1), tags=["a"]) == store.add(record(1), tags=["b", "a"])
    [line] = store.ls()
    assert line.tags == ("a", "b")


def test_another_record_of_the_same_identity_is_kept_beside_it(store: Store) -> None:
    other = replace(record(1), seed=77)
    assert store.add(record(1)) == record(1).id
    assert store.add(other) == f"{record(1).id}.2" == store.add(other)
    assert store.document(record(1).id) == encode(record(1))
    assert store.document(f"{record(1).id}.2") == encode(other)


def test_selections_name_runs_in_order_of_time(store: Store) -> None:
    for number in (3, 1, 2):
        store.add(record(number), tags=["all", "odd" if number % 2 else "even"])
    assert [each.run_id for each in store.select("tag:all")] == [record(number).id for number in (1, 2, 3)]
    assert [each.position for each in store.select("tag:odd")] == [0, 1]
    assert [each.run_id for each in store.select("last:2")] == [record(1).id, record(2).id]
    assert store.select("last")[0].record == record(2)
    assert store.select(record(3).id[:-4])[0].run_id == record(3).id


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("tag:none", "tag:none: nothing has this tag; there are known"),
        ("tag:", "which one"),
        ("2026", "several runs begin so"),
        ("1999", "no run begins so"),
        ("last:0", "not a number of results"),
        ("campaign:none", "there is none; the store has no campaigns"),
        ("campaign:x/y", "is not factor=level"),
        ("", "not a selection"),
        ("a b", "not a selection"),
    ],
)
def test_a_selection_that_names_nothing_says_what_there_is(store: Store, text: str, complaint: str) -> None:
    store.add_all([record(1), record(2)], tags=["known"])
    with pytest.raises(StoreUsage, match=complaint):
        store.select(text)


def test_a_file_is_selected_without_a_store(tmp_path: Path) -> None:
    file = tmp_path / "saved.json"
    file.write_bytes(encode(record(1)))
    [found] = select(None, str(file))
    assert found.record == record(1)
    with pytest.raises(StoreUsage, match="a store is needed"):
        select(None, "tag:x")


def test_tags_are_given_to_a_whole_selection(store: Store) -> None:
    store.add_all([record(1), record(2)])
    assert store.tag("last:2", "one", "two") == 2
    assert store.tags() == {"one": 2, "two": 2}
    with pytest.raises(StoreUsage, match="not a name"):
        store.tag("last", "no/name")


def test_metrics_are_those_of_the_records(store: Store, tmp_path: Path) -> None:
    store.add_all([modelled(), record(2)], tags=["x"])
    chosen = store.select("tag:x")
    assert store.metrics(chosen) == [values(each.record) for each in chosen]
    assert store.metrics(chosen, ["iops", "none"]) == [{"iops": each.record.figures.iops} for each in chosen]  # type: ignore[union-attr]
    file = tmp_path / "saved.json"
    file.write_bytes(encode(record(1)))
    assert store.metrics(select(None, str(file)), ["iops"]) == [{"iops": record(1).figures.iops}]


def test_what_is_known_of_a_result_without_opening_it_is_what_its_record_says(store: Store, tmp_path: Path) -> None:
    store.add(modelled())
    file = tmp_path / "saved.json"
    file.write_bytes(encode(modelled()))
    for found in (store.select("last")[0], select(None, str(file))[0]):
        known = (found.kind, found.started, found.workload, found.target, found.level)
        assert known == ("run", modelled().started, "randomio", "one-sata", modelled().level)


def test_what_devices_did_beside_a_run_can_be_asked_for(store: Store) -> None:
    columns = {"r/s": 10.0, "w/s": 30.0, "rMB/s": 1.0, "wMB/s": 1.0, "r_await": 1.0, "w_await": 3.0, "%util": 40.0}
    samples = [Beside(at_s=1.0 + at, seconds=1.0, devices={"sda": columns, "sdb": columns}) for at in range(3)]
    found = replace(record(1), activity=MachineActivity(samples=samples))
    store.add(found)
    _, rows = store.query(
        "SELECT run, device, end_s, r_s, await, svctm, avgrq_sz FROM run_iostat ORDER BY device, number"
    )
    assert rows[:2] == [(found.id, "sda", 1.0, 10.0, 2.5, 10.0, 102.4), (found.id, "sda", 2.0, 10.0, 2.5, 10.0, 102.4)]
    assert len(rows) == 6
    assert store.check().problems == []
