"""pause, resume, jobs, audit: as a person types them, and in all the ways to get them wrong."""

from __future__ import annotations

import os
import pwd
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from desk import Desk
from pooler import direct
from replicas import away_from_a_tick
from scene import Scene, spec
from uuid_utils.compat import uuid7

from scheduler.cli.jobs import schedule_text
from scheduler.core.model import JobSpec
from scheduler.core.schedule import At, Cron, Every
from scheduler.store import pauses

ME = pwd.getpwuid(os.getuid()).pw_name
HOURLY = JobSpec(name="hourly", schedule=Every(3600.0), call="work:quick")
DAILY = JobSpec(name="daily", schedule=Cron("0 3 * * *", "Europe/London"), call="work:quick", timezone="Europe/London")
BY_HAND = JobSpec(name="by-hand", schedule=None, call="work:quick")


@pytest.fixture
def plan(scene: Scene) -> Scene:
    """A plan of three jobs, one of which has been owed ticks for five hours."""
    away_from_a_tick(3600)
    scene.jobs(HOURLY, DAILY, BY_HAND)
    scene.sql("UPDATE soloist.job SET watermark = date_trunc('hour', now(), 'UTC') - interval '5 h'")
    return scene


def _job(desk: Desk, name: str = "hourly") -> dict[str, Any]:
    return next(row for row in desk.run("jobs", "-o", "json").rows if row["job"] == name)


@pytest.mark.case("C070")
def test_pause_and_resume(desk: Desk, plan: Scene) -> None:
    (row,) = desk.run("pause", "hourly", "--reason", "a migration", "-o", "json").rows
    assert list(row) == ["job", "status", "paused_at", "paused_until", "paused_by", "paused_reason"]
    assert (row["job"], row["status"], row["paused_until"], row["paused_by"]) == ("hourly", "paused", None, ME)
    listed = _job(desk)
    assert (listed["state"], listed["paused_by"], listed["paused_reason"]) == ("paused", ME, "a migration")
    assert listed["next_tick"] is None
    assert plan.rows() == []
    (done,) = desk.run("resume", "hourly", "--reason", "done", "-o", "json").rows
    assert list(done) == ["job", "status", "missed", "or_more", "since", "last"]
    assert (done["status"], done["missed"], done["or_more"]) == ("resumed", 5, False)
    (left,) = plan.rows("hourly")
    assert (left["skip_reason"], left["result"]["missed"]) == ("paused", 5)
    again = desk.run("resume", "hourly", "-o", "json")
    assert (again.code, again.rows[0]["status"]) == (0, "not_paused")
    assert "was not paused" in again.err
    assert _job(desk)["state"] == "active"
    assert datetime.fromisoformat(_job(desk)["next_tick"]) > datetime.now(UTC) - timedelta(minutes=1)


def test_exec_heeds_a_pause(desk: Desk, scene: Scene) -> None:
    desk.write(hourly={"every": "1h", "call": "work:quick"})
    this = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    before, last = (this - hours * timedelta(hours=1) for hours in (2, 1))
    assert desk.run("exec", "hourly", "--scheduled-at", before.isoformat()).code == 0
    desk.run("pause", "hourly", "--reason", "a migration")
    answer = desk.run("exec", "hourly", "--scheduled-at", last.isoformat())
    assert answer.code == 0
    assert f"not run, the job is paused by {ME}: a migration" in answer.err
    assert [row["scheduled_at"] for row in scene.rows()] == [before]
    assert desk.run("exec", "hourly", "--scheduled-at", last.isoformat(), "--force").code == 0
    assert {(row["scheduled_at"], row["status"]) for row in scene.rows()} == {
        (before, "succeeded"),
        (last, "succeeded"),
    }


def test_a_paused_job_is_paused_anew_and_it_is_said_whose_pause_that_was(desk: Desk, plan: Scene) -> None:
    pauses.pause_job(plan.mine, pauses.Wish("hourly", "ann", "a migration", None, 3600.0))
    answer = desk.run("pause", "hourly", "--reason", "it takes longer", "--for", "2h", "-o", "json")
    assert (answer.code, answer.rows[0]["status"]) == (0, "changed")
    assert "by ann (a migration)" in answer.err
    (row,) = answer.rows
    end = datetime.fromisoformat(row["paused_until"])
    assert timedelta(minutes=115) < end - datetime.now(UTC) < timedelta(minutes=121)


