"""backfill: which ticks of the past get a run, and that none gets two."""

from __future__ import annotations

import os
import pwd
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from desk import Answer, Desk
from replicas import away_from_a_tick
from scene import BASE, Scene, at, birth, spec
from uuid_utils.compat import uuid7

from scheduler.core.model import JobSpec, Overlap, Period, SkipReason, Status
from scheduler.core.schedule import Cron, Every
from scheduler.store.backfill import Backfill, Stretch
from scheduler.store.jobs import read_job

ME = pwd.getpwuid(os.getuid()).pw_name
HOURLY = JobSpec(name="hourly", schedule=Every(3600.0), call="work:quick", overlap=Overlap.ALLOW)
ALONE = JobSpec(name="alone", schedule=Every(3600.0), call="work:quick")
WEEKLY = JobSpec(name="weekly", schedule=Cron("0 3 * * *", "UTC"), call="work:quick", once_per=Period.WEEK)
BY_HAND = JobSpec(name="by-hand", schedule=None, call="work:quick")


@pytest.fixture
def plan(scene: Scene) -> Scene:
    scene.jobs(HOURLY, ALONE, WEEKLY, BY_HAND)
    return scene


def iso(hours: float) -> str:
    return (BASE + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def fill(desk: Desk, job: str, first: float, last: float, *words: str) -> Answer:
    return desk.run("backfill", job, "--from", iso(first), "--to", iso(last), "-o", "json", *words)


def test_each_tick_gets_a_run_and_both_ends_are_in(desk: Desk, plan: Scene) -> None:
    answer = fill(desk, "hourly", 1, 4)
    rows = answer.rows
    assert list(rows[0]) == ["job", "scheduled_at", "run_key", "status", "id", "run_status"]
    assert [(row["scheduled_at"], row["run_key"]) for row in rows] == [(iso(n), iso(n)) for n in (1, 2, 3, 4)]
    assert {(row["status"], row["run_status"]) for row in rows} == {("created", "queued")}
    assert "hourly: 4 created" in answer.err
    made = plan.rows("hourly")
    assert [str(row["id"]) for row in made] == [row["id"] for row in rows]
    assert {(row["trigger"], row["triggered_by"], row["priority"], row["retry_of"]) for row in made} == {
        ("backfill", ME, 100, None)
    }
    again = fill(desk, "hourly", 1, 4)
    assert [row["status"] for row in again.rows] == ["exists"] * 4
    assert [row["id"] for row in again.rows] == [row["id"] for row in rows]
    assert len(plan.rows()) == 4
    (line,) = desk.run("audit", "-o", "json").rows
    assert (line["who"], line["action"], line["job"]) == (ME, "backfill", "hourly")
    assert line["why"] == f"4 runs for ticks from {iso(1)} to {iso(4)}"


def test_a_dry_run_writes_nothing_and_says_the_same(desk: Desk, plan: Scene) -> None:
    dry = fill(desk, "hourly", 1, 3, "--dry-run")
    assert [(row["status"], row["id"], row["run_status"]) for row in dry.rows] == [("would_create", None, None)] * 3
    assert "3 would create" in dry.err
    assert plan.rows() == []
    assert desk.run("audit", "-o", "json").rows == []
    wet = fill(desk, "hourly", 1, 3)
    assert [row["run_key"] for row in wet.rows] == [row["run_key"] for row in dry.rows]


def test_what_ran_is_left_alone_and_what_was_skipped_runs_beside_its_row(desk: Desk, plan: Scene) -> None:
    owner = plan.owner()
    keys = [iso(n) for n in range(1, 8)]
    reasons = [SkipReason.MISSED, SkipReason.PAUSED, SkipReason.OVERLAP, SkipReason.STALE_CONFIG, SkipReason.JOB]
    births = [
        birth(3600 * n, Status.SKIPPED, skip_reason=why, run_key=keys[n - 1], tick_key=keys[n - 1])
        for n, why in enumerate(reasons, 1)
    ]
    births.append(birth(3600 * 6, run_key=keys[5], tick_key=keys[5]))
    plan.claim(owner, plan.want(HOURLY, *births))
    before = {row["run_key"]: row for row in plan.rows()}
    rows = fill(desk, "hourly", 1, 7).rows
    assert [(row["run_key"], row["status"], row["run_status"]) for row in rows] == [
        *((f"{key}~2", "created", "queued") for key in keys[:4]),
        (keys[4], "exists", "skipped"),  # its own function said that there was nothing to do
        (keys[5], "exists", "running"),
        (keys[6], "created", "queued"),
    ]
    made = {row["run_key"]: row for row in plan.rows()}
    assert [made[f"{key}~2"]["retry_of"] for key in keys[:4]] == [before[key]["id"] for key in keys[:4]]
    assert [row["status"] for row in fill(desk, "hourly", 1, 7).rows] == ["exists"] * 7
    assert len(plan.rows()) == 11


def test_one_that_was_retried_by_hand_is_left_alone(desk: Desk, plan: Scene) -> None:
    made = birth(3600, Status.SKIPPED, skip_reason=SkipReason.MISSED, run_key=iso(1), tick_key=iso(1))
    (row,) = plan.claim(plan.owner(), plan.want(HOURLY, made)).made
    (retried,) = desk.run("runs", "retry", str(row.id), "-o", "json").rows
    (filled,) = fill(desk, "hourly", 1, 1).rows
    assert (filled["status"], filled["id"]) == ("exists", retried["id"])


def test_nor_does_its_period_run_beside_such_a_retry(desk: Desk, plan: Scene) -> None:
    key = "2026-01-15T03:00:00[UTC]"
    tick = {"run_key": key, "tick_key": key, "scheduled_at": BASE + timedelta(days=14, hours=3)}
    made = birth(0, Status.SKIPPED, skip_reason=SkipReason.MISSED, **tick)
    (row,) = plan.claim(plan.owner(), plan.want(WEEKLY, made)).made
    (retried,) = desk.run("runs", "retry", str(row.id), "-o", "json").rows
    (filled,) = fill(desk, "weekly", 24 * 14, 24 * 15).rows
    assert (filled["status"], filled["id"]) == ("exists", retried["id"])


def test_of_an_exclusive_job_they_follow_each_other(desk: Desk, plan: Scene) -> None:
    rows = fill(desk, "alone", 1, 3).rows
    assert [row["run_status"] for row in rows] == ["waiting"] * 3
    assert [row["status"] for row in plan.rows("alone")] == ["queued", "waiting", "waiting"], "the oldest is promoted"
    asked = desk.run("trigger", "alone", "-o", "json").rows[0]
    plan.sql(
        "UPDATE soloist.run SET status = 'succeeded', finished_at = now(), ready_at = NULL WHERE status = 'queued'"
    )
    from scheduler.store import runs

    runs.promote(plan.mine, None)
    (next_one,) = [row for row in plan.rows("alone") if row["status"] == "queued"]
    assert str(next_one["id"]) == asked["id"], "what is asked for now does not wait for the whole backfill"


def test_once_per_week_makes_one_run_a_week(desk: Desk, plan: Scene) -> None:
    """BASE is a Thursday; the ticks of a week share its key."""
    rows = fill(desk, "weekly", 0, 24 * 10).rows
    assert [row["run_key"] for row in rows] == ["2026-W01", "2026-W02"]
    skipped = BASE + timedelta(days=14, hours=3)
    key = "2026-01-15T03:00:00[UTC]"
    missed = birth(0, Status.SKIPPED, skip_reason=SkipReason.MISSED, run_key=key, tick_key=key, scheduled_at=skipped)
    plan.claim(plan.owner(), plan.want(WEEKLY, missed))
    (row,) = fill(desk, "weekly", 24 * 14, 24 * 15).rows
    assert (row["run_key"], row["status"]) == ("2026-W03", "created"), "the week's own key was free"
    made = next(one for one in plan.rows("weekly") if one["run_key"] == "2026-W03")
    assert made["retry_of"] == next(one["id"] for one in plan.rows("weekly") if one["run_key"] == key)
    assert [one["status"] for one in fill(desk, "weekly", 24 * 14, 24 * 15).rows] == ["exists"]


def test_never_beyond_now(desk: Desk, plan: Scene) -> None:
    away_from_a_tick(3600)
    first = datetime.now(UTC) - timedelta(hours=3)
    last = first + timedelta(days=100)
    answer = desk.run("backfill", "hourly", "--from", first.isoformat(), "--to", last.isoformat(), "-o", "json")
    assert len(answer.rows) == 3
    assert "still to come" in answer.err
    assert all(row["scheduled_at"] <= datetime.now(UTC) for row in plan.rows())


def test_a_thousand_at_once_and_more_with_a_limit(desk: Desk, plan: Scene) -> None:
    answer = fill(desk, "hourly", 0, 1000)
    assert (answer.code, answer.out) == (2, "")
    assert "1001 ticks" in answer.err
    assert "--limit" in answer.err
    rows = fill(desk, "hourly", 0, 1000, "--limit", "300").rows
    assert [row["scheduled_at"] for row in rows] == [iso(n) for n in range(300)]
    rows = fill(desk, "hourly", 0, 1000, "--limit", "2").rows
    assert [row["scheduled_at"] for row in rows if row["status"] == "created"] == [iso(300), iso(301)]
    assert len(plan.rows()) == 302


def test_the_limit_counts_runs_not_ticks(desk: Desk, scene: Scene) -> None:
    minutely = JobSpec(name="minutely", schedule=Every(60.0), call="work:quick", once_per=Period.DAY)
    scene.jobs(minutely)
    rows = fill(desk, "minutely", 1, 25).rows
    assert [(row["run_key"], row["scheduled_at"]) for row in rows] == [("2026-01-01", iso(1)), ("2026-01-02", iso(24))]
    answer = fill(desk, "minutely", -24 * 1000, 0)
    assert answer.code == 2
    assert "1001 runs to make there, one a day, and 1000 are taken at once" in answer.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["huorly", "--from", iso(0), "--to", iso(1)], 4, 'did you mean "hourly"?'),
        (["gone", "--from", iso(0), "--to", iso(1)], 4, "was removed"),
        (["by-hand", "--from", iso(0), "--to", iso(1)], 2, "has no schedule"),
        (["hourly", "--from", iso(2), "--to", iso(1)], 2, "--from"),
        (["hourly", "--from", "2099-01-01T00:00:00Z", "--to", "2099-01-02T00:00:00Z"], 2, "still to come"),
        (["hourly", "--from", "2026-01-01", "--to", iso(1)], 2, "has no zone"),
        (["hourly", "--to", iso(1)], 2, "--from"),
        (["hourly", "--from", iso(0)], 2, "--to"),
        (["hourly", "--from", iso(0), "--to", iso(1), "--limit", "0"], 2, "--limit"),
    ],
    ids=lambda words: " ".join(words)[:40] if isinstance(words, list) else "",
)
def test_what_is_wrong_is_said_and_makes_nothing(
    desk: Desk, plan: Scene, words: list[str], code: int, said: str
) -> None:
    plan.apply(HOURLY, ALONE, WEEKLY, BY_HAND, spec("gone"), content="2")
    plan.sql("UPDATE soloist.job SET removed_at = now() WHERE name = 'gone'")
    answer = desk.run("backfill", *words)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    assert plan.rows() == []


