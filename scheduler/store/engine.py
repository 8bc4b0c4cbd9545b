"""Connections of the engine: one autocommit session per room, with a deadline on every call.

A session is cheap to lose: every protocol step is one statement, so whoever gets `ContactLost` waits and starts over
from what the database says.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, LiteralString, Protocol

import psycopg
from psycopg.conninfo import conninfo_to_dict

from scheduler.core.clock import Clock
from scheduler.core.errors import DatabaseUnreachable, SoloistError
from scheduler.core.events import Bus, DatabaseLost, DatabaseRegained
from scheduler.store.sql import load
from scheduler.store.watchdog import Watchdog, shut

CALL_DEADLINE = 10.0  # seconds a protocol statement may take before its socket is shut down
CONNECT_DEADLINE = 5.0
LOCK_WAIT = 0.2  # seconds: an application's open transaction must not hold up what shares a statement with its row
OPTIONS = " ".join(
    (
        # psycopg's and SQLAlchemy's isolation switches do not pin it; the connection's options do
        r"-c default_transaction_isolation=read\ committed",
        "-c idle_in_transaction_session_timeout=5s",
        "-c statement_timeout=10s",
        "-c TimeZone=UTC",
        "-c search_path=",
        # a chunk's plan does not depend on what is in it, and planning it costs as much as running it (measured)
        "-c plan_cache_mode=force_generic_plan",
    )
)
UNREADABLE = (
    "the database's address cannot be read: it is postgresql://user:password@host:port/name or key=value words, and "
    "special characters of a password are percent-encoded (/ is %2F, @ is %40)"
)
Row = tuple[Any, ...]


class ContactLost(SoloistError):
    """The database did not answer this call. Whether it took effect is not known."""

    exit_code = 8


class Refused(SoloistError):
    """The database answered, and would not do it: what was sent is wrong, or a right or a table is missing."""

    exit_code = 8


class Blocked(Refused):
    """Somebody holds a lock that this statement needs, and did not let go within LOCK_WAIT: nothing was done."""


class Statements(Protocol):
    """Whatever runs protocol statements: a session, or a transaction of several."""

    def run(self, name: str, params: dict[str, Any]) -> list[Row]:
        """Run `sql/<name>.sql` and return its rows."""


class Contact:
    """Whether the database answers, told once per change: one line in the log for an outage, not a thousand."""

    def __init__(self, bus: Bus, replica: str, clock: Clock) -> None:
        self._bus, self._replica, self._clock = bus, replica, clock
        self._lock = threading.Lock()
        self._lost_at: float | None = None
        self._tries = 0

    def failed(self, room: str, error: BaseException) -> None:
        """A call failed for want of an answer."""
        with self._lock:
            self._tries += 1
            first = self._lost_at is None
            if first:
                self._lost_at = self._clock.boottime()
        if first:
            self._bus.publish(DatabaseLost(replica=self._replica, room=room, error=one_line(error)))

    def worked(self, room: str) -> None:
        """A call came back."""
        if not self._tries:  # the common case, without the lock
            return
        with self._lock:
            lost_at, tries = self._lost_at, self._tries
            self._lost_at, self._tries = None, 0
        if lost_at is None:
            return
        after = self._clock.boottime() - lost_at
        self._bus.publish(DatabaseRegained(replica=self._replica, room=room, after=after, tries=tries))


class Session:
    """One room's autocommit session; connects when needed, and again after a loss.

    `epoch` grows with each new connection: what was concluded from several looks holds only within one. Calls
    of several threads are serialised.
    """

    def __init__(self, database_url: str, room: str, watchdog: Watchdog, contact: Contact) -> None:
        self._url, self._room = database_url, room
        self._watchdog, self._contact = watchdog, contact
        self._connection: psycopg.Connection[Any] | None = None
        self._lock = threading.RLock()
        self._greeting: LiteralString | None = None
        self.epoch = 0

    def greet_with(self, statement: LiteralString) -> None:
        """A statement that each new connection begins with (LISTEN)."""
        self._greeting = statement

    def run(self, name: str, params: dict[str, Any], *, deadline: float = CALL_DEADLINE) -> list[Row]:
        """Run `sql/<name>.sql` and return its rows. Raises ContactLost and Refused."""
        return self.execute(load(name), params, deadline=deadline)

    def execute(
        self,
        statement: LiteralString,
        params: dict[str, Any] | Sequence[Any] = (),
        *,
        deadline: float = CALL_DEADLINE,
    ) -> list[Row]:
        """As `run`, with the statement itself. A serialisation failure is repeated three times."""
        with self._lock:
            for _ in range(3):
                with suppress(psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                    return self._call(statement, params, deadline)
            try:
                return self._call(statement, params, deadline)
            except psycopg.Error as error:
                raise Refused(one_line(error)) from error

    def _call(self, statement: LiteralString, params: dict[str, Any] | Sequence[Any], deadline: float) -> list[Row]:
        connection = self._connected()
        number = self._watchdog.begin(connection, deadline)
        try:
            cursor = connection.execute(statement, params or None, prepare=True)
            rows: list[Row] = cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            if isinstance(error, psycopg.errors.SerializationFailure | psycopg.errors.DeadlockDetected):
                raise
            if not _is_loss(error, connection):
                kind = Blocked if isinstance(error, psycopg.errors.LockNotAvailable) else Refused
                raise kind(one_line(error)) from error
            self._drop(error)
            raise ContactLost(one_line(error)) from error
        finally:
            self._watchdog.end(number)
        self._contact.worked(self._room)
        return rows

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            try:
                self._connection = connect(self._url, self._room)
                self._begin(self._connection)
            except psycopg.Error as error:
                self._drop(error)
                raise ContactLost(one_line(error)) from error
            self.epoch += 1
        return self._connection

    def _begin(self, connection: psycopg.Connection[Any]) -> None:
        """What each new connection begins with; under a deadline too: a proxy may stall here as well."""
        number = self._watchdog.begin(connection, CONNECT_DEADLINE)
        try:
            connection.execute(f"SET lock_timeout = '{int(LOCK_WAIT * 1000)}ms'")
            if self._greeting:
                connection.execute(self._greeting)
        finally:
            self._watchdog.end(number)

    def _drop(self, error: psycopg.Error) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None
        self._contact.failed(self._room, error)

    def fileno(self) -> int | None:
        """The socket to wait on for notifications, or None while there is no connection."""
        connection = self._connection
        return None if connection is None or connection.closed else connection.fileno()

    def notified(self) -> bool:
        """Whether notifications have arrived; takes them off the socket. Never blocks."""
        with self._lock:
            if self._connection is None:
                return False
            try:
                return bool(list(self._connection.notifies(timeout=0)))
            except psycopg.Error as error:
                self._drop(error)
                return True  # look again: the next call reconnects

    def cut(self) -> None:
        """Make a call that is on its way fail now, from another thread. It then raises ContactLost."""
        connection = self._connection
        if connection is not None:
            shut(connection)

    def close(self) -> None:
        """End the session; a later call would connect again."""
        with self._lock:
            if self._connection is not None:
                with suppress(psycopg.Error):
                    self._connection.close()
                self._connection = None


def connect(database_url: str, room: str) -> psycopg.Connection[Any]:
    """An autocommit connection with the engine's session settings. Raises DatabaseUnreachable for no address at all."""
    read_address(database_url)
    return psycopg.connect(
        database_url,
        autocommit=True,
        application_name=f"soloist {room}",
        connect_timeout=int(CONNECT_DEADLINE),
        options=OPTIONS,
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
    )


