"""A person's visit to the database: one short connection, and its errors in words that say what to do next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import psycopg
from sqlalchemy import Connection, NullPool, create_engine
from sqlalchemy.exc import DBAPIError

from scheduler.core.clock import Clock
from scheduler.core.errors import AlreadyRunning, DatabaseUnreachable, SchemaMismatch
from scheduler.core.events import Bus
from scheduler.store.connect import VISIT_OPTIONS, connect_once, masked, one_line
from scheduler.store.contact import Contact
from scheduler.store.engine import Blocked, ContactLost, Refused, Session
from scheduler.store.rights import ALL, lacks_right
from scheduler.store.watchdog import Watchdog

Answer = TypeVar("Answer")
PATIENT = 25  # tries, each of which waits LOCK_WAIT for a lock by itself
NO_SCHEMA = (
    "this database has no Soloist schema of this version: start `soloist serve`, or run `soloist migrate`, "
    "and check that SOLOIST_DATABASE_URL names the right database"
)
LOCKED = (
    "somebody holds a lock on a row that this needs and does not let go, so nothing was done; an open transaction? "
    "pg_stat_activity shows who is idle in one; try again"
)


@contextmanager
def visit(database_url: str, room: str) -> Iterator[Connection]:
    """An autocommit SQLAlchemy connection for one command. `room`: what pg_stat_activity shows.

    Raises DatabaseUnreachable and SchemaMismatch, also for what goes wrong inside the block.
    """
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: connect_once(database_url, room, VISIT_OPTIONS),
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
    )
    with _in_words(database_url), engine.connect() as connection:
        yield connection


@contextmanager
def visit_session(database_url: str, room: str, clock: Clock) -> Iterator[Session]:
    """An engine session for one command, to run the protocol's statements with. Raises as `visit` does."""
    session = Session(database_url, room, Watchdog(clock), Contact(Bus(), room, clock))
    with _in_words(database_url):
        try:
            yield session
        finally:
            session.close()


def patiently(ask: Callable[[], Answer]) -> Answer:
    """Ask again while somebody holds a lock that is needed. Raises Blocked when he does not let go for some seconds."""
    for _ in range(PATIENT - 1):
        with suppress(Blocked):
            return ask()
    return ask()


@contextmanager
def _in_words(database_url: str) -> Iterator[None]:
    try:
        yield
    except ContactLost as error:
        raise _lost(database_url, error) from None
    except (psycopg.Error, DBAPIError, Refused) as error:
        cause: object = error
        if isinstance(error, DBAPIError):
            cause = error.orig
        elif isinstance(error, Refused):
            cause = error.__cause__
        match cause:
            case (
                psycopg.errors.UndefinedTable() | psycopg.errors.UndefinedColumn() | psycopg.errors.InvalidSchemaName()
            ):
                raise SchemaMismatch(NO_SCHEMA) from None
            case psycopg.errors.InsufficientPrivilege():
                with connect_once(database_url, "rights") as connection:
                    raise lacks_right(connection, cause, ALL) from None
            case psycopg.errors.LockNotAvailable():
                raise AlreadyRunning(LOCKED) from None
            case psycopg.OperationalError():
                raise _lost(database_url, cause) from None
        raise


def _lost(database_url: str, error: BaseException) -> DatabaseUnreachable:
    return DatabaseUnreachable(
        f"PostgreSQL at {masked(database_url)} did not answer: {one_line(error)}\n"
        "Is it running, and is SOLOIST_DATABASE_URL right?"
    )
