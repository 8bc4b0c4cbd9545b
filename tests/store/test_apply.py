"""Putting a plan in force: generations, first watermarks, the old schedule's accounts, removal and return."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from replicas import eventually
from scene import Scene, birth, registration, spec

from scheduler.core.errors import DatabaseUnreachable
from scheduler.core.model import FirstSight, JobSpec, Misfire, MisfirePolicy, Overlap, Status
from scheduler.core.schedule import At, Every, parse_cron
from scheduler.store import runs
from scheduler.store.apply import Applier, PlanFile

JOB = spec("a", overlap=Overlap.ALLOW)


def _ago(seconds: float) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)


def test_a_job_seen_first_owes_nothing(scene: Scene) -> None:
    before = _ago(0)
    applied = scene.apply(JOB)
    assert (applied.generation, applied.in_force, applied.added) == (1, True, ("a",))
    assert before <= scene.known()["a"].watermark <= _ago(0)
    assert scene.rows() == []


def test_first_sight_run_owes_the_latest_tick_and_no_other(scene: Scene) -> None:
    daily = replace(JOB, schedule=parse_cron("0 3 * * *", "UTC"), misfire=Misfire(first_sight=FirstSight.RUN))
    scene.apply(daily)
    mark = scene.known()["a"].watermark
    assert (mark + timedelta(microseconds=1)).strftime("%H:%M:%S") == "03:00:00"
    assert _ago(86400 + 5) < mark < _ago(0)


def test_the_same_file_again_changes_nothing(scene: Scene) -> None:
    scene.apply(JOB)
    before = scene.sql("SELECT * FROM soloist.job")
    applied = scene.apply(JOB)
    assert (applied.added, applied.changed, applied.removed, applied.generation) == ((), (), (), 1)
    assert scene.sql("SELECT * FROM soloist.job") == before


def test_prose_makes_no_new_spec(scene: Scene) -> None:
    scene.apply(JOB)
    applied = scene.apply(replace(JOB, description="what it does"), content="2")
    assert applied.changed == ()
    (job,) = scene.sql("SELECT generation, spec ->> 'description' AS prose FROM soloist.job")
    assert job == {"generation": 1, "prose": "what it does"}


def test_a_changed_schedule_starts_from_now_and_accounts_for_the_old_ones_ticks(scene: Scene) -> None:
    old = replace(JOB, schedule=Every(10.0), misfire=Misfire(policy=MisfirePolicy.ALL))
    scene.jobs(old)
    scene.sql("UPDATE soloist.job SET watermark = clock_timestamp() - interval '35 s'")
    before = _ago(0)
    new = replace(old, schedule=Every(3600.0))
    applied = scene.apply(new, content="2")
    assert applied.changed == ("a",)
    rows = scene.rows()
    assert len(rows) in (3, 4)
    assert {row["status"] for row in rows} == {"queued"}
    assert all(row["scheduled_at"].second % 10 == 0 for row in rows)
    job = scene.known()["a"]
    assert job.watermark >= before
    assert (job.generation, job.spec_hash) == (2, new.hash)


def test_an_edit_never_runs_the_job_now(scene: Scene) -> None:
    """Weekly becomes minutely: the look-back starts at the edit."""
    scene.jobs(replace(JOB, schedule=parse_cron("0 3 * * 0", "UTC")))
    scene.sql("UPDATE soloist.job SET watermark = clock_timestamp()")
    scene.apply(replace(JOB, schedule=Every(60.0)), content="2")
    assert scene.rows() == []


def test_a_removed_job_is_marked_and_its_waiting_rows_say_why_they_never_ran(scene: Scene) -> None:
    keep, daily = spec("keep"), replace(JOB, schedule=Every(86400.0))
    scene.jobs(daily, keep)
    run = scene.queued(daily)
    scene.sql("UPDATE soloist.job SET watermark = clock_timestamp()")
    applied = scene.apply(keep, content="2")
    assert applied.removed == ("a",)
    assert scene.known()["a"].at_rest
    assert [row[0] for row in runs.end_stale(scene.mine)] == [run]
    row = scene.row(run)
    assert (row["status"], row["skip_reason"]) == ("skipped", "stale_config")
    assert scene.claim(scene.owner(), scene.want(daily, birth(9))).made == ()


def test_a_running_run_of_a_removed_job_may_end(scene: Scene) -> None:
    from scheduler.core.model import Ending, Outcome
    from scheduler.core.policy import Decision
    from scheduler.store.runs import Settlement

    scene.jobs(JOB)
    owner = scene.owner()
    run = scene.running(owner, JOB)
    scene.apply(spec("keep"), content="2")
    assert set(runs.renew(scene.mine, owner, [(run, 1, None)]).renewed) == {(run, 1)}
    end = Settlement(run, 1, Decision(Status.SUCCEEDED), Ending(Outcome.SUCCEEDED))
    assert len(runs.settle(scene.mine, owner, [end])) == 1


def test_a_job_that_comes_back_starts_from_now(scene: Scene) -> None:
    daily = replace(JOB, schedule=Every(86400.0))
    scene.apply(daily)
    scene.apply(spec("keep"), content="2")
    before = _ago(0)
    applied = scene.apply(daily, spec("keep"), content="3")
    assert applied.changed == ("a",)
    job = scene.known()["a"]
    assert not job.at_rest
    assert job.watermark >= before
    assert scene.rows() == []


def test_an_older_file_touches_nothing_while_a_newer_ones_replica_lives(scene: Scene) -> None:
    old, new = registration("1", "old"), registration("2", "new")
    scene.apply(JOB, content="1", me=old)
    scene.apply(replace(JOB, timeout=5.0), content="2", me=new)
    before = scene.sql("SELECT * FROM soloist.job")
    applied = scene.apply(JOB, content="1", me=old)
    assert (applied.generation, applied.in_force) == (1, False)
    assert scene.sql("SELECT * FROM soloist.job") == before


def test_a_rollback_works_once_the_newer_ones_last_replica_is_gone(scene: Scene) -> None:
    old, new = registration("1", "old"), registration("2", "new")
    scene.apply(JOB, content="1", me=old)
    scene.apply(replace(JOB, timeout=5.0), content="2", me=new)
    scene.sql("UPDATE soloist.replica SET stopped_at = now() WHERE name = 'new'")
    applied = scene.apply(JOB, content="1", me=old)
    assert (applied.in_force, applied.changed) == (True, ("a",))
    job = scene.known()["a"]
    assert (job.spec_hash, job.generation) == (JOB.hash, 1)


def test_a_newer_replica_that_died_counts_until_its_silence_is_over(scene: Scene) -> None:
    scene.apply(JOB, content="1")
    scene.apply(replace(JOB, timeout=5.0), content="2", me=registration("2", "new"))
    scene.sql("UPDATE soloist.replica SET seen_at = now() - interval '30 s' WHERE name = 'new'")
    assert not scene.apply(JOB, content="1").in_force
    scene.sql("UPDATE soloist.replica SET seen_at = now() - interval '40 s' WHERE name = 'new'")
    assert scene.apply(JOB, content="1").in_force


def test_many_replicas_that_start_at_once_agree(scene: Scene) -> None:
    gate = threading.Barrier(8)

    def start(n: int) -> int:
        gate.wait(30)
        content = str(n % 4)
        return scene.apply(
            replace(JOB, timeout=float(n % 4 + 1)), content=content, me=registration(content, f"r{n}")
        ).generation

    with ThreadPoolExecutor(8) as threads:
        got = list(threads.map(start, range(8)))
    assert sorted(set(got)) == [1, 2, 3, 4]
    contents = scene.sql("SELECT content, generation FROM soloist.config ORDER BY 2")
    assert [got[int(row["content"])] for row in contents] == [1, 2, 3, 4]
    newest = int(contents[-1]["content"])
    assert scene.known()["a"].spec_hash == replace(JOB, timeout=float(newest + 1)).hash


def test_ticks_that_are_claimed_while_a_plan_is_applied_are_not_lost(scene: Scene) -> None:
    """The job rows are locked in the apply's transaction: a claim in that moment gets nothing, and says so."""
    scene.jobs(JOB)
    with psycopg.connect(scene.url) as applying:
        applying.execute("SELECT 1 FROM soloist.job ORDER BY id FOR NO KEY UPDATE")
        answer = scene.claim(scene.owner(), scene.want(JOB, birth(1)))
        assert (answer.made, answer.moved) == ((), frozenset())
        applying.rollback()
    assert len(scene.claim(scene.owner(), scene.want(JOB, birth(1))).made) == 1


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0])
def test_a_one_off_in_the_past_or_the_future(scene: Scene, seconds: float) -> None:
    scene.apply(replace(JOB, schedule=At(_ago(seconds))))
    assert scene.rows() == []
    assert scene.known()["a"].watermark <= _ago(-1)


