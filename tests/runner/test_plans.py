"""Two files at once, as in a rolling deploy: the older one's replica leaves what the newer one changed or removed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from local import Local
from pooler import direct
from replicas import HERE, eventually, jobs_file, once
from scene import Scene

from scheduler.config.jobs_file import parse
from scheduler.core import zones
from scheduler.core.events import (
    AttemptStarted,
    EngineFailed,
    FileInForce,
    FileSuperseded,
    JobPlanned,
    JobSick,
    TickSkipped,
    TickWon,
)
from scheduler.core.model import SkipReason
from scheduler.core.words import NoTick
from scheduler.store.replicas import HEARTBEAT

Start = Callable[..., Local]


def _tick(tmp_path: Path, **fields: Any) -> dict[str, Any]:
    entry = {"call": "effects:append", "every": "250ms", "isolation": "thread", "overlap": "allow"}
    return {**entry, "args": {"path": str(tmp_path / "seen")}, **fields}


def _goes_on(facts: Scene, job: str, by: str, more: int = 3) -> None:
    done = (
        "SELECT count(*) AS n FROM soloist.run JOIN soloist.job ON job.id = run.job"
        " JOIN soloist.attempt ON attempt.run = run.id WHERE job.name = %s AND replica_name = %s"
    )
    seen = facts.sql(done, job, by)[0]["n"]
    eventually(lambda: facts.sql(done, job, by)[0]["n"] >= seen + more, f"{job} runs at {by}", 30)


def test_an_older_replica_claims_nothing_that_was_changed_or_removed(
    start: Start, facts: Scene, tmp_path: Path
) -> None:
    same = _tick(tmp_path)
    old = start(jobs_file(same=same, changed=_tick(tmp_path), removed=_tick(tmp_path)), name="old")
    for job in ("same", "changed", "removed"):
        _goes_on(facts, job, "old")
    start(jobs_file(same=same, changed=_tick(tmp_path, timeout="9s"), added=_tick(tmp_path)), name="new")
    ((border),) = facts.sql("SELECT clock_timestamp() AS at")
    for job in ("changed", "added", "same"):
        _goes_on(facts, job, "new", 5)
    late = facts.sql(
        "SELECT job.name, run.status FROM soloist.run JOIN soloist.job ON job.id = run.job"
        " LEFT JOIN soloist.replica ON replica.id = run.claimed_by"
        " WHERE run.started_at > %s AND (job.name = 'removed' OR (job.name = 'changed' AND replica.name = 'old'))",
        border["at"],
    )
    assert late == []
    by_old = {e.job for e in old.of(AttemptStarted) if e.scheduled_at and e.scheduled_at > border["at"]}
    assert by_old <= {"same"}
    assert not old.of(EngineFailed)


def test_whose_file_is_in_force_is_said_once_and_why_a_job_stands_still(
    start: Start, facts: Scene, tmp_path: Path
) -> None:
    seldom = {"every": "24h"}
    same, hand = _tick(tmp_path, **seldom), {"call": "effects:append", "args": {"path": "x"}}
    older = jobs_file(
        same=same, changed=_tick(tmp_path, **seldom), removed=_tick(tmp_path, **seldom), paused=same, hand=hand
    )
    newer = jobs_file(same=same, changed=_tick(tmp_path, timeout="9s", **seldom), paused=same, hand=hand)
    old = start(older, name="old")
    new = start(newer, name="new")
    said = old.heard(FileSuperseded)
    assert (said.generation, said.newest) == (1, 2)
    facts.sql("UPDATE soloist.job SET paused_at = now(), paused_by = 'ann', paused_reason = 'x' WHERE name = 'paused'")
    late = start(older, name="late")
    planned = {event.job: event.no_tick for event in late.of(JobPlanned)}
    assert planned == {
        "same": None,
        "changed": NoTick.SUPERSEDED,
        "removed": NoTick.ABSENT,
        "paused": NoTick.PAUSED,
        "hand": NoTick.BY_HAND,
    }
    assert len(late.of(FileSuperseded)) == 1
    new.close()
    assert old.heard(FileInForce).generation == 1
    late.heard(FileInForce)
    assert len(old.of(FileSuperseded)) == len(old.of(FileInForce)) == 1
    assert not new.of(FileSuperseded)


def test_an_older_replica_goes_on_with_what_the_newer_file_left_alone(
    start: Start, facts: Scene, tmp_path: Path
) -> None:
    same = _tick(tmp_path)
    start(jobs_file(same=same, changed=_tick(tmp_path)), name="old")
    new = start(jobs_file(same=same, changed=_tick(tmp_path, timeout="9s")), name="new")
    taken = new.parts.seats.reserve(new.parts.seats.count)  # the newer one is full: what it wins is for others to run
    _goes_on(facts, "same", "old", 5)
    new.parts.seats.give_back(taken)


def test_a_rollback_works_by_itself_once_the_last_newer_replica_is_gone(
    start: Start, facts: Scene, tmp_path: Path
) -> None:
    start(jobs_file(a=_tick(tmp_path), b=_tick(tmp_path)), name="old")
    _goes_on(facts, "a", "old")
    new = start(jobs_file(a=_tick(tmp_path, timeout="9s")), name="new")
    _goes_on(facts, "a", "new")
    new.close()
    for job in ("a", "b"):
        _goes_on(facts, job, "old", 3)  # within the old one's next heartbeat
    assert HEARTBEAT <= 10
    keys = [row["run_key"] for row in facts.rows("a")]
    assert len(keys) == len(set(keys))


def test_queued_runs_of_a_removed_job_say_why_they_never_ran(start: Start, facts: Scene, tmp_path: Path) -> None:
    hold = {"call": "effects:append", **once(), "isolation": "thread", "args": {"path": str(tmp_path / "seen")}}
    start(jobs_file(keep=_tick(tmp_path), gone=hold), name="old").close()
    facts.sql("DELETE FROM soloist.attempt")
    facts.sql("DELETE FROM soloist.run")
    facts.sql(
        "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, ready_at)"
        " SELECT gen_random_uuid(), id, 'manual:1', now(), 'manual', 'queued', true, now() + interval '1 h'"
        " FROM soloist.job WHERE name = 'gone'"
    )
    new = start(jobs_file(keep=_tick(tmp_path)), name="new")
    eventually(lambda: [row["skip_reason"] for row in facts.rows("gone")] == ["stale_config"], "it says so")
    eventually(lambda: new.of(TickSkipped, reason=SkipReason.STALE_CONFIG), "and the event, which follows the row")


@pytest.mark.full
def test_a_plan_that_cannot_be_applied_just_now_costs_no_running_body(
    start: Start, facts: Scene, tmp_path: Path, database_url: str
) -> None:
    """The heartbeat finds another file in force while somebody holds the table: the keeper must go on renewing."""
    args = {"path": str(tmp_path / "held"), "gate": str(tmp_path / "gate")}
    hold = {"call": "effects:hold", **once(), "isolation": "thread", "args": args}
    old = start(jobs_file(hold=hold), name="old", lease=4.0)
    eventually((tmp_path / "held").exists, "the body begins")
    with psycopg.connect(database_url) as other:
        other.execute("LOCK TABLE soloist.config IN EXCLUSIVE MODE")
        facts.sql(
            "INSERT INTO soloist.replica (id, name, host, pid, version, config_hash, generation, tzdata, seats,"
            " serves, seen_at)"
            " VALUES (gen_random_uuid(), 'newer', 'h', 1, '0', 'x', 7, '2026', 1, true, now() + interval '1 h')"
        )
        blocked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'soloist apply'"
        eventually(lambda: facts.sql(blocked), "it tries to apply its plan", 30)
        ((until),) = facts.sql("SELECT claimed_until AS at FROM soloist.run")
        over = "SELECT 1 FROM (SELECT clock_timestamp() AS now) c WHERE now > %s::timestamptz + interval '1 s'"
        eventually(lambda: facts.sql(over, until["at"]), "more than a lease passes", 30)
        assert facts.sql("SELECT 1 FROM soloist.run WHERE status = 'running' AND claimed_until > clock_timestamp()")
        eventually(lambda: not facts.sql(blocked), "the server ends that try", 30)
        other.rollback()
    (tmp_path / "gate").touch()
    eventually(lambda: [row["status"] for row in facts.rows()] == ["succeeded"], "attempt 1 succeeds")
    assert facts.rows()[0]["attempt"] == 1
    assert not old.of(EngineFailed)


@pytest.mark.parametrize("content", [1, 2])
def test_generations_are_counted_by_content(start: Start, facts: Scene, tmp_path: Path, content: int) -> None:
    for number in range(2):
        text = json.loads(jobs_file(a=_tick(tmp_path, every="1h")))
        text["jobs"]["a"]["description"] = str(number % content)
        start(json.dumps(text), name=f"r{number}").close()
    assert facts.sql("SELECT max(generation) AS n FROM soloist.config") == [{"n": content}]


def test_a_job_that_rested_ticks_again(start: Start, facts: Scene, tmp_path: Path) -> None:
    """Nothing tells a replica that a pause has ended but the job's row, which it reads with each heartbeat."""
    local = start(jobs_file(a=_tick(tmp_path)))
    local.heard(TickWon, job="a")
    facts.sql("UPDATE soloist.job SET paused_at = clock_timestamp()")
    planned = next(iter(local.parts.plan.jobs().values()))
    eventually(lambda: planned.at_rest, "the replica saw the pause")
    before = len(local.of(TickWon, job="a"))
    facts.sql("UPDATE soloist.job SET paused_at = NULL, watermark = clock_timestamp()")
    eventually(lambda: len(local.of(TickWon, job="a")) > before, "it ticks again")


