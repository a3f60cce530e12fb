"""`spindle sql` answers a question, and can do nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spindle.store import Store, StoreUsage, open_store
from tests.program import COMMAND, Ended
from tests.store.made import modelled
from tests.store.server import Server

pytestmark = pytest.mark.promise(6)
Invoke = Callable[..., Ended]


@pytest.fixture(scope="module")
def filled_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sql") / "store.db"
    with open_store(place) as made:
        made.add(modelled())
    return place


@pytest.fixture(scope="module")
def filled_server(server: Server) -> str:
    url = server.new_database()
    with open_store(url) as made:
        made.add(modelled())
    return url


@pytest.fixture
def file(filled_file: Path) -> Iterator[Store]:
    """A store with one result in SQLite, open for reading."""
    before = filled_file.read_bytes()
    with open_store(filled_file, read_only=True) as opened:
        yield opened
    assert filled_file.read_bytes() == before


@pytest.fixture
def served(filled_server: str) -> Iterator[Store]:
    """The same in PostgreSQL."""
    with open_store(filled_server, read_only=True) as opened:
        yield opened
        tables = opened.table_names()
        assert len(opened.select("last:100")) == 1
    with open_store(filled_server, read_only=True) as opened:
        assert opened.table_names() == tables
        assert opened.query("SELECT count(*) FROM pg_largeobject_metadata", lambda line: None)[1] == [(0,)]


@pytest.fixture(params=["file", "served"])
def asked(request: pytest.FixtureRequest) -> Store:
    """Either."""
    found: Store = request.getfixturevalue(request.param)
    return found


WRITING = [
    "DELETE FROM records",
    "UPDATE records SET kind = 'x'",
    "INSERT INTO tags SELECT key, 'x' FROM records",
    "DROP TABLE records",
    "CREATE TABLE x(a INTEGER)",
    "CREATE TEMP TABLE x(a INTEGER)",
    "CREATE VIEW x AS SELECT 1",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT a",
    "REINDEX",
    "VACUUM",
    "ANALYZE",
    "SELECT 1; DELETE FROM records",
    "SELECT 1; SELECT 2",
    "/* SELECT */ DELETE FROM records",
    "-- SELECT\n DELETE FROM records",
    "",
    ";",
    "/* no end",
    "\0",
    "SELECT \0",
]


@pytest.mark.parametrize("sql", WRITING)
def test_what_is_not_one_question_is_refused_with_one_line(sql: str, asked: Store) -> None:
    with pytest.raises(StoreUsage) as refused:
        asked.query(sql)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH '{file}' AS n",
        "VACUUM INTO '{file}'",
        "PRAGMA journal_mode = delete",
        "PRAGMA writable_schema = 1",
        "PRAGMA query_only = 0",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA user_version = 3",
        "PRAGMA temp_store_directory = '/tmp'",
        "SELECT load_extension('{file}')",
        "SELECT writefile('{file}', 'x')",
        "SELECT edit('x', 'touch {file}')",
        "WITH x AS (SELECT 1) DELETE FROM records",
        "WITH x AS (SELECT 1) INSERT INTO tags VALUES (1, 'x')",
        "EXPLAIN ATTACH '{file}' AS n",
        "EXPLAIN DELETE FROM records",
        "VALUES (1) RETURNING 1",
        "DETACH main",
    ],
)
def test_sqlite_makes_no_file_and_changes_nothing(sql: str, file: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreUsage):
        file.query(sql.format(file=tmp_path / "new"))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "sql",
    [
        "COMMIT; BEGIN READ WRITE; DELETE FROM records; COMMIT",
        "SET TRANSACTION READ WRITE; DELETE FROM records",
        "SET TRANSACTION READ WRITE",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        "RESET default_transaction_read_only",
        "COMMIT AND CHAIN",
        "DO $$ BEGIN COMMIT; DELETE FROM records; END $$",
        "CALL nothing()",
        "COPY records TO PROGRAM 'touch {file}'",
        "COPY (SELECT 1) TO '{file}'",
        "COPY tags FROM PROGRAM 'echo 1,x'",
        "LOCK TABLE records",
        "NOTIFY x",
        "PREPARE p AS DELETE FROM records",
        "EXECUTE p",
        "DECLARE c CURSOR FOR SELECT 1",
        "EXPLAIN ANALYZE DELETE FROM records",
        "EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1",
        "WITH d AS (DELETE FROM records RETURNING *) SELECT * FROM d",
        "SELECT * INTO x FROM records",
        "SELECT * FROM records FOR UPDATE",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SELECT set_config('transaction_read_only', 'off', true), query_to_xml('DELETE FROM records', true, true, '')",
        "SELECT query_to_xml('DELETE FROM records', true, true, '')",
        "SELECT query_to_xml('COMMIT', true, true, '')",
        "SELECT nextval('records_key_seq')",
        "SELECT setval('records_key_seq', 1000)",
        "SELECT 1 -- ; \n; DELETE FROM records",
        "SELECT 1; /* COMMIT",
        "SHOW server_version; DELETE FROM records",
        "EXPLAIN SELECT 1; DELETE FROM records",
    ],
)
def test_a_transaction_of_a_server_cannot_be_left(sql: str, served: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreUsage):
        served.query(sql.format(file=tmp_path / "new"), lambda line: None)
    assert not (tmp_path / "new").exists()


def test_a_large_object_that_an_older_server_makes_is_gone_with_the_transaction(served: Store) -> None:
    with contextlib.suppress(StoreUsage):  # PostgreSQL 16 and later refuse it
        served.query("SELECT lo_create(77)", lambda line: None)


def test_what_a_question_sets_for_its_session_ends_with_it(served: Store) -> None:
    quiet: Callable[[str], None] = lambda line: None  # noqa: E731
    served.query("SELECT set_config('search_path', 'nowhere', false), pg_advisory_lock(7)", quiet)
    assert served.query("SELECT count(*) FROM records", quiet)[1] == [(1,)]
    assert served.query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", quiet)[1] == [(0,)]


def test_a_superuser_is_warned_and_the_documented_role_reads_only(served: Store, server: Server) -> None:
    import psycopg

    said: list[str] = []
    served.query("SELECT 1", said.append)
    assert "superuser" in said[0]
    page = (Path(__file__).parents[2] / "docs/reference/store.md").read_text()
    commands = page.split("<!-- role -->\n```sql\n")[1].split("```")[0]
    url = str(served.place)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(commands.replace("DATABASE lab", f"DATABASE {url.partition('?')[0].rpartition('/')[2]}"))
    try:
        with open_store(url.replace("spindle@", "spindle_reader@"), read_only=True) as reader:
            said.clear()
            assert reader.query("SELECT count(*) FROM records", said.append)[1] == [(1,)]
            assert said == []
            for sql in (
                "SELECT pg_read_file('/etc/passwd')",
                "SELECT lo_export(1, '/tmp/x')",
                "SELECT pg_reload_conf()",
            ):
                with pytest.raises(StoreUsage, match="permission denied"):
                    reader.query(sql)
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP OWNED BY spindle_reader; DROP ROLE spindle_reader")


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT 9e999, -9e999", [("inf", "-inf")]),
        ("SELECT x'00ff', 'ä', NULL", [(b"\0\xff", "ä", None)]),
        ("SELECT 9223372036854775807, -9223372036854775808", [(2**63 - 1, -(2**63))]),
        ("SELECT cast(x'ff41' AS text)", [("\\xffA",)]),
        ("SELECT value FROM json_each('[1, 2]')", [(1,), (2,)]),
        ("SELECT name FROM pragma_table_info('tags') ORDER BY cid", [("tag",), ("record_key",), ("seal",)]),
        ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 2) SELECT x FROM c", [(1,), (2,)]),
        ("/* why */ -- so\n VALUES (1, 2);", [(1, 2)]),
    ],
)
def test_any_value_of_sqlite_is_an_answer(sql: str, rows: list[object], file: Store) -> None:
    assert file.query(sql)[1] == rows


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT 'NaN'::float8, '-Infinity'::float8, 'NaN'::numeric", [("nan", "-inf", "nan")]),
        ("SELECT 10::numeric ^ 400 > 1, 2::numeric ^ 70", [(1, 2.0**70)]),
        ("SELECT '123456789012345678901234567890'::numeric", [("123456789012345678901234567890",)]),
        ("SELECT 'infinity'::timestamp, '0044-03-15 BC'::date", [("infinity", "0044-03-15 BC")]),
        ("SELECT '\\x00ff'::bytea, true, NULL, ARRAY[1, 2], '100%'", [(b"\0\xff", 1, None, "{1,2}", "100%")]),
        ("TABLE nowhere_to_be_found", None),
        ("(SELECT 1 UNION SELECT 2) ORDER BY 1", [(1,), (2,)]),
        ("SELECT count(*) FROM generate_series(1, 100000)", [(100_000,)]),
        ("SHOW transaction_read_only", [("on",)]),
    ],
)
def test_any_value_of_a_server_is_an_answer(sql: str, rows: list[object] | None, served: Store) -> None:
    if rows is None:
        with pytest.raises(StoreUsage, match="does not exist"):
            served.query(sql)
    else:
        assert served.query(sql)[1] == rows


@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",)])
@pytest.mark.parametrize(
    "sql", ["SELECT 9e999 AS n, 9e999 AS n", "SELECT x'ff' AS n, NULL AS n", "SELECT 1e300 AS n, 1"]
)
def test_every_answer_can_be_shown(form: tuple[str, ...], sql: str, file: Store, invoke: Invoke) -> None:
    ended = invoke("sql", sql, "--store", str(file.place), *form)
    assert (ended.status, ended.err) == (0, ""), ended
    if form == ("--json",):
        assert len(json.loads(ended.out)[0]) == 2


ENDLESS = {
    "sqlite": "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
    "postgres": "SELECT count(*) FROM generate_series(1, 1000000000000)",
}


def test_an_endless_question_ends_with_ctrl_c(asked: Store) -> None:
    where = asked.place.url or str(asked.place)
    sql = ENDLESS["sqlite" if asked.place.file else "postgres"]
    process = subprocess.Popen([*COMMAND, "sql", sql, "--store", where], stderr=subprocess.PIPE, text=True)
    time.sleep(2)  # it is under way: nothing shows it from outside
    assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in err
