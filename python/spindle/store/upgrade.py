"""The version of the schema: created, upgraded, or refused (Alembic; steps in `migrations/versions`)."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

from .connection import Say
from .database import Database
from .errors import StoreRefused, StoreUsage
from .place import StorePlace

HEAD = "0003"
"""The newest step; a test compares it with `migrations/versions`."""
OLDEST = "0002"
"""The oldest step that can be upgraded: the first that was released."""
TABLE = "alembic_version"
LOCK = 0x5350494E444C45  # any number: one upgrade of a database at a time


def bring_up_to_date(database: Database, say: Say, *, create: bool) -> None:
    """Make the tables in an empty database, or take the missing steps, all or none."""
    there = database.read(version)
    if there == HEAD:
        return
    if there is None and not create:
        raise _no_store(database.place)

    def work(connection: Connection) -> None:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": LOCK})
        found = version(connection)
        if found == HEAD:
            return  # another process was faster
        if found is None:
            _refuse_foreign(connection, database.place)
        else:
            _refuse_unknown(found, database.place)
            say(f"{database.place}: a store of an older spindle (schema {found}); it is upgraded to {HEAD}")
        migrate(connection)

    database.write(work)


def check_version(connection: Connection, place: StorePlace) -> None:
    """Raise unless the version is current, for readers."""
    found = version(connection)
    if found == HEAD:
        return
    if found is None:
        raise _no_store(place)
    _refuse_unknown(found, place)
    raise StoreUsage(f"{place}: a store of an older spindle (schema {found}); `spindle store info` upgrades it")


def version(connection: Connection) -> str | None:
    """The version of a database; None: it has no tables of Spindle."""
    if not inspect(connection).has_table(TABLE):
        return None
    return connection.execute(text(f"SELECT version_num FROM {TABLE}")).scalar()


def migrate(connection: Connection, to: str = "head") -> None:
    """Take the steps, in the current transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", "spindle.store:migrations")
    command.upgrade(config, to)


def _no_store(place: StorePlace) -> StoreUsage:
    return StoreUsage(f"{place}: not a store (it has no table of Spindle's); `spindle run` with `store=True` makes one")


def _refuse_unknown(found: str, place: StorePlace) -> None:
    if found < OLDEST:
        raise StoreRefused(
            f"{place}: a store of a spindle before 0.1.0 (schema {found}), which cannot be upgraded; export its "
            "results with that spindle (`spindle store export`) and import them into a new store "
            "(`spindle store import`)"
        )
    if found > HEAD:
        raise StoreRefused(
            f"{place}: a store of a newer spindle (schema {found}, this one knows {HEAD}); use a newer spindle"
        )


def _refuse_foreign(connection: Connection, place: StorePlace) -> None:
    from .schema import metadata

    taken = sorted(set(inspect(connection).get_table_names()) & set(metadata.tables))
    others = inspect(connection).get_table_names()
    if taken or (place.url is None and others):
        raise StoreRefused(
            f"{place}: a database of something else (it has a table {(taken or others)[0]!r}); "
            "nothing was changed, name another"
        )