def test_until_an_instant(desk: Desk, plan: Scene) -> None:
    end = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    (row,) = desk.run("pause", "daily", "--reason", "x", "--until", end.isoformat(), "-o", "json").rows
    assert row["paused_until"] == end.strftime("%Y-%m-%dT%H:%M:%SZ")
    after = datetime.fromisoformat(_job(desk, "daily")["next_tick"])
    assert end < after <= end + timedelta(hours=25), "a day, and in autumn one of 25 hours"
    (line,) = desk.run("audit", "-o", "json").rows
    assert line["until"] == row["paused_until"]
    text = desk.run("jobs", "--paused").out
    assert text.splitlines()[0].split()[:4] == ["JOB", "STATE", "SCHEDULE", "NEXT"]
    assert text.count("\n") == 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["pause", "hourly"], 2, "--reason"),
        (["pause", "hourly", "--reason", " "], 2, "--reason"),
        (["pause", "hourly", "--reason", "a\nb"], 2, "--reason"),
        (["pause", "hourly", "--reason", "x" * 501], 2, "--reason"),
        (["pause", "hourly", "--reason", "x", "--until", "2020-01-01T00:00:00Z"], 2, "is past"),
        (["pause", "hourly", "--reason", "x", "--until", "2099-01-01T00:00:00"], 2, "has no zone"),
        (["pause", "hourly", "--reason", "x", "--until", "tomorrow"], 2, "--until"),
        (["pause", "hourly", "--reason", "x", "--for", "2"], 2, "has no unit"),
        (["pause", "hourly", "--reason", "x", "--for", "0s"], 2, "--for"),
        (["pause", "hourly", "--reason", "x", "--for", "1h", "--until", "2099-01-01T00:00:00Z"], 2, "one of"),
        (["pause", "huorly", "--reason", "x"], 4, 'did you mean "hourly"?'),
        (["pause", "gone", "--reason", "x"], 4, "was removed from the plan"),
        (["resume", "huorly"], 4, 'did you mean "hourly"?'),
        (["resume", "gone"], 4, "was removed from the plan"),
        (["resume"], 2, "Missing argument"),
        (["audit", "--job", "huorly"], 4, 'did you mean "hourly"?'),
        (["audit", "--limit", "0"], 2, "--limit"),
    ],
    ids=lambda words: " ".join(words)[:50] if isinstance(words, list) else "",
)
def test_what_is_wrong_is_said_and_changes_nothing(
    desk: Desk, plan: Scene, words: list[str], code: int, said: str
) -> None:
    plan.apply(HOURLY, DAILY, BY_HAND, spec("gone"), content="2")
    plan.sql("UPDATE soloist.job SET removed_at = now() WHERE name = 'gone'")
    answer = desk.run(*words)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    assert plan.sql("SELECT 1 FROM soloist.audit") == []
    assert plan.sql("SELECT 1 FROM soloist.job WHERE paused_at IS NOT NULL") == []


def test_a_locked_job_is_waited_for_and_then_told(desk: Desk, plan: Scene) -> None:
    with psycopg.connect(direct(plan.url)) as lunch:
        lunch.execute("SELECT FROM soloist.job WHERE name = 'hourly' FOR UPDATE")
        answer = desk.run("pause", "hourly", "--reason", "x")
    assert (answer.code, answer.out) == (5, "")
    assert "lock" in answer.err
    assert desk.run("pause", "hourly", "--reason", "x").code == 0


def test_jobs_says_what_there_is_to_do(desk: Desk, plan: Scene) -> None:
    rows = desk.run("jobs", "-o", "json").rows
    assert [(row["job"], row["schedule"], row["state"]) for row in rows] == [
        ("by-hand", "by hand", "active"),
        ("daily", "0 3 * * *", "active"),
        ("hourly", "every 1h", "active"),
    ]
    assert list(rows[0]) == [
        "job", "state", "schedule", "timezone", "next_tick", "paused_at", "paused_until", "paused_by", "paused_reason",
        "removed_at", "last_run_key", "last_status", "last_started_at", "last_finished_at", "last_replica",
    ]  # fmt: skip
    assert rows[0]["next_tick"] is None
    run = plan.running(plan.owner("worker"), HOURLY)
    row = _job(desk)
    assert (row["last_status"], row["last_replica"]) == ("running", "worker")
    assert row["last_run_key"] == plan.row(run)["run_key"]
    plan.sql("UPDATE soloist.job SET removed_at = now() WHERE name = 'daily'")
    assert len(desk.run("jobs", "-o", "json").rows) == 2
    assert [row["state"] for row in desk.run("jobs", "--all", "-o", "json").rows] == ["active", "removed", "active"]
    nothing = desk.run("jobs", "--paused")
    assert (nothing.code, nothing.out) == (0, "")
    assert "no job is paused" in nothing.err


