"""The engine's sessions: one autocommit session per room, with a deadline on every call.

A session is cheap to lose: every protocol step is one statement, so whoever gets `ContactLost` waits and starts over
from what the database says.
"""

from __future__ import annotations

import select
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, LiteralString, Protocol

import psycopg

from scheduler.core.errors import SoloistError
from scheduler.store.connect import (
    CONNECT_DEADLINE,
    LOCK_WAIT,
    POOLED_SETTINGS,
    STATEMENT_TIMEOUT,
    Line,
    connect,
    is_full,
    one_line,
    refuses_everyone,
)
from scheduler.store.contact import Contact
from scheduler.store.sql import load
from scheduler.store.watchdog import Watchdog, shut

CALL_DEADLINE = STATEMENT_TIMEOUT  # seconds a protocol statement may take before its socket is shut down
Row = tuple[Any, ...]


class ContactLost(SoloistError):
    """The database did not answer this call. Whether it took effect is not known.

    `everyone`: the server takes nobody at all now, so no other replica can have kept a session.
    """

    exit_code = 8

    def __init__(self, text: str, *, everyone: bool = False) -> None:
        self.everyone = everyone
        super().__init__(text)


class Refused(SoloistError):
    """The database answered, and would not do it: what was sent is wrong, or a right or a table is missing."""

    exit_code = 8

    def __init__(self, text: str, sqlstate: str | None = None) -> None:
        self.sqlstate = sqlstate
        super().__init__(text)


class Blocked(Refused):
    """Somebody holds a lock that this statement needs, and did not let go within LOCK_WAIT: nothing was done."""


class Statements(Protocol):
    """Whatever runs protocol statements: a session, or a transaction of several."""

    def run(self, name: str, params: dict[str, Any]) -> list[Row]:
        """Run `sql/<name>.sql` and return its rows."""


class Session:
    """One room's autocommit session; connects when needed, and again after a loss.

    `epoch` grows with each new connection: what was concluded from several looks holds only within one. Calls
    of several threads are serialised.
    """

    def __init__(self, database_url: str, room: str, watchdog: Watchdog, contact: Contact) -> None:
        self._url, self._room = database_url, room
        self._watchdog, self._contact = watchdog, contact
        self._line: Line | None = None
        self._lock = threading.RLock()
        self._greetings: list[tuple[LiteralString, Sequence[Any]]] = []
        self._direct = False
        self._used_at: float | None = None  # when the present connection last answered
        self.companions: tuple[Session, ...] = ()  # this replica's other sessions
        self.pooled = False
        self.epoch = 0

    def greet_with(self, statement: LiteralString, *params: Any) -> None:
        """A statement that each new connection begins with (LISTEN, locks); not behind a pooler, where it means
        nothing.
        """
        self._greetings.append((statement, params))

    @property
    def connected(self) -> bool:
        """Whether the session stands, as far as is known here."""
        line = self._line
        return line is not None and not line.closed

    @property
    def over(self) -> bool:
        """Whether there is no session, or the server has ended it, noticed here or not."""
        number = self.fileno()
        if number is None:
            return True
        poll = select.poll()
        poll.register(number, select.POLLRDHUP)
        return bool(poll.poll(0))

    def open(self) -> None:
        """Connect if there is no connection: then `pooled` is known. Raises ContactLost."""
        with self._lock:
            self._connected()

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
                raise Refused(one_line(error), error.sqlstate) from error

    def _call(self, statement: LiteralString, params: dict[str, Any] | Sequence[Any], deadline: float) -> list[Row]:
        line = self._connected()
        number, asked_at = self._watchdog.begin(line, deadline), self._contact.now()
        try:
            rows = _ask(line, statement, params)
        except psycopg.Error as error:
            if isinstance(error, psycopg.errors.SerializationFailure | psycopg.errors.DeadlockDetected):
                raise
            if not _is_loss(error, line):
                kind = Blocked if isinstance(error, psycopg.errors.LockNotAvailable) else Refused
                raise kind(one_line(error), error.sqlstate) from error
            self._drop(error)
            raise ContactLost(one_line(error)) from error
        finally:
            self._watchdog.end(number)
        self._contact.worked(self._room, asked_at)
        self._used_at = self._contact.now()
        return rows

    def _connected(self) -> Line:
        if self._line is None:
            try:
                line = connect(self._url, self._room, watchdog=self._watchdog, writes=True)
            except psycopg.Error as error:
                self._contact.failed(self._room, error, refused=is_full(error))
                everyone = refuses_everyone(error, direct=self._direct) and all(one.over for one in self.companions)
                raise ContactLost(one_line(error), everyone=everyone) from error
            self._line, self.pooled, self._direct = line, line.pooled, line.direct
            try:
                self._greet(line)
            except psycopg.Error as error:
                self._drop(error)
                raise ContactLost(one_line(error)) from error
            self.epoch += 1
        return self._line

    def _greet(self, line: Line) -> None:
        """What each new connection begins with; under a deadline too: a proxy may stall here as well."""
        if line.pooled:
            return
        number = self._watchdog.begin(line, CONNECT_DEADLINE)
        try:
            line.execute(f"SET lock_timeout = '{int(LOCK_WAIT * 1000)}ms'")
            for statement, params in self._greetings:
                line.execute(statement, params or None)
        finally:
            self._watchdog.end(number)

    def _drop(self, error: psycopg.Error) -> None:
        """The session is of no use any more."""
        refused = self._line is not None and not self._line.closed
        self._let_go()
        self._contact.failed(self._room, error, refused=refused, used_at=self._used_at)
        self._used_at = None

    def _let_go(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            # the zygote holds a descriptor of the keeper's socket: closing ours alone would end nothing
            shut(line)
            with suppress(psycopg.Error):
                line.close()

    def fileno(self) -> int | None:
        """The socket to wait on for notifications and for the session's end, or None while there is no connection."""
        line = self._line
        with suppress(psycopg.Error):  # its own thread may close it just now
            return None if line is None or line.closed else line.fileno()
        return None

    def notified(self) -> frozenset[str]:
        """The words of the notifications that have arrived, taken off the socket. Never blocks.

        Where the session has ended, an empty one: look again, anything may have been missed.
        """
        with self._lock:
            if self._line is None:
                return frozenset()
            try:
                return frozenset(word.payload for word in self._line.notifies(timeout=0))
            except psycopg.Error as error:
                self._drop(error)
                return frozenset({""})  # the next call reconnects

    def cut(self) -> None:
        """Make a call that is on its way fail now, from another thread. It then raises ContactLost."""
        line = self._line
        if line is not None:
            shut(line)

    def close(self) -> None:
        """End the session in good order; a later call would connect again."""
        with self._lock:
            if self._line is not None:
                with suppress(psycopg.Error):
                    self._line.close()
                self._line = None


def _ask(line: Line, statement: LiteralString, params: dict[str, Any] | Sequence[Any]) -> list[Row]:
    """One round trip. Behind a pooler the values are written into the statement here, so that the settings can stand
    before it in one message: the extended protocol takes one statement a message."""
    if line.pooled:
        cursor: psycopg.Cursor[Any] = psycopg.ClientCursor(line)
        cursor.execute(POOLED_SETTINGS + statement, params or None)
        while cursor.nextset():
            pass
    else:
        cursor = line.execute(statement, params or None, prepare=True)
    return cursor.fetchall() if cursor.description else []


def _is_loss(error: psycopg.Error, line: Line) -> bool:
    """Whether the session is gone, or of no use: closed, cut, or read-only after a failover (25006)."""
    if line.closed or line.broken:
        return True
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return True
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08")[:2] in ("08", "57", "53")
