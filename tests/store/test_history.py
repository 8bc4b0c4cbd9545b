"""Reads of the history, over rows that the protocol made."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pooler import direct
from scene import Scene, birth, spec
from sqlalchemy import Connection, event
from uuid_utils.compat import uuid7

from scheduler.core.errors import AlreadyRunning, DatabaseUnreachable, NotFound, SchemaMismatch
from scheduler.core.model import Ending, Outcome, SkipReason, Status
from scheduler.core.policy import Decision
from scheduler.store import history, runs
from scheduler.store.claims import Owner
from scheduler.store.connect import connect_once
from scheduler.store.history import RunQuery
from scheduler.store.retry import retry_run
from scheduler.store.runs import Settlement
from scheduler.store.visit import patiently, visit

A, B = spec("a"), spec("b")
UUID_HIGH = uuid.UUID(int=2**128 - 1)


@pytest.fixture
def reads(scene: Scene) -> Iterator[Connection]:
    """A connection for reads, beside a plan with the jobs a and b."""
    scene.jobs(A, B)
    with visit(scene.url, "test") as connection:
        yield connection


def ended(scene: Scene, owner: Owner, run: uuid.UUID, status: Status, **fields: object) -> None:
    outcome = Outcome.SUCCEEDED if status is Status.SUCCEEDED else Outcome.FAILED
    ending = Ending(outcome, **fields)  # type: ignore[arg-type]
    runs.settle(scene.mine, owner, [Settlement(run, 1, Decision(status), ending)])


def test_newest_first_by_pages_until_none_is_left(scene: Scene, reads: Connection) -> None:
    owner = scene.owner("first")
    made = []
    for second in range(5):
        run = scene.running(owner, A, second)
        ended(scene, owner, run, Status.SUCCEEDED)
        made.append(run)
    page = history.list_runs(reads, RunQuery(limit=2))
    assert [row["id"] for row in page] == made[:2:-1]
    page = history.list_runs(reads, RunQuery(limit=2, before=page[-1]["id"]))
    assert [row["id"] for row in page] == made[2:0:-1]
    page = history.list_runs(reads, RunQuery(limit=2, before=page[-1]["id"]))
    assert [row["id"] for row in page] == made[:1]
    assert page[0]["replica"] == "first"
    assert page[0]["duration"] >= 0


def test_filters_by_job_and_states(scene: Scene, reads: Connection) -> None:
    owner = scene.owner()
    failed = scene.running(owner, A, 1)
    ended(scene, owner, failed, Status.FAILED, error_text="no\nmore")
    running = scene.running(owner, B, 1)
    skipped = scene.claim(owner, scene.want(A, birth(2, Status.SKIPPED, skip_reason=SkipReason.MISSED))).made[0].id
    ids = history.read_jobs_by_name(reads)
    assert {r["id"] for r in history.list_runs(reads, RunQuery(job=ids["a"]))} == {failed, skipped}
    found = history.list_runs(reads, RunQuery(statuses=["failed", "running"]))
    assert {r["id"] for r in found} == {failed, running}
    (one,) = history.list_runs(reads, RunQuery(statuses=["failed"]))
    assert one["last_error"] == "no\nmore"
    (one,) = history.list_runs(reads, RunQuery(job=ids["a"], statuses=["skipped"]))
    assert (one["skip_reason"], one["duration"], one["replica"]) == ("missed", None, None)


def test_pages_are_read_from_indexes_however_long_the_history(scene: Scene, reads: Connection) -> None:
    scene.sql(
        "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, finished_at)"
        " SELECT gen_random_uuid(), job.id, n::text, now(), 'schedule', 'succeeded', true, now()"
        " FROM generate_series(1, 20000) n, soloist.job WHERE job.name = 'b' OR n <= 3"
    )
    scene.sql("ANALYZE soloist.run, soloist.job, soloist.replica")
    job = history.read_jobs_by_name(reads)["a"]
    (one, *_) = history.list_runs(reads, RunQuery(job=job))
    asked: list[tuple[str, object]] = []
    event.listen(reads, "before_cursor_execute", lambda *given: asked.append((given[2], given[3])))
    assert len(history.list_runs(reads, RunQuery(job=job))) == 3
    assert len(history.list_runs(reads, RunQuery(before=UUID_HIGH))) == 20
    assert len(history.list_last_runs(reads)) == 2
    history.read_run(reads, history.find_run(reads, str(one["id"])))
    assert len(asked) == 5
    for statement, values in tuple(asked):  # the listener hears what follows, too
        plan = "\n".join(row[0] for row in reads.exec_driver_sql(f"EXPLAIN {statement}", values))  # type: ignore[call-overload]
        assert "Seq Scan on run" not in plan, plan


def test_the_last_run_of_each_job(scene: Scene, reads: Connection) -> None:
    owner = scene.owner()
    ended(scene, owner, scene.running(owner, A, 1), Status.SUCCEEDED)
    newest = scene.running(owner, A, 2)
    other = scene.running(owner, B, 1)
    assert [(r["job"], r["id"]) for r in history.list_last_runs(reads)] == [("a", newest), ("b", other)]


def test_a_run_is_found_by_the_beginning_of_its_id(scene: Scene, reads: Connection) -> None:
    run = scene.running(scene.owner(), A, 1)
    for prefix in (str(run), run.hex, str(run)[:18], run.hex[:8].upper()):
        assert history.find_run(reads, prefix) == run
    for wrong in (run.hex[:7], "zzzzzzzzz", "", run.hex + "0", "ffffffffffff"):
        with pytest.raises(NotFound):
            history.find_run(reads, wrong)


def test_a_beginning_that_two_runs_share_names_them(scene: Scene, reads: Connection) -> None:
    # by hand: of two made one after the other, the clock decides what they share
    ids = [uuid.UUID(f"01900000-0000-7000-8000-00000000000{n}") for n in (1, 2)]
    wants = [replace(scene.want(of), births=((id_, birth(1)),)) for of, id_ in zip((A, B), ids, strict=True)]
    assert len(scene.claim(scene.owner(), *wants).made) == 2
    with pytest.raises(NotFound, match=str(ids[0])):
        history.find_run(reads, ids[0].hex[:8])


def test_every_field_the_attempts_and_the_output(scene: Scene, reads: Connection) -> None:
    owner = scene.owner("worker")
    run = scene.running(owner, A, 1)
    assert history.read_attempts(reads, run) == []
    with pytest.raises(NotFound, match="ended"):
        history.read_output(reads, run)
    ended(
        scene, owner, run, Status.FAILED, error_class="ValueError", error_text="boom", output_tail="äh\n", exit_code=7
    )
    row = history.read_run(reads, run)
    assert (row["job"], row["status"], row["replica"], row["last_error"]) == ("a", "failed", "worker", "boom")
    assert {"payload", "progress", "checkpoint", "result", "retry_of", "trace_id", "duration"} <= row.keys()
    (attempt,) = history.read_attempts(reads, run)
    assert (attempt["number"], attempt["exit_code"], attempt["error_class"]) == (1, 7, "ValueError")
    assert attempt["replica_name"] == "worker"
    assert history.read_output(reads, run)["output_tail"] == "äh\n"
    assert history.read_output(reads, run, 1)["number"] == 1
    with pytest.raises(NotFound, match="no attempt 2"):
        history.read_output(reads, run, 2)
    assert history.read_status(reads, run) == (Status.FAILED, None)
    for read in (history.read_run, history.read_status):
        with pytest.raises(NotFound):
            read(reads, uuid.UUID(int=1))


def test_replicas_are_live_silent_or_stopped(scene: Scene, reads: Connection) -> None:
    for name, seen, stopped in (("live", 1, None), ("silent", 60, None), ("stopped", 1, 1)):
        owner = scene.owner(name)
        scene.sql(
            "UPDATE soloist.replica SET seen_at = now() - make_interval(secs => %s),"
            " stopped_at = now() - make_interval(secs => %s) WHERE id = %s",
            seen,
            stopped,
            owner.id,
        )
    found = {row["name"]: row for row in history.list_replicas(reads) if row["name"] in ("live", "silent", "stopped")}
    assert {name: row["state"] for name, row in found.items()} == {name: name for name in found}
    assert found["silent"]["seen_ago"] == pytest.approx(60, abs=5)
    assert len(history.list_replicas(reads, 1)) == 1


def test_a_retry_is_a_new_run_with_the_same_tick(scene: Scene, reads: Connection) -> None:
    owner = scene.owner()
    old = scene.running(owner, A, 1)
    ended(scene, owner, old, Status.FAILED)
    before = history.read_run(reads, old)
    made = retry_run(scene.mine, before, "somebody", uuid7)
    again = history.read_run(reads, made.id)
    assert again["run_key"] == f"{before['run_key']}~2"
    assert (again["scheduled_at"], again["retry_of"], again["trigger"]) == (before["scheduled_at"], old, "retry")
    assert again["triggered_by"] == "somebody"
    with pytest.raises(AlreadyRunning, match=str(made.id)):
        retry_run(scene.mine, before, "somebody else", uuid7)
    assert len(scene.rows("a")) == 2


def test_a_retry_of_a_retry_counts_on(scene: Scene, reads: Connection) -> None:
    run = scene.running(scene.owner(), A, 1)
    key = history.read_run(reads, run)["run_key"]
    for number in (2, 3):
        scene.sql("UPDATE soloist.run SET status = 'failed', finished_at = now(), ready_at = NULL WHERE id = %s", run)
        run = retry_run(scene.mine, history.read_run(reads, run), "somebody", uuid7).id
        assert history.read_run(reads, run)["run_key"] == f"{key}~{number}"


def test_two_retries_at_once_make_one_run(scene: Scene, reads: Connection) -> None:
    from concurrent.futures import ThreadPoolExecutor

    owner = scene.owner()
    old = scene.running(owner, A, 1)
    ended(scene, owner, old, Status.FAILED)
    row = history.read_run(reads, old)

    def retry(session: object) -> object:
        try:
            return patiently(lambda: retry_run(session, row, "somebody", uuid7))  # type: ignore[arg-type]
        except AlreadyRunning as error:
            return error

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(retry, [scene.session() for _ in range(4)]))
    assert sum(isinstance(answer, AlreadyRunning) for answer in answers) == 3
    assert len(scene.rows("a")) == 2


def test_a_database_without_the_schema_says_what_to_run(empty_database_url: str) -> None:
    with pytest.raises(SchemaMismatch, match="soloist migrate"), visit(empty_database_url, "test") as connection:
        history.list_runs(connection, RunQuery())


def test_a_database_that_does_not_answer_hides_the_password() -> None:
    with pytest.raises(DatabaseUnreachable) as caught, visit("postgresql://me:s3cr3t@127.0.0.1:1/x", "test"):
        pytest.fail("there is no server there")
    assert "me:***@127.0.0.1:1/x" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.own_session
def test_a_connection_that_is_cut_is_an_unreachable_database(scene: Scene) -> None:
    def read() -> None:
        with visit(scene.url, "doomed") as connection:
            cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'soloist doomed'"
            assert scene.sql(cut)
            history.list_runs(connection, RunQuery())

    with pytest.raises(DatabaseUnreachable, match="did not answer"):
        read()


@pytest.mark.own_session
def test_the_lists_are_planned_freely_and_the_engine_is_not(database_url: str) -> None:
    """What keeps the engine's lasting plans right made a list of twenty read all runs."""
    switches = ("enable_seqscan", "enable_bitmapscan", "enable_mergejoin", "jit", "statement_timeout")
    with visit(database_url, "test") as connection:
        shown = [connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in switches]
    assert shown == ["on", "on", "on", "off", "10s"]
    with connect_once(direct(database_url), "test") as line:
        assert [line.execute(f"SHOW {name}").fetchone() for name in switches[:3]] == [("off",)] * 3  # type: ignore[call-overload]
