"""Retention: what goes, what stays, and what stops a run that would delete too much."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from jobs.cleanup import expired_rows, history
from scheduler import Cancelled, Fatal, LeaseLost
from scheduler.config.arguments import bind_args, check_args

HALF_DAY = timedelta(hours=12)


@pytest.fixture
def sessions(connection: psycopg.Connection) -> Callable[..., None]:
    """Make `app."Session"`, one row for each day before now."""

    def make(days: int, kind: str = "timestamptz", index: bool = True) -> None:
        now = "now() AT TIME ZONE 'UTC'" if kind != "timestamptz" else "now()"
        connection.execute("CREATE SCHEMA app")
        connection.execute(f'CREATE TABLE app."Session" (id int, "endedAt" {kind})')
        if index:
            connection.execute('CREATE INDEX ON app."Session" ("endedAt")')
        connection.execute(
            f"INSERT INTO app.\"Session\" SELECT n, ({now}) - n * interval '24 hours'"
            f" FROM generate_series(0, {days - 1}) n"
        )
        connection.execute('INSERT INTO app."Session" VALUES (-1, NULL)')

    return make


def left(connection: psycopg.Connection) -> list[int]:
    return [row[0] for row in connection.execute('SELECT id FROM app."Session" WHERE id >= 0 ORDER BY id').fetchall()]


@pytest.mark.parametrize(
    ("kind", "kept"),
    # Row n is n days old, to the second. A date is over when its whole day is: the tenth day before is not.
    [("timestamptz", 10), ("timestamp", 10), ("date", 11)],
)
def test_only_what_is_older_goes(
    begin: Callable, sessions: Callable, connection: psycopg.Connection, kind: str, kept: int
) -> None:
    sessions(40, kind)
    result = expired_rows(begin().context(), "app.Session", "endedAt", timedelta(days=10), batch=7)
    assert left(connection) == list(range(kept))
    assert result["deleted"] == 40 - kept
    assert connection.execute('SELECT count(*) FROM app."Session" WHERE id = -1').fetchone() == (1,)


def test_the_limit_fails_the_run_and_deletes_nothing_more(
    begin: Callable, sessions: Callable, connection: psycopg.Connection
) -> None:
    sessions(40)
    with pytest.raises(Fatal, match=r"max_rows 10 reached and app\.Session has more rows"):
        expired_rows(begin().context(), "app.Session", "endedAt", HALF_DAY, batch=4, max_rows=10)
    assert len(left(connection)) == 30
    assert left(connection)[-1] == 29  # the oldest went first


def test_exactly_the_limit_is_no_failure(begin: Callable, sessions: Callable, connection: psycopg.Connection) -> None:
    sessions(11)
    assert expired_rows(begin().context(), "app.Session", "endedAt", HALF_DAY, batch=4, max_rows=10)["deleted"] == 10
    assert left(connection) == [0]


def test_a_crash_does_not_raise_the_limit(begin: Callable, sessions: Callable, connection: psycopg.Connection) -> None:
    """The second attempt goes on with what the first had left of `max_rows`, and with its cut-off."""
    sessions(40)
    run = begin()
    context = run.context()
    asked = iter([False, False, True])  # cancelled before the third batch, as if it had died there
    run.ports[0].cancelled = lambda: next(asked)  # type: ignore[method-assign]
    with pytest.raises(Cancelled):
        expired_rows(context, "app.Session", "endedAt", HALF_DAY, batch=4, max_rows=10)
    assert len(left(connection)) == 32
    run.take_over()
    with pytest.raises(Fatal, match="max_rows 10"):
        expired_rows(run.context(), "app.Session", "endedAt", HALF_DAY, batch=4, max_rows=10)
    assert len(left(connection)) == 30


def test_a_replica_that_lost_the_run_deletes_nothing(
    begin: Callable, sessions: Callable, connection: psycopg.Connection
) -> None:
    sessions(20)
    run = begin()
    zombie = run.context()
    run.take_over()
    with pytest.raises(LeaseLost):
        expired_rows(zombie, "app.Session", "endedAt", HALF_DAY)
    assert len(left(connection)) == 20


def test_a_dry_run_counts_and_deletes_nothing(
    begin: Callable, sessions: Callable, connection: psycopg.Connection
) -> None:
    sessions(20)
    result = expired_rows(begin().context(), "app.Session", "endedAt", HALF_DAY, max_rows=3, dry_run=True)
    assert (result["expired"], result["deleted"], len(left(connection))) == (19, 0, 20)


def test_rows_that_somebody_holds_are_left_and_nobody_waits(
    begin: Callable, sessions: Callable, connection: psycopg.Connection
) -> None:
    sessions(20)
    with psycopg.connect(connection.info.dsn) as holder:
        holder.execute('SELECT FROM app."Session" WHERE id = 7 FOR UPDATE')
        assert expired_rows(begin().context(), "app.Session", "endedAt", HALF_DAY, batch=5)["deleted"] == 18
    assert left(connection) == [0, 7]


def test_a_column_without_an_index_is_named(
    begin: Callable, sessions: Callable, connection: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    sessions(3, index=False)
    expired_rows(begin().context(), "app.Session", "endedAt", HALF_DAY)
    assert "no index on app.Session (endedAt)" in caplog.text
    assert left(connection) == [0]


def test_an_inheriting_table_is_not_touched(
    begin: Callable, sessions: Callable, connection: psycopg.Connection
) -> None:
    sessions(5)
    connection.execute('CREATE TABLE app.heir () INHERITS (app."Session")')
    connection.execute('INSERT INTO app.heir SELECT 100 + id, "endedAt" FROM ONLY app."Session" WHERE id >= 0')
    expired_rows(begin().context(), "app.Session", "endedAt", HALF_DAY)
    assert left(connection) == [0, *range(100, 105)]


def test_a_reference_in_the_way_is_said_plainly(
    begin: Callable, sessions: Callable, connection: psycopg.Connection
) -> None:
    sessions(5)
    connection.execute('ALTER TABLE app."Session" ADD PRIMARY KEY (id)')
    connection.execute(
        'CREATE TABLE app.child (session int REFERENCES app."Session"); INSERT INTO app.child VALUES (3)'
    )
    with pytest.raises(Fatal, match=r"violates foreign key constraint.*delete what refers to these rows first"):
        expired_rows(begin().context(), "app.Session", "endedAt", HALF_DAY)
    assert len(left(connection)) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": "Session"}, "schema.table"),
        ({"table": 'app."Session"'}, "schema.table"),
        ({"table": "app.Session; DROP TABLE x"}, "schema.table"),
        ({"column": 'endedAt" < now() OR "id'}, "column `name`"),
        ({"table": "soloist.run", "column": "finished_at"}, "is not for this job"),
        ({"table": "pg_catalog.pg_class"}, "is not for this job"),
        ({"table": "app.session"}, "does not exist"),
        ({"column": "nope"}, "does not exist"),
        ({"column": "id"}, "is integer; needed is timestamptz"),
        ({"older_than": timedelta(0)}, "older_than"),
        ({"batch": 0}, "batch"),
        ({"max_rows": -1}, "max_rows"),
        ({"table": "app.parted"}, "not a plain table"),
        ({"table": "app.seen"}, "not a plain table"),
    ],
)
def test_bad_arguments_are_fatal_and_touch_nothing(
    begin: Callable, sessions: Callable, connection: psycopg.Connection, arguments: dict[str, Any], message: str
) -> None:
    sessions(5)
    connection.execute('CREATE VIEW app.seen AS SELECT * FROM app."Session"')
    connection.execute('CREATE TABLE app.parted (id int, "endedAt" timestamptz) PARTITION BY RANGE ("endedAt")')
    with pytest.raises(Fatal, match=message):
        expired_rows(
            begin().context(), **{"table": "app.Session", "column": "endedAt", "older_than": HALF_DAY, **arguments}
        )
    assert len(left(connection)) == 5


def test_the_age_is_a_duration_in_the_jobs_file() -> None:
    given = {"table": "app.Session", "column": "endedAt", "older_than": "30d", "max_rows": 5000}
    assert bind_args(expired_rows, given)["older_than"] == timedelta(days=30)
    assert check_args(expired_rows, {**given, "older_than": 30}) != []
    assert check_args(expired_rows, {**given, "older_than": "30"}) != []


def test_history_follows_the_retention_of_the_newest_configuration(
    begin: Callable, connection: psycopg.Connection
) -> None:
    finished = [begin() for _ in range(4)]
    configure(connection, '{"succeeded": 86400, "failed": 864000, "skipped": 3600}')
    for run in finished:
        finish(connection, run.info.run_id, "succeeded", "2 days")
    run = begin()
    assert history(run.context(), dry_run=True)["deleted"] == {"succeeded": 4, "failed": 0, "skipped": 0}
    with pytest.raises(Fatal, match="max_rows 3 reached after 3 runs"):
        history(run.context(), max_rows=3)
    assert history(run.context())["deleted"] == {"succeeded": 1, "failed": 0, "skipped": 0}
    assert run.status == "running"


def configure(connection: psycopg.Connection, retention: str) -> None:
    connection.execute(
        "INSERT INTO soloist.config (config_hash, generation, content, retention) VALUES ('h', 1, '', %s)", (retention,)
    )


def finish(connection: psycopg.Connection, run_id: Any, status: str, ago: str) -> None:
    """End the run as if it had been made and finished so long ago: its id is as old as it is."""
    connection.execute(
        "UPDATE soloist.run SET status = %(status)s, finished_at = now() - %(ago)s::interval,"
        " id = (lpad(to_hex((extract(epoch FROM now() - %(ago)s::interval) * 1000)::bigint), 12, '0')"
        " || substr(replace(id::text, '-', ''), 13))::uuid WHERE id = %(id)s",
        {"status": status, "ago": ago, "id": run_id},
    )
