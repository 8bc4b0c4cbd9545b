"""How connections are opened, and what is learned of each: whether a pooler or a proxy stands between."""

from __future__ import annotations

import errno
import os
import socket
import threading
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.datetime import TimestamptzLoader

from scheduler.core.errors import DatabaseUnreachable
from scheduler.store.watchdog import Watchdog, shut

CONNECT_DEADLINE = 5.0  # seconds for a new connection, and for what it begins with
LOCK_WAIT = 0.2  # seconds: an application's open transaction must not hold up what shares a statement with its row
STATEMENT_TIMEOUT = 10.0  # seconds, for the server; the watchdog has the last word
PATIENCE = STATEMENT_TIMEOUT + 2.0  # seconds that a person's command waits for an answer: the server's word first
_SETTINGS = {
    # psycopg's and SQLAlchemy's isolation switches do not pin it; the connection's options do
    "default_transaction_isolation": r"read\ committed",
    "idle_in_transaction_session_timeout": "5s",
    "idle_session_timeout": "0",  # a replica with nothing to do says nothing for seconds
    "statement_timeout": f"{STATEMENT_TIMEOUT:g}s",
    "TimeZone": "UTC",
    "DateStyle": "ISO",  # the driver reads no other, and a role may have one
    "search_path": "",
    "jit": "off",  # no statement of ours is worth a compilation, whatever the planner thinks that it costs
    # a chunk's plan does not depend on what is in it, and planning it costs as much as running it (measured)
    "plan_cache_mode": "force_generic_plan",
    # it is made while tables may be small, when reading them whole is cheapest, and serves after they have grown; and a
    # bitmap of the queue is read whole and sorted, where an index gives the first few in order
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_mergejoin": "off",
    # the server's side of it: it must notice by itself that a replica is gone, for it holds that replica's locks
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
ISOLATION_ONLY = f"-c default_transaction_isolation={_SETTINGS['default_transaction_isolation']}"
OPTIONS = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
_FOR_PLANS_THAT_LAST = ("plan_cache_mode", "enable_seqscan", "enable_bitmapscan", "enable_mergejoin")
VISIT_OPTIONS = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items() if name not in _FOR_PLANS_THAT_LAST)
"""For a command's questions, each asked once: the planner knows best how (measured: a list 286 ms instead of 2)."""
POOLED_SETTINGS = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; "
    f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT:g}s'; "
    f"SET LOCAL lock_timeout = '{int(LOCK_WAIT * 1000)}ms'; "
    "SET LOCAL TimeZone = 'UTC'; "
    "SET LOCAL DateStyle = 'ISO'; "
    "SET LOCAL search_path = ''; "
    "SET LOCAL jit = off; "
    "SET LOCAL enable_seqscan = off; "
    "SET LOCAL enable_bitmapscan = off; "
    "SET LOCAL enable_mergejoin = off; "
)
"""What stands before each statement behind a pooler, in one message with it and so in one transaction: a plain SET
would reach whoever is given that server session next."""
UNREADABLE = (
    "the database's address cannot be read: it is postgresql://user:password@host:port/name or key=value words, and "
    "special characters of a password are percent-encoded (/ is %2F, @ is %40)"
)
VARIABLE, DIRECT_VARIABLE = "SOLOIST_DATABASE_URL", "SOLOIST_DIRECT_DATABASE_URL"
_NO_OPTIONS = "unsupported startup parameter"  # PgBouncer's word
_REFUSALS = ("the database system is",)  # starting up, shutting down, in recovery mode, not yet accepting connections
_STANDBY = ("server is not running in hot standby mode", "session is read-only")  # not promoted yet
_FULL = ("too many clients", "remaining connection slots", "too many connections")


class _Utc(TimestamptzLoader):
    """Instants in UTC. Behind a pooler the driver never hears of our TimeZone, which comes with each statement."""

    def load(self, data: bytes | bytearray | memoryview) -> datetime:
        """As the driver reads it, in UTC."""
        return super().load(data).astimezone(UTC)


class Line(psycopg.Connection[Any]):
    """An autocommit connection.

    `pooled`: a pooler stands between, so two statements may land on two sessions of the server. `direct`: nothing
    stands between that could refuse or reset a connection in the server's stead.
    """

    pooled = False
    direct = False
    patience: float | None = None
    """Seconds after which a call's socket is shut down; None: there is a watchdog for that, or it may take for ever."""

    def wait(self, gen: PQGen[RV], *words: Any, **more: Any) -> RV:
        """Here the driver waits for the server, in all of its calls."""
        if self.patience is None:
            return super().wait(gen, *words, **more)
        alarm = threading.Timer(self.patience, shut, (self,))
        alarm.daemon = True
        alarm.start()
        try:
            return super().wait(gen, *words, **more)
        finally:
            alarm.cancel()


