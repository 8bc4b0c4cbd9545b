"""The schema: Alembic runs plain `.sql` files, in order, under a lock, each time a replica starts.

Alembic and SQLAlchemy take most of a second to import, so a start first asks the database whether there is anything to
do at all.
"""

from __future__ import annotations

import io
import threading
from importlib.resources import as_file, files
from typing import Any

import psycopg

from scheduler.core.errors import DatabaseUnreachable, SchemaMismatch
from scheduler.store.connect import connect_once, one_line

LOCK = 0x736F6C6F69737401  # "soloist" and a number: the 64-bit key under which migrations are applied
NEEDED_INDEXES = frozenset(
    {"run_pkey", "run_once", "run_exclusive", "run_queued", "run_running", "run_waiting", "run_of_job", "attempt_pkey"}
)
_ROOT = files("scheduler.store").joinpath("migrations")


def revisions() -> tuple[str, ...]:
    """The names of all migrations (`0001_initial`), oldest first."""
    return tuple(sorted(e.name[:-4] for e in _ROOT.joinpath("versions").iterdir() if e.name.endswith(".sql")))


def current(connection: psycopg.Connection[Any]) -> str | None:
    """The revision of this database, or None where there is no schema yet."""
    there = connection.execute("SELECT to_regclass('soloist.alembic_version')").fetchone()
    if there is None or there[0] is None:
        return None
    row = connection.execute("SELECT version_num FROM soloist.alembic_version").fetchone()
    return None if row is None else str(row[0])


def migrate(database_url: str) -> tuple[str, ...]:
    """Bring the schema up to date; returns the revisions applied. Raises SchemaMismatch, DatabaseUnreachable.

    Others that migrate at the same time wait their turn by asking again: a session that *waits* in `pg_advisory_lock`
    would hold back vacuum.
    """
    with connect_once(database_url, "migrate") as connection:
        try:
            known, before = revisions(), current(connection)
            _refuse_newer(before, known)
            applied: tuple[str, ...] = ()
            if before != known[-1]:
                applied = _locked_upgrade(connection, database_url, known)
            verify(connection)
        except psycopg.errors.InsufficientPrivilege as error:
            raise DatabaseUnreachable(
                f"the database role lacks a right: {one_line(error)}. Grant it, or let a role that has it run "
                "`soloist migrate` once."
            ) from None
    return applied


def _locked_upgrade(connection: psycopg.Connection[Any], database_url: str, known: tuple[str, ...]) -> tuple[str, ...]:
    while not _try_lock(connection):
        threading.Event().wait(0.1)
    try:
        before = current(connection)
        if before != known[-1]:
            connection.execute("CREATE SCHEMA IF NOT EXISTS soloist")
            _upgrade(database_url)
    finally:
        connection.execute("SELECT pg_advisory_unlock(%s)", (LOCK,))
    return known[known.index(before) + 1 if before else 0 :]


def _refuse_newer(version: str | None, known: tuple[str, ...]) -> None:
    if version is not None and version not in known:
        raise SchemaMismatch(
            f"the database's schema is at {version}, which this version does not know (its newest is {known[-1]}): "
            "a newer Soloist has migrated it. Run that version, or restore the schema."
        )


def _try_lock(connection: psycopg.Connection[Any]) -> bool:
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", (LOCK,)).fetchone()
    return bool(row and row[0])


def verify(connection: psycopg.Connection[Any]) -> None:
    """Refuse to work without the indexes that make the promises true. Raises SchemaMismatch that names them.

    A restored dump or a half-applied migration may lack one: then plain inserts succeed and every tick runs twice.
    """
    rows = connection.execute(
        "SELECT index.relname FROM pg_index JOIN pg_class index ON index.oid = indexrelid"
        " JOIN pg_class tab ON tab.oid = indrelid WHERE tab.relnamespace = to_regnamespace('soloist') AND indisvalid"
    ).fetchall()
    missing = sorted(NEEDED_INDEXES - {row[0] for row in rows})
    if missing:
        raise SchemaMismatch(
            f"the schema lacks {', '.join(f'soloist.{name}' for name in missing)} (or an index is invalid): without "
            "it a tick could run twice. `soloist migrate --sql` prints how each is made."
        )


def script() -> str:
    """All migrations as one SQL script, for people who apply such things themselves."""
    from alembic import command  # noqa: PLC0415 - late: slow to import

    out = io.StringIO("")
    with as_file(_ROOT) as path:
        config = _config(str(path), out)
        command.upgrade(config, "head", sql=True)
    return "CREATE SCHEMA IF NOT EXISTS soloist;\n\n" + out.getvalue()


def _upgrade(database_url: str) -> None:
    from alembic import command  # noqa: PLC0415 - late: slow to import
    from sqlalchemy import NullPool, create_engine  # noqa: PLC0415

    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(database_url, application_name="soloist migrate"),
        poolclass=NullPool,
    )
    with as_file(_ROOT) as path, engine.connect() as connection:
        config = _config(str(path), io.StringIO())
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _config(location: str, out: io.StringIO) -> Any:
    from alembic.config import Config  # noqa: PLC0415 - late: slow to import

    config = Config(output_buffer=out)
    config.set_main_option("script_location", location.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
