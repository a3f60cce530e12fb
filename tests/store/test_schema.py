"""Versions of the schema, and where SQLite's log is unsafe."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from msgspec.structs import replace
from sqlalchemy import Connection, delete, event, insert, select, text

from spindle.result.figures import Cpu
from spindle.store import (
    Store,
    StoreError,
    StoreRefused,
    StoreUsage,
    connection,
    filesystem,
    open_store,
    schema,
    upgrade,
)
from tests.store.made import record


def test_the_steps_lead_to_the_tables_that_the_code_uses(store: Store) -> None:
    with store._database.engine.connect() as opened:
        found = compare_metadata(MigrationContext.configure(opened), schema.metadata)
    assert found == []


def test_the_newest_step_is_the_one_the_code_knows() -> None:
    config = Config()
    config.set_main_option("script_location", "spindle.store:migrations")
    assert ScriptDirectory.from_config(config).get_current_head() == upgrade.HEAD


def test_a_store_of_an_older_spindle_is_brought_up_to_date_after_saying_so(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(where) as store:
        store.add(record(1))
    taken: list[str] = []
    head = upgrade.HEAD
    monkeypatch.setattr(upgrade, "HEAD", "9999")  # a later spindle's
    monkeypatch.setattr(upgrade, "migrate", lambda opened, to="head": taken.append(to))
    said: list[str] = []
    with open_store(where, say=said.append) as store:
        assert store.document(record(1).id)
    assert taken == ["head"]
    assert len(said) == 1
    assert f"a store of an older spindle (schema {head}); it is upgraded to 9999" in said[0]
    with pytest.raises(StoreUsage, match="`spindle store info` upgrades it"):
        open_store(where, read_only=True)


def test_metrics_of_older_stores_are_computed_anew(where: str) -> None:
    """As in a store of schema 0002: zeros for the CPU of a modelled machine, no `cpu_percent` of a real run."""
    modelled = record(1)
    cpu = Cpu(user_ns=4, system_ns=6, voluntary_switches=0, involuntary_switches=0)
    real = replace(record(2), figures=replace(modelled.figures, cpu=cpu))
    with open_store(where) as store:
        store.add(modelled)
        store.add(real)
        wanted = sorted(store.query("SELECT record_key, name, value FROM metrics")[1])
        assert [name for _, name, _ in wanted].count("cpu_percent") == 1

        def age(opened: Connection) -> None:
            of_cpu = schema.metrics.c.name == "cpu_percent"
            opened.execute(delete(schema.metrics).where(of_cpu))
            first = select(schema.records.c.key).where(schema.records.c.id == modelled.id).scalar_subquery()
            opened.execute(insert(schema.metrics).values(record_key=first, name="switches_per_request", value=0.0))
            opened.execute(text("UPDATE alembic_version SET version_num = '0002'"))

        store._database.write(age)
    with open_store(where) as store:
        assert sorted(store.query("SELECT record_key, name, value FROM metrics")[1]) == wanted
        assert store.check().problems == []


@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_from_before_the_first_release_is_refused_with_the_way_out(tmp_path: Path, read_only: bool) -> None:
    place = tmp_path / "store.db"
    with open_store(place) as store:
        store.add(record(1))
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
    before = place.read_bytes()
    with pytest.raises(StoreRefused) as error:
        open_store(place, read_only=read_only)
    assert "schema 0001" in str(error.value)
    assert "`spindle store export`" in str(error.value)
    assert "`spindle store import`" in str(error.value)
    assert "\n" not in str(error.value)
    assert place.read_bytes() == before


def test_a_store_of_a_newer_spindle_is_refused(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(where).close()
    head = upgrade.HEAD
    monkeypatch.setattr(upgrade, "HEAD", "0000")
    for read_only in (False, True):
        with pytest.raises(StoreRefused, match=rf"a store of a newer spindle \(schema {head}, this one knows 0000\)"):
            open_store(where, read_only=read_only)


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "lustre", "gpfs", "9p", "cifs", "fuse.sshfs", "fuseblk", "virtiofs"])
def test_file_systems_that_share_no_memory_are_known(kind: str) -> None:
    assert filesystem.is_unsafe(kind)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", None])
def test_local_file_systems_keep_the_log(kind: str | None) -> None:
    assert not filesystem.is_unsafe(kind)


def test_where_the_log_is_unsafe_a_rollback_journal_is_used_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "store.db"
    open_store(file).close()  # with a log, as on a local file system
    monkeypatch.setattr(connection, "type_of", lambda path: "nfs4")
    said: list[str] = []
    with open_store(file, say=said.append) as store:
        store.add(record(1))
        assert store.info().journal == "delete"
        assert not file.with_name("store.db-wal").exists()
    assert "on nfs4, where SQLite's write-ahead log is unsafe: a rollback journal is used" in said[0]
    with open_store(file, read_only=True, say=said.append) as store:
        assert store.select("last")[0].run_id == record(1).id
    assert len(said) == 1


def test_a_reader_does_not_wait_for_a_writer_nor_the_writer_for_it(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with open_store(file) as store, open_store(file, read_only=True) as reader:
        store.add(record(1))
        with reader._database.engine.connect() as reading, reading.begin():
            assert reading.exec_driver_sql("SELECT count(*) FROM records").scalar() == 1
            store.add(record(2))  # in the middle of the reader's transaction
            assert reading.exec_driver_sql("SELECT count(*) FROM records").scalar() == 1
        assert reader.count() == 2


def test_a_store_that_another_process_keeps_locked_costs_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_S", 0)
    file = tmp_path / "store.db"
    with open_store(file) as store:
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Exception, match="another process has kept it locked"):
            store.add(record(1))
        other.execute("ROLLBACK")
        other.close()
        assert store.add(record(1))


def test_commits_are_on_the_disk_when_they_return(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for unsafe, expected in ((False, 2), (True, 3)):  # FULL; EXTRA: the journal's end too
        monkeypatch.setattr(connection, "is_unsafe", lambda kind, unsafe=unsafe: unsafe)
        store = open_store(tmp_path / f"store{unsafe}.db", say=lambda line: None)
        with store, store._database.engine.connect() as opened:
            assert opened.exec_driver_sql("PRAGMA synchronous").scalar() == expected


def test_a_store_in_a_folder_that_cannot_be_written_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    with open_store(folder / "store.db") as store:
        store.add(record(1))
    # Root may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with open_store(folder / "store.db", read_only=True) as store:
        assert store.count() == 1
        assert sorted(path.name for path in folder.iterdir()) == ["store.db"]


def test_a_full_disk_costs_one_line_and_loses_nothing_that_was_there(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:
        store.add(record(1))

        def full(driver: sqlite3.Connection, *_: object) -> None:
            driver.execute(f"PRAGMA max_page_count={driver.execute('PRAGMA page_count').fetchone()[0]}")

        event.listen(store._database.engine, "checkout", full)
        with pytest.raises(StoreError, match="the disk is full; nothing was stored"):
            store.add_all([record(number) for number in range(2, 40)])
        assert store.count() == 1
        assert store.check().problems == []