def test_no_tick_there(desk: Desk, plan: Scene) -> None:
    answer = fill(desk, "hourly", 0.2, 0.8)
    assert (answer.code, answer.rows) == (0, [])
    assert "no tick there" in answer.err


def test_two_at_once_make_each_run_once(scene: Scene) -> None:
    scene.jobs(HOURLY)
    job = read_job(scene.mine, "hourly")
    assert job is not None
    sessions = [scene.session(f"t{n}") for n in range(4)]

    def ask(n: int) -> int:
        done = Backfill(sessions[n], job, f"p{n}", lambda: uuid.UUID(str(uuid7()))).fill(Stretch(at(0), at(3600 * 599)))
        return sum(one.what == "created" for one in done)

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(ask, range(4))) == 600
    assert len(scene.rows()) == 600


def test_another_spec_in_force_ends_it(scene: Scene) -> None:
    from scheduler.core.errors import SoloistError

    scene.jobs(HOURLY)
    job = read_job(scene.mine, "hourly")
    assert job is not None
    scene.sql("UPDATE soloist.job SET spec_hash = 'other'")
    with pytest.raises(SoloistError, match="changed or removed"):
        list(Backfill(scene.mine, job, "me", uuid7).fill(Stretch(at(0), at(3600))))


def test_behind_a_pooler(desk: Desk, plan: Scene, pooled_url: str) -> None:
    desk.env["SOLOIST_DATABASE_URL"] = pooled_url
    assert [row["status"] for row in fill(desk, "alone", 1, 2).rows] == ["created", "created"]
    assert [row["status"] for row in fill(desk, "alone", 1, 2).rows] == ["exists", "exists"]