def test_no_plan_at_all(desk: Desk, scene: Scene) -> None:
    assert desk.run("jobs", "-o", "json").rows == []
    assert "no replica has put a plan in force" in desk.run("jobs").err
    assert desk.run("pause", "a", "--reason", "x").code == 4


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        (Every(900.0), "every 15m"),
        (Every(5400.0), "every 1h30m"),
        (Every(0.25), "every 250ms"),
        (Every(90061.0), "every 1d1h1m1s"),
        (At(datetime(2026, 12, 24, 18, tzinfo=UTC)), "at 2026-12-24T18:00:00Z"),
        (Cron("@daily", "UTC"), "0 0 * * *"),
        (None, "by hand"),
    ],
)
def test_schedules_are_written_as_the_file_has_them(schedule: Any, text: str) -> None:
    assert schedule_text(schedule) == text


def test_the_audit_says_who_did_what(desk: Desk, plan: Scene) -> None:
    desk.run("pause", "hourly", "--reason", "a migration")
    (made,) = desk.run("trigger", "daily", "--key", "x", "-o", "json").rows
    desk.run("trigger", "daily", "--key", "x")
    desk.run("resume", "hourly", "--reason", "done")
    plan.sql("UPDATE soloist.run SET status = 'failed', finished_at = now(), ready_at = NULL WHERE id = %s", made["id"])
    (again,) = desk.run("runs", "retry", made["id"], "-o", "json").rows
    rows = desk.run("audit", "-o", "json").rows
    assert list(rows[0]) == ["id", "at", "who", "action", "job", "run", "why", "until"]
    assert [(row["who"], row["action"], row["job"], row["run"], row["why"]) for row in rows] == [
        (ME, "retry", "daily", again["id"], None),
        (ME, "resume", "hourly", None, "done"),
        (ME, "trigger", "daily", made["id"], None),
        (ME, "pause", "hourly", None, "a migration"),
    ]
    assert [row["action"] for row in desk.run("audit", "--job", "hourly", "-o", "json").rows] == ["resume", "pause"]
    assert len(desk.run("audit", "--limit", "1", "-o", "json").rows) == 1
    assert desk.run("audit").out.splitlines()[0].split() == ["AT", "WHO", "ACTION", "JOB", "UNTIL", "RUN", "WHY"]


def test_a_purge_that_deleted_something_is_in_the_audit(desk: Desk, plan: Scene) -> None:
    (desk.folder / "jobs.yaml").write_text("version: 1\nretention: {skipped: 1h}\njobs: {}\n")
    assert desk.run("purge").code == 0
    assert desk.run("audit", "-o", "json").rows == []
    plan.sql(
        "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, skip_reason, exclusive, finished_at)"
        " SELECT '01900000-0000-7000-8000-000000000000', id, 'old', now(), 'schedule', 'skipped', 'missed', true,"
        " now() - interval '2 days' FROM soloist.job WHERE name = 'hourly'"
    )
    assert desk.run("purge", "--dry-run").code == 0
    assert desk.run("audit", "-o", "json").rows == []
    assert desk.run("purge").code == 0
    (line,) = desk.run("audit", "-o", "json").rows
    assert (line["who"], line["action"], line["why"]) == (ME, "purge", "deleted 1 skipped")


def test_all_of_it_behind_a_pooler(desk: Desk, plan: Scene, pooled_url: str) -> None:
    desk.env["SOLOIST_DATABASE_URL"] = pooled_url
    assert desk.run("pause", "hourly", "--reason", "100% sure", "--for", "1h").code == 0
    assert desk.run("pause", "hourly", "--reason", "x", "--until", "2020-01-01T00:00:00Z").code == 2
    (row,) = desk.run("jobs", "--paused", "-o", "json").rows
    assert (row["job"], row["paused_reason"]) == ("hourly", "100% sure")
    (done,) = desk.run("resume", "hourly", "-o", "json").rows
    assert done["missed"] == 5
    assert [line["action"] for line in desk.run("audit", "-o", "json").rows] == ["resume", "pause"]
    plan.sql("UPDATE soloist.job SET paused_at = now(), paused_until = now(), paused_by = 'x', paused_reason = 'x'")
    assert len(pauses.end_pauses(plan.mine, uuid7)) == 3
