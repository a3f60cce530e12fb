"""`spindle store check` finds any change of any cell; a campaign whose plan was changed is not resumed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Column, Double, LargeBinary, Table

from spindle.formats import read
from spindle.result.record import Settings
from spindle.store import (
    MachineSample,
    PlannedTrial,
    Recording,
    Sample,
    Store,
    StoreError,
    StoreRefused,
    open_store,
    schema,
)
from spindle.store.check import Problem
from tests.program import Ended
from tests.store.made import record

pytestmark = pytest.mark.promise(7)

SAMPLES = Path(__file__).parents[1] / "formats/samples"
IOSTAT = dict.fromkeys(schema.IOSTAT.values(), 2.5)
COLUMNS = [
    pytest.param(table, column, id=f"{table.name}.{column.name}")
    for table in schema.metadata.sorted_tables
    for column in table.c
]


def fill(store: Store, folder: Path) -> None:
    """Something in each table, and two rows where rows could be mixed up."""
    for number in (1, 2):
        store.add(record(number), tags=[f"tag{number}", "both"], source="a file")
        (folder / f"note{number}").write_text("kept with the run")
        store.attach(record(number).id, folder / f"note{number}")
    settings = Settings(before={"sda.scheduler": "none"}, after={"sda.scheduler": "bfq"}, changed=[])
    store.add(replace(record(4), settings=settings))
    store.add_all(read(SAMPLES / "iostat-xmt.txt"))
    trials = [PlannedTrial(block=at // 2, cell={"level": str(at)}, detail={"seed": at}) for at in range(4)]
    for name in ("first", "second"):
        store.campaigns.create(name, plan="[factors]\n", seed=7, trials=trials, detail={"cap": 3})
    samples = [Sample(device="sda", start_ns=0, seconds=1.0, iostat=IOSTAT, label="none")]
    machine = [MachineSample(start_ns=0, seconds=1.0, columns=dict.fromkeys(schema.MACHINE.values(), 0))]
    with store.campaigns.hold("first") as held:
        trial = held.next()
        assert trial is not None
        about = Recording(started="2026", interval_s=1, about="load", samples=samples, machine=machine, host="here")
        held.finish(trial, record(3), about)
        trial = held.next()
        assert trial is not None
        held.reject(trial, "failed", "broken", again=True)
        held.set_state("stopped")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damage")
    place = folder / "store.db"
    with open_store(place) as store:
        fill(store, folder)
        assert store.check().problems == []
    return place


@pytest.fixture
def copy(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(filled, tmp_path / "store.db"))


def damage(place: Path, sql: str, *values: Any) -> int:
    """Past all that Spindle and SQLite would object to."""
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        return connection.execute(sql, values).rowcount


def problems(place: Path) -> list[Problem]:
    with open_store(place, read_only=True) as store:
        return store.check().problems


def first_row(place: Path, table: Table, column: Column[Any]) -> dict[str, Any] | None:
    """One in which the cell holds something."""
    with closing(sqlite3.connect(place)) as connection:
        connection.row_factory = sqlite3.Row
        order = f"{column.name} IS NULL, {', '.join(each.name for each in table.primary_key.columns)}"
        found = connection.execute(f"SELECT * FROM {table.name} ORDER BY {order} LIMIT 1").fetchone()
        return dict(found) if found is not None else None


def other_values(column: Column[Any], value: Any) -> Iterator[Any]:
    """Values that a flipped bit, a slip or another program could leave there."""
    match value:
        case None:
            yield 1 if not isinstance(column.type, LargeBinary) else b"x"
        case bool() | int():
            yield from (value + 1, value ^ 1 << 40) if column.name != "seal" else (value ^ 1, None)
        case float():
            yield from (value + 1, value * (1 + 2**-50) if value else 2.0**-1000)
        case str():
            yield from (value + " ", value[:-1] + chr((ord(value[-1]) ^ 1) or 32) if value else "x", value.encode())
        case bytes():
            yield from (value[:-1] + bytes([value[-1] ^ 1]), b"", "text")
    if column.nullable and value is not None and not isinstance(column.type, Double):
        yield None


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_any_change_of_any_cell_is_found(table: Table, column: Column[Any], filled: Path, tmp_path: Path) -> None:
    row = first_row(filled, table, column)
    assert row is not None, f"the test's store has no {table.name}: fill it"
    where = " AND ".join(f"{key.name} = ?" for key in table.primary_key.columns)
    keys = [row[key.name] for key in table.primary_key.columns]
    for number, value in enumerate(other_values(column, row[column.name])):
        place = Path(shutil.copy(filled, tmp_path / f"{number}.db"))
        try:
            assert damage(place, f"UPDATE {table.name} SET {column.name} = ? WHERE {where}", value, *keys) == 1
        except sqlite3.IntegrityError:
            continue  # the database itself does not allow it
        assert problems(place), f"{row[column.name]!r} became {value!r}, and nothing is said"


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE campaigns SET plan = '[other]' WHERE name = 'first'",
        "UPDATE campaigns SET seed = '8' WHERE name = 'first'",
        "UPDATE campaigns SET detail = '{\"cap\": 4}' WHERE name = 'first'",
        "UPDATE trials SET detail = '{\"seed\": 99}' WHERE number = 3",
        "UPDATE trials SET block = 0 WHERE number = 3",
        'UPDATE trials SET cell = \'{"level": "9"}\' WHERE number = 3',
        "UPDATE trials SET state = 'done' WHERE number = 3",
        "UPDATE trial_factors SET level = '9' WHERE level = '3'",
        "UPDATE attempts SET ended = '2020' WHERE state = 'done'",
        "UPDATE trials SET seal = NULL",
        "DELETE FROM trials WHERE number = 3",
        "DELETE FROM trials WHERE number = 4",
        "DELETE FROM attempts",
    ],
)
def test_a_campaign_whose_plan_was_changed_is_not_carried_out(sql: str, copy: Path) -> None:
    assert damage(copy, sql) > 0
    for _ in range(2):
        with open_store(copy) as store:
            refused = pytest.raises(StoreRefused, match="is not run")
            with refused, store.campaigns.hold("first"):
                pytest.fail("it began")
    assert problems(copy)


def test_a_trial_that_is_changed_while_the_campaign_runs_is_not_carried_out(copy: Path) -> None:
    with open_store(copy) as store, store.campaigns.hold("first") as held:
        damage(copy, "UPDATE trials SET detail = '{\"seed\": 99}' WHERE number = 2")
        with pytest.raises(StoreError, match="changed since it was written"):
            held.next()


def test_damage_gets_no_new_seal_by_a_later_change(copy: Path) -> None:
    damage(copy, "UPDATE artefacts SET media_type = 'x'")
    with open_store(copy) as store:
        note = copy.with_name("note1")
        note.write_text("newer")
        with pytest.raises(StoreError, match="changed since it was written"):
            store.attach(record(1).id, note)
    assert problems(copy)


def test_a_damaged_campaign_does_not_come_into_another_store_as_a_sound_one(copy: Path, tmp_path: Path) -> None:
    damage(copy, "UPDATE trials SET detail = '{\"seed\": 99}' WHERE number = 3")
    with open_store(copy) as damaged, open_store(tmp_path / "other.db") as other:
        with pytest.raises(StoreError, match="was changed since it was written"):
            other.take_in(damaged)
        assert other.count() == 5  # the records came over


def test_all_that_is_done_with_a_store_leaves_it_whole(where: str, store: Store, tmp_path: Path) -> None:
    fill(store, tmp_path)
    store.untag("tag:both", "tag2")
    (tmp_path / "note1").write_text("newer")
    store.attach(record(1).id, tmp_path / "note1")
    with store.campaigns.hold("first") as held:
        held.extend([PlannedTrial(block=2, cell={"level": "0"})])
        assert held.next() is not None  # and it dies
    assert store.check().problems == []
    with store.campaigns.hold("first") as held:
        while trial := held.next():
            held.finish(trial, record(10 + trial.number))
        held.set_state("done", {"cap": 4})
    with open_store(tmp_path / "other.db") as other:
        other.take_in(store)
        assert [str(each) for each in other.check().problems] == []
    recording = store.start_recording(Recording(started="2026", interval_s=1, about="a", host="h"))
    store.add_samples(recording, [Sample(device="sda", start_ns=0, seconds=1, iostat={"r/s": -0.0, "w/s": 1})], [])
    assert [str(each) for each in store.check().problems] == []


def test_the_verb_names_what_was_changed(copy: Path, invoke: Callable[..., Ended]) -> None:
    damage(copy, "UPDATE records SET added = '2020-01-01T00:00:00Z' WHERE key = 1")
    ended = invoke("store", "check", "--store", str(copy))
    assert ended.status == 1
    assert "table records, key 1: was changed since it was written" in ended.out
