"""The server is full, of sessions or of bytes, or it ends what idles: replicas wait, say so once, and go on."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from cluster import Postgres
from pooler import direct
from pulse import accounted, begun, finished, plan, quiet, ticks_go_on
from replicas import Fleet, Nursery, eventually, jobs_file
from sessions import NAMES, terminate_all


@pytest.fixture
def small(postgres: Postgres) -> Postgres:
    """A server with few connections."""
    postgres.stop()
    return postgres.start("max_connections=25")


def _hog(url: str, held: list[psycopg.Connection]) -> None:
    """Take every connection that is to be had, those for superusers too."""
    with suppress(psycopg.OperationalError):
        while True:
            held.append(psycopg.connect(url, autocommit=True, application_name="hog"))


def test_connections_used_up(nursery: Nursery, tmp_path: Path, small: Postgres) -> None:
    fleet = Fleet(nursery, tmp_path, small.url)
    held: list[psycopg.Connection] = []
    ours = "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name"
    try:
        for _ in range(2):
            fleet.start(plan(fleet), lease=5.0).ready()
        begun(fleet)
        _hog(small.url, held)

        def full() -> bool:
            """None of ours is left, and there is no room for one."""
            row = held[0].execute(f"{ours} LIKE 'soloist %'").fetchone()
            _hog(small.url, held)
            return row == (0,)

        eventually(full, "all connections are the hog's")
        late = fleet.start(plan(fleet), "late", lease=5.0)
        eventually(lambda: "too many clients" in late.said(), "who comes now waits, and says what for")
        eventually(lambda: all(r.events("DatabaseLost") for r in fleet.replicas[:2]), "they notice")
        threading.Event().wait(6.0)  # longer than the lease: the state's length is what is tested
        while held:
            held.pop().close()
        late.ready()
        ticks_go_on(fleet)
        finished(fleet)
        accounted(fleet)
        for replica in fleet.replicas[:2]:
            quiet(replica, 2 * len(NAMES))  # each session was ended by itself, some more than once
    finally:
        for connection in held:
            connection.close()
        fleet.close()


@pytest.fixture
def small_disk(postgres: Postgres, cluster_folder: Callable[[], Path]) -> Iterator[str]:
    """The address of a database with the schema on a disk of its own, of 32 MB."""
    if os.geteuid() != 0:
        pytest.skip("a small disk is mounted by root only")
    disk = cluster_folder()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "soloist", str(disk)], check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        space = disk / "space"
        space.mkdir()
        owner = postgres.data.stat()
        os.chown(space, owner.st_uid, owner.st_gid)
        disk.chmod(0o755)
        postgres.sql(
            f"CREATE TABLESPACE small LOCATION '{space}'",
            "CREATE DATABASE small TEMPLATE template0 TABLESPACE small",
        )
        yield postgres.url.replace("/postgres?", "/small?")
    finally:
        postgres.close()  # it has files open there
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk(nursery: Nursery, tmp_path: Path, small_disk: str) -> None:
    fleet = Fleet(nursery, tmp_path, small_disk)
    try:
        for _ in range(2):
            fleet.start(plan(fleet, "200ms"), lease=5.0).ready()
        begun(fleet)
        # of one session: a new one may find no room for what it has to write
        with psycopg.connect(fleet.url, autocommit=True) as person:
            person.execute("CREATE TABLE public.filler (bytes bytea)")
            person.execute("ALTER TABLE public.filler ALTER bytes SET STORAGE EXTERNAL")
            for size in (1_000_000, 8_000, 1):
                with suppress(psycopg.errors.DiskFull):
                    while True:
                        person.execute("INSERT INTO public.filler VALUES (repeat('x', %s)::bytea)", [size])
            for replica in fleet.replicas:
                eventually(lambda replica=replica: replica.events("DatabaseLost"), "it notices")
            assert "No space left on device" in str(fleet.replicas[0].events("DatabaseLost"))
            threading.Event().wait(6.0)  # longer than the lease: the state's length is what is tested
            person.execute("DROP TABLE public.filler")
        ticks_go_on(fleet)
        finished(fleet)
        accounted(fleet, 0.2)
        for replica in fleet.replicas:
            quiet(replica, 2)
    finally:
        fleet.close()


def test_a_database_that_ends_what_idles(fleet: Fleet) -> None:
    """Our sessions idle by design, one of them with a lock: they say for themselves what holds for them."""
    name = fleet.sql("SELECT current_database()")[0][0]
    settings = ("idle_session_timeout", "idle_in_transaction_session_timeout", "statement_timeout")
    patient = "-c statement_timeout=0 -c idle_session_timeout=0"
    with psycopg.connect(direct(fleet.url), autocommit=True, options=patient) as person:
        for setting in settings:
            person.execute(f"ALTER DATABASE {name} SET {setting} = '700ms'")
        for _ in range(2):
            fleet.start(plan(fleet, "2s"), lease=20.0).ready()
        begun(fleet)
        ticks_go_on(fleet, 2)
        for setting in settings:  # for the test's other sessions; those that stand keep theirs
            person.execute(f"ALTER DATABASE {name} RESET {setting}")
    assert finished(fleet) == 1
    accounted(fleet, 2.0, once_only=True)
    for replica in fleet.replicas:
        lost = replica.events("DatabaseLost", "PresenceLost")
        assert not lost, f"{len(lost)} times, first {lost[0]}"


def test_no_transaction_is_open_while_a_job_runs(fleet: Fleet) -> None:
    for _ in range(2):
        fleet.start(plan(fleet), lease=5.0).ready()
    begun(fleet)
    seen: dict[tuple[int, str], int] = {}
    pause = threading.Event()
    for _ in range(100):
        for backend in fleet.sql(
            "SELECT pid, xact_start::text FROM pg_stat_activity WHERE application_name LIKE 'soloist %'"
            " AND state LIKE 'idle in transaction%' AND datname = current_database()"
            " AND xact_start < clock_timestamp() - interval '500 ms'"
        ):
            seen[backend] = seen.get(backend, 0) + 1
        pause.wait(0.02)
    assert {backend: times for backend, times in seen.items() if times > 1} == {}
    finished(fleet)


def test_sessions_that_are_ended_while_all_is_calm_come_back(fleet: Fleet) -> None:
    """Nothing runs and nothing is due: nobody but the sessions' own loops can notice. The settler has none."""
    jobs = jobs_file(work={"call": "effects:append", "every": "1h", "args": {"path": str(fleet.effects)}})
    replica = fleet.start(jobs).ready()
    ours = "SELECT array_agg(pid ORDER BY pid) FROM pg_stat_activity WHERE application_name = ANY(%s)"
    ours += " AND datname = current_database()"

    looking = ["soloist keeper", "soloist worker"]

    def stand() -> set[int]:
        return set(fleet.sql(ours, looking)[0][0] or ())

    eventually(lambda: len(stand()) == len(looking), "its sessions stand")
    before = stand()
    terminate_all(fleet, *NAMES)
    eventually(lambda: len(stand() - before) == len(looking), "and stand again")
    assert replica.exit_code is None
    assert not replica.events("EngineFailed")