def connect_once(database_url: str, room: str) -> psycopg.Connection[Any]:
    """A connection for a command of a person. Raises DatabaseUnreachable that says what was tried."""
    try:
        return connect(database_url, room)
    except psycopg.Error as error:
        raise DatabaseUnreachable(
            f"cannot reach PostgreSQL at {masked(database_url)}: {one_line(error)}\n"
            "Is it running, and is SOLOIST_DATABASE_URL right?"
        ) from None


def read_address(database_url: str) -> dict[str, Any]:
    """The address in libpq's words. Raises DatabaseUnreachable; it quotes nothing."""
    try:
        words = conninfo_to_dict(database_url)
    except psycopg.Error:
        raise DatabaseUnreachable(UNREADABLE) from None
    port = str(words.get("port") or "")
    if not all(part.isdigit() for part in port.split(",") if part) or "@" in str(words.get("dbname") or ""):
        raise DatabaseUnreachable(UNREADABLE)  # a / or @ in the password has torn it apart
    return words


def masked(database_url: str) -> str:
    """The address with no password in it, fit for logs."""
    try:
        words = read_address(database_url)
    except DatabaseUnreachable:
        return "(an address that libpq cannot read)"
    host, port = words.get("host") or "the local socket", words.get("port")
    user = f"{words['user']}@" if words.get("user") else ""
    secret = ":***" if words.get("password") else ""
    if secret and user:
        user = f"{words['user']}{secret}@"
    return f"{user}{host}{f':{port}' if port else ''}/{words.get('dbname') or ''}"


def one_line(error: BaseException) -> str:
    """The error's first lines as one, without the driver's repetition."""
    return " ".join(str(error).split())[:500] or type(error).__name__


def _is_loss(error: psycopg.Error, connection: psycopg.Connection[Any]) -> bool:
    """Whether the session is gone, or of no use: closed, cut, or read-only after a failover (25006)."""
    if connection.closed or connection.broken:
        return True
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return True
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08")[:2] in ("08", "57", "53")