def test_a_replica_that_was_silent_puts_its_file_in_force_again(start: Start, facts: Scene, tmp_path: Path) -> None:
    """While it was frozen an older replica took over the plan; its heartbeat alone does not show that."""
    newer = start(jobs_file(same=_tick(tmp_path), late=_tick(tmp_path)), name="newer")
    newer.heard(AttemptStarted, job="late")
    with psycopg.connect(facts.url, autocommit=True) as other:
        other.execute("UPDATE soloist.job SET removed_at = now() WHERE name = 'late'")
        other.execute("UPDATE soloist.job SET spec_hash = 'an older one' WHERE name = 'same'")
    planned = {job.spec.name: job for job in newer.parts.plan.jobs().values()}
    eventually(lambda: planned["same"].at_rest and planned["late"].at_rest, "it stands still")
    _goes_on(facts, "late", "newer")
    _goes_on(facts, "same", "newer")
    assert facts.sql("SELECT removed_at FROM soloist.job WHERE name = 'late'") == [{"removed_at": None}]


def test_a_lock_that_somebody_holds_ends_no_replica(
    start: Start, facts: Scene, tmp_path: Path, database_url: str
) -> None:
    """VACUUM FULL, an index, a migration: the table is away for longer than a statement waits."""
    local = start(jobs_file(a=_tick(tmp_path)), name="local")
    local.heard(AttemptStarted, job="a")
    with psycopg.connect(direct(database_url)) as other:
        for table in ("run", "replica"):
            other.execute(f"LOCK TABLE soloist.{table} IN ACCESS EXCLUSIVE MODE")
        tries = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = %s"
        for room in ("soloist worker",):
            with psycopg.connect(direct(database_url), autocommit=True) as watcher:
                eventually(lambda r=room, w=watcher: w.execute(tries, (r,)).fetchone(), f"{room} waits for the lock")
    _goes_on(facts, "a", "local")
    assert not local.of(EngineFailed)


