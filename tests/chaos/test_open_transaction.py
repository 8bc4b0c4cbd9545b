"""Somebody else's open transaction, or a body's own long one, holds up no other job's claim, renewal or finish."""

from __future__ import annotations

import uuid

import psycopg
import pytest
from replicas import Fleet, eventually, jobs_file, once

HELD_UP = 45.0  # seconds: the transaction stays open; a statement that waited for it would be a loss after ten


def _tick(fleet: Fleet, **fields: object) -> dict[str, object]:
    entry = {"call": "effects:append", "every": "200ms", "overlap": "allow", "isolation": "thread"}
    return {**entry, "args": {"path": str(fleet.effects)}, **fields}


def _goes_on(fleet: Fleet, job: str, ticks: int, within: float) -> None:
    seen = len(fleet.lines(job))
    eventually(lambda: len(fleet.lines(job)) >= seen + ticks, f"{ticks} more ticks of {job} run", within)


def _enqueue(connection: psycopg.Connection, job: str, status: str) -> None:
    connection.execute(
        "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, ready_at)"
        " SELECT %s, id, 'manual:1', now(), 'manual', %s, spec ->> 'overlap' = 'skip', now()"
        " FROM soloist.job WHERE name = %s",
        (uuid.uuid4(), status, job),
    )


@pytest.mark.parametrize(
    ("overlap", "status"),
    [("allow", "queued"), ("skip", "waiting"), ("skip", "queued")],
    ids=["allow-queued", "skip-waiting", "skip-queued"],
)
def test_an_open_transaction_that_enqueued_a_run_holds_up_no_other_job(fleet: Fleet, overlap: str, status: str) -> None:
    """The last case is the hard one: its row stands in the way of the job's own tick, in the overlap index."""
    jobs = jobs_file(enqueued=_tick(fleet, overlap=overlap), other=_tick(fleet))
    for _ in range(2):
        fleet.start(jobs).ready()
    _goes_on(fleet, "other", 3, 30)
    with psycopg.connect(fleet.url) as user:
        eventually(lambda: not fleet.sql("SELECT 1 FROM soloist.run WHERE exclusive AND finished_at IS NULL"), "calm")
        _try_enqueue(user, status)
        for _ in range(4):
            _goes_on(fleet, "other", 5, HELD_UP)
        if (overlap, status) != ("skip", "queued"):
            _goes_on(fleet, "enqueued", 5, HELD_UP)
        user.commit()
    eventually(
        lambda: fleet.sql("SELECT 1 FROM soloist.run WHERE run_key = 'manual:1' AND status = 'succeeded'"), "it ran"
    )
    for replica in fleet.replicas:
        assert replica.exit_code is None, replica.said()
        assert not replica.events("DatabaseLost", "EngineFailed", "LeaseLostEvent")


def _try_enqueue(user: psycopg.Connection, status: str) -> None:
    """Between two ticks: while one runs, the index itself refuses."""

    def done() -> bool:
        try:
            _enqueue(user, "enqueued", status)
        except psycopg.errors.UniqueViolation:
            user.rollback()
            return False
        return True

    eventually(done, "the user's insert finds the job at rest")


@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_a_body_that_sits_in_its_transaction_keeps_its_run_and_holds_up_nobody(fleet: Fleet, isolation: str) -> None:
    """Far longer than its lease. Its row is locked only in the moment of its COMMIT."""
    fleet.sql("CREATE TABLE public.effect (run uuid NOT NULL)")
    sit = {"call": "effects:in_transaction", **once(), "isolation": isolation}
    held = {"call": "effects:hold", **once(), "args": {"path": str(fleet.effects), "gate": str(fleet.gate)}}
    jobs = jobs_file(
        sit={**sit, "args": {"path": str(fleet.effects), "seconds": 10}}, held=held, other=_tick(fleet, every="500ms")
    )
    for _ in range(2):
        fleet.start(jobs, lease=4.0).ready()
    eventually(lambda: fleet.lines("inside"), "it sits in its transaction")
    meanwhile = 0
    while not fleet.lines("outside"):
        _goes_on(fleet, "other", 2, HELD_UP)
        meanwhile += not fleet.lines("outside")
        assert fleet.sql("SELECT count(*) FROM soloist.run WHERE status = 'running' AND claimed_until < now()") == [
            (0,)
        ]
    assert meanwhile >= 2, "ticks come while it sits there, and not only afterwards"
    fleet.gate.touch()
    for job in ("sit", "held"):
        eventually(lambda job=job: fleet.statuses(job) == [("succeeded", 1)], f"{job} succeeds at its first attempt")
    assert fleet.sql("SELECT count(*) FROM public.effect") == [(1,)]
    for replica in fleet.replicas:
        assert not replica.events("RunTakenOver", "LeaseLostEvent", "WriteFenced", "EngineFailed")


@pytest.mark.case("C050")
def test_no_transaction_of_ours_is_open_while_a_body_runs(fleet: Fleet) -> None:
    held = {"call": "effects:hold", **once(), "args": {"path": str(fleet.effects), "gate": str(fleet.gate)}}
    fleet.start(jobs_file(held=held)).ready()
    eventually(lambda: fleet.lines("begin"), "the body begins")
    for _ in range(30):
        longest = fleet.sql(
            "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8 FROM pg_stat_activity"
            " WHERE application_name LIKE 'soloist%%' AND state LIKE 'idle in transaction%%'"
        )[0][0]
        assert longest < 1.0
    backends = fleet.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    assert backends == [(0,)]
    fleet.gate.touch()
    eventually(lambda: fleet.statuses("held") == [("succeeded", 1)], "it succeeds")
