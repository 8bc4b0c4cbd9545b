"""Pauses in the database: what they hold up, what row they leave, and that many may end one at once."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, timedelta
from typing import Any

import psycopg
import pytest
from pooler import direct
from scene import Scene, at, birth, spec
from uuid_utils.compat import uuid7

from scheduler.core.model import JobSpec, Status
from scheduler.core.schedule import Every
from scheduler.store import pauses
from scheduler.store.jobs import read_job
from scheduler.store.pauses import Resumed, Wish
from scheduler.store.visit import patiently

JOB = spec("a")
HOURLY = JobSpec(name="a", schedule=Every(3600.0), call="effects:append")


def _pause(scene: Scene, job: str = "a", **more: Any) -> pauses.Paused:
    done = pauses.pause_job(scene.mine, Wish(job, "ann", "a migration", **more))
    assert done is not None
    return done


def _resume(scene: Scene, job: str = "a") -> Resumed | None:
    return pauses.resume_job(scene.mine, job, "bob", "done", uuid7)


def _audit(scene: Scene) -> list[tuple[str, str, str, str]]:
    lines = scene.sql("SELECT * FROM soloist.audit ORDER BY id")
    return [(line["who"], line["action"], line["job"], line["why"]) for line in lines]


def _heard(scene: Scene, act: Any) -> list[str]:
    with psycopg.connect(direct(scene.url), autocommit=True) as ear:
        ear.execute("LISTEN soloist")
        act()
        return [one.payload for one in ear.notifies(timeout=5, stop_after=1)]


def test_a_paused_job_has_no_ticks_and_says_who_and_why(scene: Scene) -> None:
    scene.jobs(JOB)
    assert _pause(scene).before is None
    answer = scene.claim(scene.owner(), scene.want(JOB, birth(1)))
    assert (answer.made, answer.moved) == ((), frozenset())
    job = read_job(scene.mine, "a")
    assert job is not None
    assert (job.paused_by, job.paused_reason, job.paused_until) == ("ann", "a migration", None)
    assert _audit(scene) == [("ann", "pause", "a", "a migration")]


def test_replicas_hear_of_it_at_once(scene: Scene) -> None:
    scene.jobs(JOB)
    assert _heard(scene, lambda: _pause(scene)) == ["plan"]
    assert _heard(scene, lambda: _resume(scene)) == ["plan"]


@pytest.mark.case("C070")
def test_resume_leaves_one_row_for_all_its_ticks_and_owes_none_of_them(scene: Scene) -> None:
    """The ticks that were due and unclaimed when the pause began are a part of it."""
    scene.jobs(HOURLY)
    scene.sql("UPDATE soloist.job SET watermark = date_trunc('hour', now(), 'UTC') - interval '5 h'")
    (watermark,) = [job.watermark for job in scene.known().values()]
    _pause(scene)
    done = _resume(scene)
    assert done is not None
    assert (done.missed, done.since, done.capped) == (5, watermark + timedelta(hours=1), False)
    (row,) = scene.rows()
    assert (row["status"], row["skip_reason"], row["trigger"]) == ("skipped", "paused", "schedule")
    assert row["scheduled_at"] == done.last == watermark + timedelta(hours=5)
    assert row["result"] == {"missed": 5, "since": (watermark + timedelta(hours=1)).isoformat()}
    assert row["run_key"] == row["scheduled_at"].astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    job = read_job(scene.mine, "a")
    assert job is not None
    assert job.paused_at is job.paused_by is job.paused_reason is None
    assert job.resumed_at is not None
    assert row["scheduled_at"] <= job.watermark <= job.database_now, "nothing of the past is due"
    assert _audit(scene)[1:] == [("bob", "resume", "a", "done")]


def test_a_pause_that_somebody_has_ended_meanwhile_is_not_ended_again(scene: Scene) -> None:
    scene.jobs(JOB)
    scene.sql("UPDATE soloist.job SET watermark = clock_timestamp() + interval '1 min'")
    _pause(scene)
    stale = read_job(scene.mine, "a")
    assert stale is not None
    assert _resume(scene)
    assert pauses._end(scene.mine, stale, stale.database_now, {"who": "late", "why": None}, uuid7) is None
    assert [line[0] for line in _audit(scene)] == ["ann", "bob"]


def test_a_pause_without_a_tick_leaves_no_row(scene: Scene) -> None:
    scene.jobs(spec("a"))
    scene.sql("UPDATE soloist.job SET watermark = clock_timestamp() + interval '1 min'")
    (before,) = [job.watermark for job in scene.known().values()]
    _pause(scene)
    assert _resume(scene) == Resumed("a", None)
    assert scene.rows() == []
    assert scene.known()["a"].watermark == before, "it never goes back"


def test_what_is_not_paused_is_not_resumed(scene: Scene) -> None:
    scene.jobs(JOB)
    assert _resume(scene) is None
    assert _resume(scene, "b") is None
    assert pauses.pause_job(scene.mine, Wish("b", "ann", "x")) is None
    assert _audit(scene) == []


def test_a_second_pause_changes_the_end_and_the_reason_and_keeps_the_beginning(scene: Scene) -> None:
    scene.jobs(JOB)
    first = _pause(scene, lasting=3600.0)
    assert first.until is not None
    assert first.at is not None
    assert abs(first.until - first.at - timedelta(hours=1)) < timedelta(seconds=5)
    second = pauses.pause_job(scene.mine, Wish("a", "bob", "longer"))
    assert second is not None
    assert (second.at, second.until) == (first.at, None)
    assert second.before == pauses.Before(first.at, first.until, "ann", "a migration")
    lines = scene.sql("SELECT who, until FROM soloist.audit ORDER BY id")
    assert [(line["who"], line["until"]) for line in lines] == [("ann", first.until), ("bob", None)]


def test_an_end_that_has_come_pauses_nothing(scene: Scene) -> None:
    scene.jobs(JOB)
    assert _pause(scene, until=at(0)).at is None
    assert _audit(scene) == []
    assert not scene.known()["a"].paused


def _expired(scene: Scene, *jobs: JobSpec) -> Any:
    """Paused since three hours, to go on since one and a half."""
    scene.jobs(*jobs)
    for job in jobs:
        _pause(scene, job.name)
    scene.sql(
        "UPDATE soloist.job SET watermark = date_trunc('hour', now(), 'UTC') - interval '4 h',"
        " paused_until = date_trunc('hour', now(), 'UTC') - interval '90 min'"
    )
    return scene.sql("SELECT date_trunc('hour', now(), 'UTC') AS hour")[0]["hour"]


def test_a_pause_ends_by_itself_and_ticks_after_its_end_are_due(scene: Scene) -> None:
    hour = _expired(scene, HOURLY)
    (ended,) = pauses.end_pauses(scene.mine, uuid7)
    assert (ended.job, ended.missed, ended.last) == ("a", 2, hour - timedelta(hours=2))
    assert scene.known()["a"].watermark == hour - timedelta(minutes=90)
    assert _audit(scene)[1][:3] == ("soloist", "resume", "a")
    assert _audit(scene)[1][3].startswith("until 20")
    assert pauses.end_pauses(scene.mine, uuid7) == ()


def test_a_pause_that_is_still_on_goes_on(scene: Scene) -> None:
    scene.jobs(JOB, spec("b"))
    _pause(scene, lasting=3600.0)
    _pause(scene, "b")
    assert pauses.end_pauses(scene.mine, uuid7) == ()


def test_many_replicas_end_it_once(scene: Scene) -> None:
    others = [JobSpec(name=f"j{n}", schedule=Every(3600.0), call="effects:append") for n in range(5)]
    _expired(scene, *others)
    gate = threading.Barrier(6)
    sessions = [scene.session(f"t{n}") for n in range(6)]

    def end(n: int) -> int:
        gate.wait()
        return len(pauses.end_pauses(sessions[n], uuid7))

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(end, range(6))) == 5
    assert len(scene.rows()) == 5
    assert [line[1] for line in _audit(scene)].count("resume") == 5


def test_many_people_resume_it_once(scene: Scene) -> None:
    _expired(scene, HOURLY)
    gate = threading.Barrier(5)
    sessions = [scene.session(f"t{n}") for n in range(5)]

    def end(n: int) -> bool:
        gate.wait()
        return patiently(lambda: pauses.resume_job(sessions[n], "a", f"p{n}", None, uuid7)) is not None

    with ThreadPoolExecutor(5) as threads:
        assert sum(threads.map(end, range(5))) == 1
    assert len(scene.rows()) == 1


def test_a_locked_job_holds_up_no_other(scene: Scene) -> None:
    _expired(scene, HOURLY, JobSpec(name="b", schedule=Every(3600.0), call="effects:append"))
    with psycopg.connect(direct(scene.url)) as lunch:
        lunch.execute("SELECT FROM soloist.job WHERE name = 'a' FOR UPDATE")
        assert [one.job for one in pauses.end_pauses(scene.mine, uuid7)] == ["b"]
    assert [one.job for one in pauses.end_pauses(scene.mine, uuid7)] == ["a"]


def test_a_pause_that_is_made_longer_meanwhile_goes_on(scene: Scene) -> None:
    """Between what a replica read and what it wrote somebody has changed the end."""
    _expired(scene, HOURLY)
    stale = [pauses.FullJob.of(row) for row in scene.mine.run("read_expired_pauses", {})]
    _pause(scene, lasting=3600.0)
    (job,) = stale
    assert job.paused_until is not None
    said: dict[str, str | None] = {"who": "soloist", "why": "x"}
    assert pauses._end(scene.mine, job, job.paused_until, said, uuid7) is None
    assert scene.known()["a"].paused
    assert scene.rows() == []


def test_the_row_makes_way_for_a_run_of_its_tick(scene: Scene) -> None:
    """Somebody has backfilled the newest tick of the pause: that one has its row, and the others still need theirs."""
    hour = _expired(scene, HOURLY)
    key = (hour - timedelta(hours=2)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    scene.sql(
        "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, ready_at)"
        " SELECT %s, id, %s, %s, 'backfill', 'queued', true, now() FROM soloist.job",
        uuid7(),
        key,
        hour - timedelta(hours=2),
    )
    (ended,) = pauses.end_pauses(scene.mine, uuid7)
    assert (ended.missed, ended.last) == (2, hour - timedelta(hours=2))
    assert {row["run_key"]: row["status"] for row in scene.rows()} == {
        key: "queued",
        f"{(hour - timedelta(hours=3)).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}/{key}": "skipped",
    }
    assert scene.known()["a"].watermark == hour - timedelta(minutes=90)


def test_a_removed_job_is_not_paused(scene: Scene) -> None:
    scene.jobs(JOB)
    scene.sql("UPDATE soloist.job SET removed_at = now()")
    assert pauses.pause_job(scene.mine, Wish("a", "ann", "x")) is None


# --- failures in a row


def _watched(scene: Scene, number: int = 3) -> JobSpec:
    job = spec("a", pause_after_failures=number)
    scene.jobs(job, spec("other"))
    return job


def _ended(scene: Scene, *statuses: str, job: str = "a") -> None:
    """Runs that ended so, one after the other."""
    for n, status in enumerate(statuses):
        scene.sql(
            "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, skip_reason, exclusive,"
            " finished_at, last_error) SELECT %(id)s, id, %(id)s::text, now(), 'schedule', %(status)s,"
            " CASE %(status)s WHEN 'skipped' THEN 'overlap' END, true, clock_timestamp(), %(error)s"
            " FROM soloist.job WHERE name = %(job)s".replace("%(id)s", f"'{uuid7()}'")
            .replace("%(status)s", f"'{status}'")
            .replace("%(error)s", f"'boom {n}'")
            .replace("%(job)s", f"'{job}'")
        )


def _judge(scene: Scene) -> tuple[pauses.Failing, ...]:
    return pauses.pause_failing(scene.mine, ["a", "other"])


@pytest.mark.parametrize(
    ("ends", "paused"),
    [
        (["failed"] * 3, True),
        (["succeeded", "failed", "timed_out", "lost"], True),
        (["failed", "skipped", "failed", "cancelled", "skipped", "failed", "skipped"], True),
        (["failed"] * 2, False),
        (["failed", "failed", "succeeded"], False),
        (["failed", "succeeded", "failed", "failed"], False),
        (["skipped"] * 5, False),
        ([], False),
    ],
    ids=str,
)
def test_what_counts_as_failing(scene: Scene, ends: list[str], paused: bool) -> None:
    _watched(scene)
    _ended(scene, *ends)
    _ended(scene, *["failed"] * 5, job="other")
    assert [one.job for one in _judge(scene)] == (["a"] if paused else [])
    assert scene.known()["a"].paused is paused
    assert not scene.known()["other"].paused, "it did not ask for that"


def test_the_reason_has_the_last_error(scene: Scene) -> None:
    _watched(scene)
    _ended(scene, "failed", "failed", "failed")
    (failing,) = _judge(scene)
    assert failing.reason == "3 runs in a row failed, the last: boom 2"
    assert _audit(scene) == [("soloist", "pause", "a", failing.reason)]
    job = read_job(scene.mine, "a")
    assert job is not None
    assert (job.paused_by, job.paused_until) == ("soloist", None)
    assert _judge(scene) == (), "it is paused already"


def test_what_failed_before_the_resume_is_forgiven(scene: Scene) -> None:
    _watched(scene)
    _ended(scene, "failed", "failed", "failed")
    assert _judge(scene)
    _resume(scene)
    assert _judge(scene) == ()
    _ended(scene, "failed", "failed")
    assert _judge(scene) == ()
    _ended(scene, "failed")
    assert [one.job for one in _judge(scene)] == ["a"]


def test_one_that_is_active_is_not_counted(scene: Scene) -> None:
    job = _watched(scene)
    _ended(scene, "failed", "failed", "failed")
    scene.running(scene.owner(), job)
    assert [one.job for one in _judge(scene)] == ["a"]


def test_two_at_once_pause_once(scene: Scene) -> None:
    _watched(scene)
    _ended(scene, "failed", "failed", "failed")
    gate = threading.Barrier(4)
    sessions = [scene.session(f"t{n}") for n in range(4)]

    def judge(n: int) -> int:
        gate.wait()
        return len(patiently(lambda: pauses.pause_failing(sessions[n], ["a"])))

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(judge, range(4))) == 1
    assert len(_audit(scene)) == 1


def test_a_long_error_is_cut(scene: Scene) -> None:
    _watched(scene, 1)
    _ended(scene, "failed")
    scene.sql("UPDATE soloist.run SET last_error = repeat('x', 2000)")
    (failing,) = _judge(scene)
    assert failing.reason == "a run failed: " + "x" * 500


def test_a_spec_without_a_number_asks_for_nothing(scene: Scene) -> None:
    scene.jobs(JOB, spec("other"))
    assert "pause_after_failures" in json.loads(json.dumps(JOB.to_dict()))
    _ended(scene, *["failed"] * 30)
    assert _judge(scene) == ()
    assert scene.rows()[0]["status"] == Status.FAILED
