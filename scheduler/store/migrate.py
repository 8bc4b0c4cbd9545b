"""The schema: Alembic runs plain `.sql` files, in order, under a lock, each time a replica starts.

Alembic and SQLAlchemy take most of a second to import, so a start first asks the database whether there is anything to
do at all.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

import psycopg

from scheduler.core.errors import SchemaMismatch
from scheduler.store.connect import connect_once, unreachable
from scheduler.store.rights import lacks_right, missing_grants

if TYPE_CHECKING:
    from sqlalchemy import Connection

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

    Others that migrate at the same time wait their turn by asking again: a session that *waits* for an advisory lock
    would hold back vacuum.
    """
    with connect_once(database_url, "migrate") as connection:
        try:
            known, before = revisions(), current(connection)
            _refuse_newer(before, known)
            applied = _upgrade(database_url, known) if before != known[-1] else ()
            verify(connection)
            if missing_grants(connection):
                raise lacks_right(connection)
        except psycopg.errors.InsufficientPrivilege as error:
            raise lacks_right(connection, error) from None
        except psycopg.OperationalError as error:  # the server went, or its administrator ended the session
            raise unreachable(database_url, error) from None
    return applied


def _refuse_newer(version: str | None, known: tuple[str, ...]) -> None:
    if version is not None and version not in known:
        raise SchemaMismatch(
            f"the database's schema is at {version}, which this version does not know (its newest is {known[-1]}): "
            "a newer Soloist has migrated it. Run that version, or restore the schema."
        )


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


def _upgrade(database_url: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """All that is missing, in one transaction, which also holds the lock: so it works through a pooler as well."""
    from sqlalchemy import NullPool, create_engine  # noqa: PLC0415 - late: slow to import

    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(database_url, application_name="soloist migrate"),
        poolclass=NullPool,
    )
    with _in_the_drivers_words(), engine.connect() as connection:
        while not connection.exec_driver_sql("SELECT pg_try_advisory_xact_lock(%s)", (LOCK,)).scalar_one():
            connection.rollback()
            threading.Event().wait(0.1)
        driver: Any = connection.connection.driver_connection
        before = current(driver)  # somebody may have been here first
        _refuse_newer(before, known)
        if before != known[-1]:
            _run(connection)
        connection.commit()
    return known[known.index(before) + 1 if before else 0 :]


@contextmanager
def _in_the_drivers_words() -> Iterator[None]:
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 - late: slow to import

    try:
        yield
    except DBAPIError as error:
        raise (error.orig if isinstance(error.orig, psycopg.Error) else error) from None


def _run(connection: Connection) -> None:
    from alembic import command  # noqa: PLC0415 - late: slow to import

    connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS soloist")
    with as_file(_ROOT) as path:
        config = _config(str(path), io.StringIO())
        config.attributes["connection"] = connection
        command.upgrade(config, "head")  # in the transaction that is open: Alembic leaves the COMMIT to us


def _config(location: str, out: io.StringIO) -> Any:
    from alembic.config import Config  # noqa: PLC0415 - late: slow to import

    config = Config(output_buffer=out)
    config.set_main_option("script_location", location.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
