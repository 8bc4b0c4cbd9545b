"""The schema: made once, by however many at once; refused when it is newer or lacks what safety rests on."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import psycopg
import pytest
from pooler import direct
from proxy import Proxy
from scene import Scene, spec

from scheduler.core.errors import DatabaseUnreachable, SchemaMismatch
from scheduler.store.engine import Refused
from scheduler.store.migrate import NEEDED_INDEXES, migrate, revisions, script, verify

APPLIED = {
    "0001_initial": "585e26e9b5486280",
    "0002_guards": "345dfb3f370c3c8a",
    "0003_cheaper_runs": "f55d0208b4280856",
    "0004_pauses": "256551e9f37036b3",
    "0005_purge": "248236e34f583027",
    "0006_bounded_instants": "62303c601eb8a65f",
}


def _execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[call-overload]


def test_a_migration_that_others_have_applied_is_never_edited() -> None:
    """Their databases would lack what was added to it. A change is a migration of its own, and a line here."""
    found = {
        path.stem: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in Path(str(files("scheduler.store").joinpath("migrations/versions"))).glob("*.sql")
    }
    assert found == APPLIED
    assert sorted(found) == sorted(revisions())


def test_many_that_start_at_once_make_it_once(empty_database_url: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        applied = list(threads.map(migrate, [empty_database_url] * 4))
    assert sorted(applied, key=len)[-1] == revisions()
    with psycopg.connect(empty_database_url) as connection:
        verify(connection)
        assert connection.execute("SELECT count(*) FROM soloist.alembic_version").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone() == (0,)
    assert migrate(empty_database_url) == ()


def test_the_printed_script_makes_the_same_schema(empty_database_url: str, connection: psycopg.Connection) -> None:
    _execute(empty_database_url, script())
    assert migrate(empty_database_url) == ()
    look = (
        "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns"
        " WHERE table_schema = 'soloist' ORDER BY 1, 2"
    )
    with psycopg.connect(empty_database_url) as other:
        assert other.execute(look).fetchall() == connection.execute(look).fetchall()


def test_instants_that_no_replica_could_read_are_moved_to_the_bound_and_refused_from_then_on(scene: Scene) -> None:
    """As a pause of before could leave them: until a year that Python does not have, or until infinity."""
    scene.jobs(spec("a"), spec("b"), spec("c"))
    scene.sql("ALTER TABLE soloist.job DROP CONSTRAINT job_instants_from_1900_to_2999")
    scene.sql("ALTER TABLE soloist.audit DROP CONSTRAINT audit_until_from_1900_to_2999")
    scene.sql("UPDATE soloist.alembic_version SET version_num = '0005_purge'")
    far = {"a": "infinity", "b": "10000-01-01 13:00:00+00", "c": "0044-03-15 12:00:00+00 BC"}
    for job, until in far.items():
        scene.sql("UPDATE soloist.job SET paused_at = now(), paused_until = %s WHERE name = %s", until, job)
        scene.sql("INSERT INTO soloist.audit (who, action, job, until) VALUES ('ann', 'pause', %s, %s)", job, until)
    with pytest.raises(Refused, match="timestamp too"):
        scene.known()
    assert migrate(direct(scene.url)) == ("0006_bounded_instants",)
    first, last = datetime(1900, 1, 1, tzinfo=UTC), datetime(2999, 12, 31, 23, 59, 59, tzinfo=UTC)
    moved = {"a": last, "b": last, "c": first}
    assert {job.name: job.paused_until for job in scene.known().values()} == moved
    assert {row["job"]: row["until"] for row in scene.sql("SELECT job, until FROM soloist.audit")} == moved
    for column, value in (("paused_until", "infinity"), ("watermark", "infinity"), ("removed_at", "-infinity")):
        with pytest.raises(psycopg.errors.CheckViolation, match="job_instants_from_1900_to_2999"):
            scene.sql(f"UPDATE soloist.job SET {column} = %s", value)
    with pytest.raises(psycopg.errors.CheckViolation, match="audit_until_from_1900_to_2999"):
        scene.sql("UPDATE soloist.audit SET until = '3000-01-01 00:00:00+00'")


@pytest.mark.case("C048")
@pytest.mark.parametrize("index", sorted(NEEDED_INDEXES))
def test_a_missing_index_is_named_and_the_start_refused(database_url: str, index: str) -> None:
    if index.endswith("_pkey") or index == "run_once":
        table = index.partition("_")[0]
        _execute(database_url, f"ALTER TABLE soloist.{table} DROP CONSTRAINT {index} CASCADE")
    else:
        _execute(database_url, f"DROP INDEX soloist.{index}")
    with pytest.raises(SchemaMismatch, match=f"soloist.{index}"):
        migrate(database_url)


@pytest.mark.case("C048")
def test_an_invalid_index_counts_as_missing(database_url: str) -> None:
    _execute(
        database_url, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'soloist.run_exclusive'::regclass"
    )
    with pytest.raises(SchemaMismatch, match="run_exclusive"):
        migrate(database_url)


def test_a_newer_schema_is_refused_by_name(database_url: str) -> None:
    _execute(database_url, "UPDATE soloist.alembic_version SET version_num = '9999_future'")
    with pytest.raises(SchemaMismatch, match="9999_future"):
        migrate(database_url)


def test_a_role_without_rights_is_told_what_to_do(server: object, empty_database_url: str) -> None:
    _execute(empty_database_url, "DROP ROLE IF EXISTS poor; CREATE ROLE poor LOGIN")
    poor = empty_database_url.replace("postgres:@", "poor:@")
    assert poor != empty_database_url
    with pytest.raises(DatabaseUnreachable, match="lacks a right"):
        migrate(poor)
    _execute(empty_database_url, "DROP ROLE poor")


@pytest.mark.own_session
def test_a_session_that_is_cut_anywhere_ends_with_one_sentence(database_url: str) -> None:
    with Proxy(database_url) as proxy:
        assert migrate(proxy.url) == ()
        whole = proxy.to_client
        for nbytes in range(0, whole, whole // 25):
            cut = proxy.cut_after(nbytes, "client", matching=b"soloist migrate")
            with pytest.raises(DatabaseUnreachable, match="cannot reach PostgreSQL"):
                migrate(proxy.url)
            assert cut.happened.wait(60)
