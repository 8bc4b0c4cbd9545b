"""PostgreSQL servers of one test's own: stopped, restarted, filled up, copied to a standby and promoted.

Each begins as a copy of one prepared data folder, so that a server costs a copy and a start, not an initdb.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from patience import give_schema
from started_server import started_server


class Template:
    """A data folder with the schema in its database `postgres`, stopped; and the programs that made it."""

    def __init__(self, folder: Path) -> None:
        made = started_server(folder / "data")
        self.programs: Path = made.bin_path
        self.user: str | None = made.system_user
        give_schema(made.get_uri())
        made.cleanup()
        self.data = folder / "data"


class Postgres:
    """One server. `folder` holds its data and its socket, and belongs to the server's user."""

    def __init__(self, template: Template, folder: Path) -> None:
        self.template, self.folder, self.data = template, folder, folder / "data"
        self.log = folder / "log"
        self.url = f"postgresql://postgres@/postgres?host={folder}"

    def prepare(self) -> None:
        """Fill the data folder from the template."""
        self._own()
        subprocess.run(["cp", "-a", str(self.template.data), str(self.data)], check=True, timeout=60)
        for left in ("postmaster.pid", "postmaster.opts"):
            (self.data / left).unlink(missing_ok=True)

    def _own(self) -> None:
        """Let the server's user have the folder: PostgreSQL does not run as root."""
        self.folder.chmod(0o755)
        if self.template.user is not None:
            account = pwd.getpwnam(self.template.user)
            os.chown(self.folder, account.pw_uid, account.pw_gid)

    def run(self, program: str, *words: str) -> None:
        """One of PostgreSQL's programs, as the server's user."""
        command = [str(self.template.programs / program), *words]
        done = subprocess.run(
            command, user=self.template.user, capture_output=True, cwd="/", timeout=90, check=False, text=True
        )
        said = self.log.read_text(errors="replace")[-2000:] if done.returncode and self.log.exists() else ""
        assert done.returncode == 0, f"{program}: {done.stderr}{said}"

    def control(self, *words: str) -> None:
        """pg_ctl, and wait for what it does."""
        self.run("pg_ctl", "-D", str(self.data), "-w", *words)

    def start(self, *settings: str) -> Postgres:
        """Start it, with further `settings` (name=value)."""
        fixed = ("listen_addresses=", f"unix_socket_directories={self.folder}", "shared_buffers=16MB")
        options = " ".join(f"-c {setting}" for setting in (*fixed, *settings))
        self.control("-l", str(self.log), "-o", options, "start")
        return self

    def stop(self, mode: str = "fast") -> None:
        self.control("-m", mode, "stop")

    def restart(self, mode: str = "fast") -> None:
        self.stop(mode)
        self.start()

    def standby(self, folder: Path) -> Postgres:
        """A streaming standby of this server, started; it has all that is here now."""
        made = Postgres(self.template, folder)
        made._own()
        source = f"host={self.folder} user=postgres"
        self.run("pg_basebackup", "-D", str(made.data), "-R", "-X", "stream", "-c", "fast", "-d", source)
        return made.start()

    def promote(self) -> None:
        self.control("promote")

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run them, each by itself; the rows of the last."""
        rows: list[tuple[Any, ...]] = []
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)  # type: ignore[call-overload]
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def pid(self) -> int | None:
        """The postmaster's, while there is one."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split(maxsplit=1)[0])
        except (OSError, ValueError, IndexError):
            return None
        return pid if psutil.pid_exists(pid) else None

    def close(self) -> None:
        with suppress(AssertionError):  # it may be stopping just now, by itself
            if self.pid() is not None:
                self.control("-m", "immediate", "stop")
        assert self.pid() is None, self.log.read_text(errors="replace")[-2000:]


@pytest.fixture(scope="session")
def template_cluster() -> Iterator[Template]:
    """The prepared data folder of this session's servers."""
    folder = Path(tempfile.mkdtemp(prefix="st-"))
    yield Template(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cluster_folder() -> Iterator[Callable[[], Path]]:
    """New folders with short names: a socket's path may have 107 bytes."""
    made: list[Path] = []

    def new() -> Path:
        made.append(Path(tempfile.mkdtemp(prefix="sc-")))
        return made[-1]

    yield new
    for folder in made:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(template_cluster: Template, cluster_folder: Callable[[], Path]) -> Iterator[Postgres]:
    """A server of the test's own, running, with the schema in it."""
    made = Postgres(template_cluster, cluster_folder())
    made.prepare()
    yield made.start()
    made.close()