def connect(
    database_url: str,
    room: str,
    *,
    watchdog: Watchdog | None = None,
    patience: float | None = None,
    writes: bool = False,
    options: str = OPTIONS,
) -> Line:
    """A connection with the engine's session settings. `room`: what pg_stat_activity shows.

    `patience`: the connection's. `writes`: of several hosts the one that takes writes. `options`: settings, where they
    are not the engine's. Raises psycopg.Error; DatabaseUnreachable for no address at all.
    """
    words = read_address(database_url)
    more: dict[str, Any] = {}
    if writes and "target_session_attrs" not in words:
        more["target_session_attrs"] = "read-write"
    try:
        line = _dial(database_url, room, options=f"{words.get('options') or ''} {options}".strip(), **more)
    except psycopg.OperationalError as error:
        if _NO_OPTIONS not in str(error):
            raise
        line = _dial(database_url, room, **more)
    line.patience = patience
    number = None if watchdog is None else watchdog.begin(line, CONNECT_DEADLINE)
    try:
        _learn(line)
        if line.pooled and options != ISOLATION_ONLY:
            line.adapters.register_loader("timestamptz", _Utc)
    except BaseException:
        line.close()
        raise
    finally:
        if watchdog is not None and number is not None:
            watchdog.end(number)
    return line


def _dial(database_url: str, room: str, **more: Any) -> Line:
    return Line.connect(
        database_url,
        autocommit=True,
        application_name=f"soloist {room}",
        connect_timeout=int(CONNECT_DEADLINE),
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=3,
        **more,
    )


def _learn(line: Line) -> None:
    """A pooler gives its clients a process id of its own; a proxy and a NAT give the server another address than
    ours.
    """
    cursor = line.execute("SELECT pg_backend_pid(), host(inet_client_addr()), inet_client_port()", prepare=False)
    pid, address, port = cursor.fetchone() or (0, None, None)
    line.pooled = pid != line.info.backend_pid
    if line.pooled:
        line.prepare_threshold = None  # a statement prepared here may be run by another's session
        line.isolation_level = psycopg.IsolationLevel.READ_COMMITTED  # of transactions of several statements
    line.direct = not line.pooled and _own_name(line) == (address, port)


def _own_name(line: Line) -> tuple[str | None, int | None]:
    """Our end of the connection as the server should see it; no name for a Unix socket."""
    twin = socket.socket(fileno=os.dup(line.fileno()))
    try:
        if twin.family == socket.AF_UNIX:
            return None, None
        name = twin.getsockname()
        return str(name[0]).removeprefix("::ffff:"), int(name[1])
    finally:
        twin.close()


def refuses_everyone(error: BaseException, *, direct: bool) -> bool:
    """Whether this failure to connect says that the server takes nobody: it starts, it stops, or it is not there.

    Then no other replica can have kept a session either. A refusal that a proxy may have made up (not `direct`) says
    nothing of the kind, nor does a server that only reads: sessions that only read are not disturbed by that. A server
    in a smart shutdown tells newcomers the same and keeps who is in: the caller has to know that his own sessions
    ended.
    """
    known = [*_REFUSALS]
    if direct:
        known += [os.strerror(errno.ECONNREFUSED), os.strerror(errno.ENOENT)]
    said = [line for line in str(error).splitlines() if "failed:" in line or "FATAL" in line]
    return bool(said) and all(any(word in line for word in known) for line in said)


def connect_once(database_url: str, room: str, options: str = OPTIONS) -> Line:
    """A connection for a command of a person. Raises DatabaseUnreachable that says what was tried."""
    try:
        return connect(database_url, room, patience=PATIENCE, options=options)
    except psycopg.Error as error:
        raise unreachable(database_url, error) from None


def unreachable(database_url: str, error: BaseException, variable: str = VARIABLE) -> DatabaseUnreachable:
    """The error that says what was tried, and which setting it came from."""
    said = f"cannot reach PostgreSQL at {masked(database_url)}: {one_line(error)}"
    return DatabaseUnreachable(f"{said}\nIs it running, and is {variable} right?", may_heal=_may_heal(error))


def is_full(error: BaseException) -> bool:
    """Whether the server is there and well, and has no room for one more session."""
    return any(word in str(error) for word in _FULL)


def _may_heal(error: BaseException) -> bool:
    """Whether waiting may help: nobody answered, or the server said that it takes nobody just now."""
    text = str(error)
    return "FATAL" not in text or any(word in text for word in (*_REFUSALS, *_STANDBY, *_FULL))


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
