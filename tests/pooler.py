"""A PgBouncer for tests, in transaction mode: each statement may run on another server connection than the last.

It runs as the server's own account (as root it refuses to) and listens on a Unix socket in a folder of its own.
`SOLOIST_TEST_POOLER` leads the whole integration suite through one; see `MODES`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

import psycopg
import pytest

VARIABLE = "SOLOIST_TEST_POOLER"
MODES = {"transaction": 20, "small": 2}  # server connections for one user and database
PORT = 6432  # of the socket's name only
_DIRECT: dict[str, str] = {}  # a pooler's host -> the query words of the server behind it

_CONFIG = """
[databases]
* = host={host} port={port} auth_user=postgres

[pgbouncer]
listen_addr =
listen_port = {listen}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
auth_query = SELECT rolname, '' FROM pg_catalog.pg_roles WHERE rolname = $1
admin_users = pooler
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 500
max_db_connections = 0
pidfile =
logfile = {folder}/log
server_login_retry = 0.2
{more}
"""


def program() -> str | None:
    """PgBouncer's path; Debian puts it where only root's PATH leads."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def mode() -> str | None:
    """The mode in which this test session leads through a pooler, or None: it does not."""
    asked = os.environ.get(VARIABLE) or None
    if asked is not None and asked not in MODES:
        raise pytest.UsageError(f"{VARIABLE}={asked}: it is one of {', '.join(MODES)}")
    return asked


def direct(url: str) -> str:
    """The same database and user without the pooler; a URL that leads through none comes back as it is."""
    parts = urlsplit(url)
    host = parse_qs(parts.query).get("host", [""])[0]
    return urlunsplit(parts._replace(query=_DIRECT.get(host, parts.query)))


def own_session(test: pytest.Item, url: str) -> dict[str, str]:
    """Settings for the replicas of a test: one marked `own_session` gets the direct URL beside a pooled one."""
    marked = test.get_closest_marker("own_session") is not None
    return {"direct_database_url": direct(url)} if marked and direct(url) != url else {}


class Pooler:
    """One PgBouncer before the server of `server_url`, until `close`; its folder is made below `parent`.

    `size`: its server connections for one user and database. `options`: what it does with the `options` of a
    connection that asks for some: refuse the connection (as it comes), or ignore them without a word (as many run it).
    Each role of the server may pass, without a password.
    """

    def __init__(
        self,
        server_url: str,
        parent: Path,
        size: int = MODES["transaction"],
        options: str = "refuse",
    ) -> None:
        found = program()
        if found is None:
            pytest.skip("PgBouncer is not installed")
        self.folder = folder = Path(tempfile.mkdtemp(prefix="pb-", dir=parent))
        words = parse_qs(urlsplit(server_url).query)
        host, port = words["host"][0], words.get("port", ["5432"])[0]
        more = "ignore_startup_parameters = extra_float_digits, options" if options == "ignore" else ""
        config = _CONFIG.format(host=host, port=port, listen=PORT, folder=folder, size=size, more=more)
        (folder / "ini").write_text(config)
        (folder / "users").write_text('"pooler" ""\n"postgres" ""\n')
        self._account = _owner_of(Path(host))
        if self._account is not None:
            os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        self._program = found
        _DIRECT[str(folder)] = urlsplit(server_url).query
        self.start()

    def start(self) -> None:
        """Begin to listen; also again, after `close`."""
        from replicas import eventually  # late: it imports this module

        account = self._account
        self._process = subprocess.Popen(
            [self._program, "-q", str(self.folder / "ini")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            user=None if account is None else account.pw_uid,
            group=None if account is None else account.pw_gid,
            extra_groups=None if account is None else [],
        )
        eventually(self._answers, "PgBouncer listens")

    def _answers(self) -> bool:
        assert self._process.poll() is None, f"PgBouncer ended by itself:\n{self._said()}"
        with suppress(psycopg.Error):
            self.ask("SHOW VERSION")
            return True
        return False

    def _said(self) -> str:
        log = self.folder / "log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else ""

    def url_of(self, url: str) -> str:
        """A URL of the server behind, led through this pooler."""
        query = f"host={quote(str(self.folder), safe='')}&port={PORT}"
        return urlunsplit(urlsplit(url)._replace(query=query))

    def ask(self, command: str) -> list[tuple[object, ...]]:
        """A command of its own console (SHOW POOLS, PAUSE, …)."""
        # it knows only the simple query protocol
        with psycopg.connect(
            f"host={self.folder} port={PORT} dbname=pgbouncer user=pooler",
            autocommit=True,
            cursor_factory=psycopg.ClientCursor,
            connect_timeout=30,
        ) as console:
            cursor = console.execute(command)  # type: ignore[call-overload]
            return list(cursor.fetchall()) if cursor.description else []

    def server_connections(self, database: str) -> int:
        """How many connections to this database it holds just now."""
        return sum(1 for row in self.ask("SHOW SERVERS") if row[2] == database)

    def close(self) -> None:
        """End it now: clients and server connections go with it."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)


def _owner_of(socket_folder: Path) -> pwd.struct_passwd | None:
    """The server's account, when this process is root; else PgBouncer runs as whoever runs the tests."""
    if os.geteuid() != 0:
        return None
    socket = next(socket_folder.glob(".s.PGSQL.*[0-9]"))
    return pwd.getpwuid(socket.stat().st_uid)