def test_a_plan_that_a_lock_keeps_from_being_read_is_read_after_it(
    start: Start, facts: Scene, tmp_path: Path, database_url: str
) -> None:
    local = start(jobs_file(a=_tick(tmp_path, every="24h")))
    tries = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'soloist worker'"
    with psycopg.connect(direct(database_url)) as other, psycopg.connect(direct(database_url), autocommit=True) as me:
        version = local.parts.plan.version
        other.execute("LOCK TABLE soloist.job IN ACCESS EXCLUSIVE MODE")
        local.parts.follower.look_soon()
        eventually(lambda: me.execute(tries).fetchone(), "it waits for the lock")
        eventually(lambda: not me.execute(tries).fetchone(), "and has given up")
        assert local.parts.plan.version == version
    eventually(lambda: local.parts.plan.version > version, "it is read")


@pytest.mark.case("C033")
def test_a_job_whose_schedule_cannot_be_worked_out_stops_no_other(
    start: Start, facts: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image without the zone's data: the job stands still and says so once; it ticks when they are there again."""
    entry = {"call": "effects:append", "isolation": "thread", "args": {"path": str(tmp_path / "seen")}}
    healthy, sick = (
        entry | {"every": "300ms", "overlap": "allow"},
        entry | {"schedule": "* * * * *", "timezone": "Asia/Tokyo"},
    )
    text = jobs_file(healthy=healthy, sick=sick)
    plan = parse(text.encode(), "jobs.yaml", HERE / "bodies")  # read while all is well
    names = zones._names()
    for cache in (zones.load_zone, zones._year_spans):
        cache.cache_clear()
    monkeypatch.setattr(zones, "_names", lambda: names - {"Asia/Tokyo"})
    local = start(plan)
    assert "unknown timezone" in local.heard(JobSick, job="sick").error
    for _ in range(3):  # looked at again and again
        version = local.parts.plan.version
        local.parts.follower.look_soon()
        eventually(lambda seen=version: local.parts.plan.version > seen, "the plan is read again")
    assert len(local.of(JobSick)) == 1
    eventually(lambda: len(facts.rows("healthy")) > 5, "the healthy one ticks")
    assert {row["status"] for row in facts.rows("healthy")} <= {"succeeded", "running", "queued"}
    monkeypatch.undo()
    local.parts.follower.look_soon()
    eventually(
        lambda: any(job.spec.name == "sick" and job.next for job in local.parts.plan.jobs().values()), "it is well"
    )
