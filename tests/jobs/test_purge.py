"""The purge of Soloist's own history: groups, limits, batches; and that it reads no more than it must."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection

from scheduler.store.purge import purge_history
from scheduler.store.sql import load
from scheduler.store.transaction import RunDoor

DAY = 86_400.0
STATUSES = ["succeeded", "failed", "timed_out", "cancelled", "lost", "skipped"]
KEEP = {"succeeded": 30 * DAY, "failed": 180 * DAY, "skipped": 7 * DAY}


@pytest.fixture
def plain(database_url: str) -> Iterator[Connection]:
    door = RunDoor(database_url)
    with door.connect() as connection:
        yield connection
    door.close()


@pytest.fixture
def past(connection: psycopg.Connection) -> Callable[..., None]:
    """Make one run for each status and each of the last `days` days, every other one with an attempt; and live ones."""
    connection.execute(
        "INSERT INTO soloist.job (name, spec, spec_hash, generation, watermark) VALUES ('j', '{}', '', 1, now())"
    )

    def make(days: int, statuses: list[str] = STATUSES) -> None:
        connection.execute(
            """
            INSERT INTO soloist.run (id, job, run_key, scheduled_at, created_at, trigger, status, skip_reason,
                                     exclusive, finished_at)
            SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')
                    || substr(md5(status || d::text), 1, 20))::uuid,
                   (SELECT id FROM soloist.job), status || d, at, at, 'schedule', status,
                   CASE WHEN status = 'skipped' THEN 'missed' END, false, at + interval '1 minute'
            FROM unnest(%s::text[]) status, generate_series(1, %s) d,
                 LATERAL (SELECT now() - d * interval '24 hours' AS at) a
            """,
            (statuses, days),
        )
        connection.execute(
            "INSERT INTO soloist.attempt (run, number, started_at, outcome) SELECT id, 1, scheduled_at, 'succeeded'"
            " FROM soloist.run WHERE status = 'succeeded'"
        )
        connection.execute(
            """
            INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, ready_at, claimed_by,
                                     claimed_until)
            SELECT md5(status)::uuid, (SELECT id FROM soloist.job), 'live-' || status, now() - interval '9 years',
                   'schedule', status, false, now(), gen_random_uuid(), now()
            FROM unnest(ARRAY['waiting', 'queued', 'running']) status
            """
        )

    return make


def counts(connection: psycopg.Connection) -> dict[str, int]:
    rows = connection.execute("SELECT status, count(*) FROM soloist.run GROUP BY status").fetchall()
    return {status: count for status, count in rows}


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_each_group_by_its_own_retention(
    plain: Connection, past: Callable, connection: psycopg.Connection, batch: int
) -> None:
    past(40)
    report = purge_history(plain, retention={**KEEP, "failed": 35 * DAY}, batch=batch)
    assert report.deleted == {"succeeded": 10, "failed": 20, "skipped": 33}
    assert (report.dry_run, report.limit_hit) == (False, False)
    failed = dict.fromkeys(["failed", "timed_out", "cancelled", "lost"], 35)
    live = dict.fromkeys(["waiting", "queued", "running"], 1)
    assert counts(connection) == {"succeeded": 30, "skipped": 7, **failed, **live}
    assert connection.execute("SELECT count(*) FROM soloist.attempt").fetchone() == (30,)
    assert connection.execute("SELECT count(*) FROM soloist.job").fetchone() == (1,)


def test_a_dry_run_reports_and_deletes_nothing(
    plain: Connection, past: Callable, connection: psycopg.Connection
) -> None:
    past(40)
    before = counts(connection)
    report = purge_history(plain, retention=KEEP, max_rows=42, dry_run=True)
    assert report.deleted == {"succeeded": 10, "failed": 0, "skipped": 33}
    assert (report.dry_run, report.limit_hit) == (True, True)
    assert counts(connection) == before


@pytest.mark.parametrize(("limit", "gone", "hit"), [(0, 0, True), (5, 5, True), (42, 42, True), (43, 43, False)])
def test_the_limit(
    plain: Connection, past: Callable, connection: psycopg.Connection, limit: int, gone: int, hit: bool
) -> None:
    past(40)
    before = sum(counts(connection).values())
    report = purge_history(plain, retention=KEEP, batch=20, max_rows=limit)
    assert (sum(report.deleted.values()), report.limit_hit) == (gone, hit)
    assert sum(counts(connection).values()) == before - gone


@pytest.mark.parametrize("kept_for_ever", [{}, {"succeeded": None, "failed": None}, {"skipped": 1e9}])
def test_a_group_without_retention_stays(
    plain: Connection, past: Callable, connection: psycopg.Connection, kept_for_ever: dict[str, Any]
) -> None:
    past(10)
    before = counts(connection)
    assert purge_history(plain, retention=kept_for_ever).deleted == {"succeeded": 0, "failed": 0, "skipped": 0}
    assert counts(connection) == before


def test_without_any_configuration_nothing_is_expired(
    plain: Connection, past: Callable, connection: psycopg.Connection
) -> None:
    past(300)
    assert sum(purge_history(plain).deleted.values()) == 0


def test_the_newest_configuration_counts(plain: Connection, past: Callable, connection: psycopg.Connection) -> None:
    past(20)
    connection.execute(
        "INSERT INTO soloist.config (config_hash, generation, content, retention)"
        """ VALUES ('a', 2, '', '{"skipped": 1296000}'), ('b', 1, '', '{"skipped": 60}')"""
    )
    assert purge_history(plain).deleted == {"succeeded": 0, "failed": 0, "skipped": 5}


def test_an_unknown_group_is_refused(plain: Connection) -> None:
    with pytest.raises(ValueError, match="retention knows succeeded, failed, skipped; not lost"):
        purge_history(plain, retention={"lost": 1.0})


def test_a_locked_run_is_left_and_nobody_waits(
    plain: Connection, past: Callable, connection: psycopg.Connection
) -> None:
    past(40)
    with psycopg.connect(connection.info.dsn) as holder:
        holder.execute("SELECT FROM soloist.run WHERE run_key = 'skipped20' FOR UPDATE")
        assert purge_history(plain, retention=KEEP).deleted["skipped"] == 32
    assert purge_history(plain, retention=KEEP).deleted["skipped"] == 1


@pytest.mark.parametrize(("key", "days"), [("2026-11-29", 2), ("2026-W48", 8), ("2026-11", 32), ("manual:29", 0)])
def test_what_stands_for_a_period_stays_until_that_is_over(
    plain: Connection, past: Callable, connection: psycopg.Connection, key: str, days: int
) -> None:
    """However short the retention: without its row the period's next tick would run once more."""
    past(40, ["succeeded"])
    age = "round(extract(epoch FROM now() - scheduled_at) / 86400)"
    for number in (days - 1, days, days + 1):
        named = f"{key[:-2]}{number:02}" if number > 0 else "another"
        connection.execute(
            f"UPDATE soloist.run SET run_key = %s WHERE status = 'succeeded' AND {age} = %s", (named, number)
        )
    would = purge_history(plain, retention={"succeeded": 60.0}, dry_run=True).deleted
    report = purge_history(plain, retention={"succeeded": 60.0}, max_rows=100)
    assert (report.deleted, report.limit_hit) == (would, False)
    left = connection.execute(f"SELECT {age} FROM soloist.run WHERE status = 'succeeded'").fetchall()
    assert {int(number) for (number,) in left} == {number for number in (days - 1,) if number > 0}


def test_the_walk_is_by_the_primary_key(plain: Connection, past: Callable, connection: psycopg.Connection) -> None:
    """No batch may read the table from end to end, however large the history is."""
    past(2000, ["succeeded"])
    connection.execute("ANALYZE soloist.run, soloist.attempt")
    bounds = {"succeeded": "-infinity", "failed": "-infinity", "skipped": "-infinity"}
    ids = {"after": "00000000-0000-0000-0000-000000000000", "before": "ffffffff-ffff-ffff-ffff-ffffffffffff"}
    plan = connection.execute("EXPLAIN " + load("purge_batch"), {**bounds, **ids, "batch": 50, "room": 50}).fetchall()
    text = "\n".join(row[0] for row in plan)
    assert "run_pkey" in text
    assert "Seq Scan" not in text