def test_what_a_gone_generation_removed_is_ours_to_account_for_once(scene: Scene) -> None:
    """A job that neither file has any more must not make each heartbeat put the plan in force again."""
    scene.apply(spec("a"), content="1")
    newer = registration("2")
    scene.apply(spec("a"), spec("b"), content="2", me=newer)
    scene.apply(spec("a"), content="3", me=(newest := registration("3")))
    scene.sql("UPDATE soloist.replica SET stopped_at = clock_timestamp() WHERE id = ANY (%s)", [newer.id, newest.id])
    rolled_back = scene.apply(spec("a"), content="1")
    assert (rolled_back.in_force, rolled_back.generation) == (True, 1)
    assert scene.sql("SELECT max(generation) AS newest FROM soloist.job") == [{"newest": 1}]


def test_ticks_of_a_spec_that_another_version_wrote_are_accounted_for(scene: Scene) -> None:
    """Its hash may be one that this version would not compute; the ticks it owes are owed all the same."""
    daily = JobSpec("a", Every(86400.0), "effects:append", misfire=Misfire(policy=MisfirePolicy.LATEST, within=86400.0))
    scene.jobs(daily)
    scene.sql("UPDATE soloist.job SET watermark = clock_timestamp() - interval '3 days'")
    scene.sql("UPDATE soloist.job SET spec_hash = 'of another version', spec = spec || '{\"unknown\": 1}'")
    scene.apply(replace(daily, args={"x": 1}), content="2")
    assert [row["status"] for row in scene.rows("a")] == ["skipped", "skipped", "queued"]


def test_an_application_that_waits_can_be_cut(scene: Scene) -> None:
    """A stop must not wait for it: somebody may hold the table, or the server stand still."""
    applier = Applier(scene.url, PlanFile("1", "1", {}, (JOB,)), registration("1"), scene.watchdog)
    with ThreadPoolExecutor(1) as threads, psycopg.connect(scene.url) as other:
        other.execute("LOCK TABLE soloist.config IN EXCLUSIVE MODE")
        waiting = threads.submit(applier)
        blocked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'soloist apply'"
        eventually(lambda: scene.sql(blocked), "it waits for the lock")
        applier.cut()
        with pytest.raises(DatabaseUnreachable, match="could not be put in force"):
            waiting.result(30)
    assert scene.sql("SELECT 1 FROM soloist.config") == []
