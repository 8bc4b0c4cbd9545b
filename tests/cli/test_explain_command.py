"""explain: every way a tick may have gone, each from the rows that the protocol itself has made."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from desk import Desk
from replicas import away_from_a_tick
from scene import BASE, Scene, birth, registration
from uuid_utils.compat import uuid7

from scheduler.cli.answers import Answer
from scheduler.cli.inquiry import Inquiry
from scheduler.config.jobs_file import parse
from scheduler.core.model import Birth, Ending, IfBlocked, JobSpec, Outcome, SkipReason, Status, Trigger
from scheduler.core.policy import Decision, decide_due
from scheduler.core.schedule import due
from scheduler.store import claims, pauses, runs
from scheduler.store.claims import Request
from scheduler.store.jobs import read_job
from scheduler.store.runs import Settlement
from scheduler.store.visit import visit

HOURLY = {"hourly": {"every": "1h", "call": "work:quick"}}
Ask = Callable[..., Answer]


def plan_of(text: str) -> JobSpec:
    (spec,) = parse(text.encode()).jobs
    return spec


def file(**jobs: Any) -> str:
    return json.dumps({"version": 1, "jobs": {name.replace("_", "-"): entry for name, entry in jobs.items()}})


TEXT = file(**HOURLY)
SPEC = plan_of(TEXT)


def hour(n: int) -> datetime:
    """Ticks of the last days, on the hour."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return now + timedelta(hours=n)


def key(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def tick(n: int, status: Status = Status.RUNNING, **fields: Any) -> Birth:
    return birth((hour(n) - BASE).total_seconds(), status, **fields)


@pytest.fixture(autouse=True)
def _one_hour() -> None:
    """All of a test lies in one hour. Once for all fixtures: a second wait might end in the next one."""
    away_from_a_tick(3600)


@pytest.fixture
def plan(scene: Scene) -> Scene:
    """An hourly job that was put in force fifty hours ago, and accounted for up to twenty hours ago."""
    scene.apply(SPEC, content=TEXT)
    scene.sql("UPDATE soloist.config SET registered_at = %s", hour(-50))
    scene.sql("UPDATE soloist.job SET watermark = %s", hour(-20))
    return scene


@pytest.fixture
def ask(scene: Scene) -> Ask:
    def asked(at: datetime, job: str = "hourly") -> Answer:
        known = read_job(scene.mine, job)
        assert known is not None
        with visit(scene.url, "explain") as connection:
            return Inquiry(connection, known, at).answer()

    return asked


def test_it_ran(plan: Scene, ask: Ask, desk: Desk) -> None:
    owner = plan.owner("worker")
    (made,) = plan.claim(owner, plan.want(SPEC, tick(-19))).made
    assert ask(hour(-19)).answer == "running"
    again = Decision(Status.QUEUED, spent=1)
    runs.settle(plan.mine, owner, [Settlement(made.id, 1, again, Ending(Outcome.FAILED, error_text="no paper"))])
    assert ask(hour(-19)).answer == "queued"
    ((_, claim),) = claims.dequeue(plan.mine, owner, 1, 5)
    ended = Settlement(made.id, claim.attempt, Decision(Status.SUCCEEDED), Ending(Outcome.SUCCEEDED))
    runs.settle(plan.mine, owner, [ended])
    (row,) = desk.run("explain", "hourly", "--at", key(hour(-19)), "-o", "json").rows
    assert list(row) == [
        "job", "at", "run_key", "answer", "status", "skip_reason", "run", "replica", "attempt", "trigger", "started_at",
        "finished_at", "missed", "since", "text",
    ]  # fmt: skip
    assert (row["answer"], row["status"], row["replica"], row["attempt"]) == ("ran", "succeeded", "worker", 2)
    assert (row["run"], row["at"], row["run_key"]) == (str(made.id), key(hour(-19)), key(hour(-19)))
    assert "succeeded at" in row["text"]
    assert "attempt 1 on worker: failed: no paper" in row["text"]
    answer = desk.run("explain", "hourly", "--at", hour(-19).isoformat())
    assert answer.out.startswith(f"hourly at {hour(-19):%Y-%m-%d %H:%M:%S}Z (")
    assert ": ran\n  succeeded at" in answer.out


def test_it_waits_its_turn(plan: Scene, ask: Ask) -> None:
    plan.claim(plan.owner(), plan.want(SPEC, tick(-19), tick(-18, if_blocked=Status.WAITING)))
    answer = ask(hour(-18))
    assert answer.answer == "waiting"
    assert "active run" in answer.text


def test_another_was_in_its_way(plan: Scene, ask: Ask) -> None:
    plan.claim(plan.owner(), plan.want(SPEC, tick(-19), tick(-18)))
    answer = ask(hour(-18))
    assert answer.answer == "skipped"
    assert f"in its way: {key(hour(-19))}" in answer.text
    plan.sql("DELETE FROM soloist.run WHERE status = 'running'")
    assert "purged by now" in ask(hour(-18)).text


def test_it_was_missed(plan: Scene, ask: Ask) -> None:
    plan.claim(plan.owner(), plan.want(SPEC, tick(-19, Status.SKIPPED, skip_reason=SkipReason.MISSED)))
    answer = ask(hour(-19))
    assert answer.answer == "skipped"
    assert "missed: a replica came to it 19h" in answer.text
    assert "grace 1m)" in answer.text


@pytest.mark.parametrize(("reason", "said"), [("stale_config", "removed or changed"), ("job", "nothing to do")])
def test_other_reasons(plan: Scene, ask: Ask, reason: str, said: str) -> None:
    plan.claim(plan.owner(), plan.want(SPEC, tick(-19, Status.SKIPPED, skip_reason=SkipReason(reason))))
    plan.sql("UPDATE soloist.run SET last_error = 'nothing to do'")
    assert said in ask(hour(-19)).text


@pytest.mark.case("C065")
def test_one_row_stands_for_many(plan: Scene, ask: Ask) -> None:
    """A minutely job of which thousands of ticks were missed: any of them is explained by the one row."""
    text = file(minutely={"every": "1m", "call": "work:quick", "misfire": {"limit": 1, "policy": "skip"}})
    spec = plan_of(text)
    plan.apply(SPEC, spec, content="2")
    plan.sql("UPDATE soloist.config SET registered_at = %s, content = %s", hour(-50), text)
    plan.sql("UPDATE soloist.job SET watermark = %s WHERE name = 'minutely'", hour(-40))
    now = hour(-1)
    assert spec.schedule is not None
    births = decide_due(spec, due(spec.schedule, hour(-40), now, 1), now)
    plan.claim(plan.owner(), plan.want(spec, *births, seen=hour(-40)))
    counting, last = plan.rows("minutely")
    assert counting["result"]["missed"] == 39 * 60 - 1
    answer = ask(hour(-20), "minutely")
    assert (answer.answer, answer.run and answer.run["id"]) == ("counted", counting["id"])
    assert "its row stands for 2339 ticks" in answer.text
    # the row is made now; how late each tick was is its own
    assert "missed: a replica came to it 20h" in answer.text
    assert "missed: a replica came to it 1d11h" in ask(hour(-35), "minutely").text
    assert ask(hour(-20) + timedelta(seconds=1), "minutely").answer == "not_a_tick"
    assert ask(counting["scheduled_at"], "minutely").answer == "skipped", "the row's own tick"
    assert ask(last["scheduled_at"], "minutely").answer == "running", "this one was on time"


def test_its_job_was_paused(plan: Scene, ask: Ask, desk: Desk) -> None:
    pauses.pause_job(plan.mine, pauses.Wish("hourly", "ann", "a migration"))
    during = ask(hour(-5))
    assert during.answer == "paused"
    assert "by ann: a migration" in during.text
    coming = ask(hour(2))
    assert coming.answer == "future"
    assert "soloist resume hourly" in coming.text
    pauses.resume_job(plan.mine, "hourly", "bob", None, uuid7)
    counted = ask(hour(-5))
    assert counted.answer == "counted"
    assert "paused by ann at" in counted.text
    assert "its row stands for 20 ticks" in counted.text
    (row,) = desk.run("explain", "hourly", "--at", key(hour(-5)), "-o", "json").rows
    assert (row["missed"], row["skip_reason"], row["since"]) == (20, "paused", hour(-19).isoformat())
    plan.sql("DELETE FROM soloist.run")
    plan.sql("UPDATE soloist.audit SET at = at - interval '1 day'")
    assert ask(hour(-5)).answer == "unclaimed", "the pause was over by then"
    plan.sql("UPDATE soloist.audit SET at = now() WHERE action = 'resume'")
    assert ask(hour(-5)).answer == "paused"


def test_a_pause_that_is_over_by_then(plan: Scene, ask: Ask) -> None:
    pauses.pause_job(plan.mine, pauses.Wish("hourly", "ann", "x", lasting=60.0))
    assert "over by then" in ask(hour(3)).text


def test_a_skipped_tick_that_was_run_by_hand(plan: Scene, ask: Ask) -> None:
    plan.claim(plan.owner(), plan.want(SPEC, tick(-19, Status.SKIPPED, skip_reason=SkipReason.MISSED)))
    (first,) = plan.rows()
    request = Request(uuid.uuid4(), "hourly", f"{key(hour(-19))}~2", Trigger.BACKFILL, "ann", scheduled_at=hour(-19))
    claims.create_run(plan.mine, request)
    plan.sql("UPDATE soloist.run SET retry_of = %s WHERE trigger = 'backfill'", first["id"])
    answer = ask(hour(-19))
    assert answer.answer == "queued"
    assert "a second run of this tick (backfill, by ann)" in answer.text


def test_its_period_has_a_run(scene: Scene, ask: Ask) -> None:
    text = file(weekly={"every": "1h", "call": "work:quick", "once_per": "week"})
    spec = plan_of(text)
    scene.apply(spec, content=text)
    scene.sql("UPDATE soloist.config SET registered_at = '2025-01-01'")
    scene.sql("UPDATE soloist.job SET watermark = %s", BASE)
    scene.claim(scene.owner(), scene.want(spec, birth(3600, run_key="2026-W01")))
    answer = ask(BASE + timedelta(hours=9), "weekly")
    assert answer.answer == "running"
    assert "its tick is 2026-01-01 01:00:00Z: its key 2026-W01 holds the one asked for too" in answer.text
    assert ask(BASE + timedelta(hours=9, minutes=1), "weekly").answer == "not_a_tick", "though its week has a run"
    begun = BASE + timedelta(hours=1, seconds=34)
    scene.sql("UPDATE soloist.run SET started_at = %s, status = 'succeeded', finished_at = now()", begun)
    for hours in (0, 9):  # neither from before its run's tick nor from after it
        assert "begun 34.0s after its tick 2026-01-01 01:00:00Z" in ask(BASE + timedelta(hours=hours), "weekly").text
    assert "begun 34.0s after its tick\n" in ask(BASE + timedelta(hours=1), "weekly").text + "\n"


def test_it_gave_way_before_it_began(scene: Scene, ask: Ask) -> None:
    text = file(newest={"every": "1h", "call": "work:quick", "overlap": "replace"})
    spec = plan_of(text)
    scene.apply(spec, content=text)
    scene.sql("UPDATE soloist.config SET registered_at = '2025-01-01'")
    scene.sql("UPDATE soloist.job SET watermark = %s", BASE)
    owner = scene.owner()
    for n in (1, 2, 3):
        scene.claim(owner, scene.want(spec, birth(3600 * n, if_blocked=IfBlocked.WAITING)))
    runs.replace(scene.mine, [scene.known()["newest"].id])
    _, _, newest = scene.rows()
    answer = ask(BASE + timedelta(hours=2), "newest")
    assert answer.answer == "replaced"
    named = f"{newest['run_key']} (run {newest['id']}, waiting)"
    assert f"it never ran: it was replaced by the newer tick's run {named}" in answer.text
    assert ask(BASE + timedelta(hours=1), "newest").answer == "running", "it is asked to end, and has not yet"
    scene.sql("DELETE FROM soloist.run WHERE id = %s", newest["id"])
    assert "purged by now" in ask(BASE + timedelta(hours=2), "newest").text


def test_no_tick(plan: Scene, ask: Ask) -> None:
    answer = ask(hour(-19) + timedelta(minutes=30))
    assert answer.answer == "not_a_tick"
    assert f"before is {key(hour(-19))}" in answer.text
    assert f"after is {key(hour(-18))}" in answer.text
    assert ask(hour(5) + timedelta(minutes=1)).answer == "not_a_tick"


def test_no_tick_by_the_file_of_then(plan: Scene, ask: Ask) -> None:
    text = file(hourly={"every": "30m", "call": "work:quick"})
    plan.apply(plan_of(text), content=text, me=registration(text))
    answer = ask(hour(-30) + timedelta(minutes=30))
    assert answer.answer == "not_a_tick"
    assert "by the file of then (generation 1)" in answer.text
    assert "now it would be one" in answer.text


def test_a_file_of_then_that_nobody_can_read_any_more(plan: Scene, ask: Ask) -> None:
    plan.sql("UPDATE soloist.config SET content = 'jobs: ['")
    assert ask(hour(-30) + timedelta(minutes=30)).answer == "not_a_tick"


def test_by_hand_only(scene: Scene, ask: Ask) -> None:
    scene.apply(JobSpec(name="hand", schedule=None, call="x:y"))
    answer = ask(hour(-1), "hand")
    assert answer.answer == "not_a_tick"
    assert "runs when it is triggered" in answer.text


def test_the_job_was_not_known_yet(plan: Scene, ask: Ask) -> None:
    before = ask(hour(-60))
    assert before.answer == "unknown"
    assert "there was no jobs file yet" in before.text
    assert f"came at {hour(-50):%Y-%m-%d %H}:00:00Z" in before.text
    text = file(**HOURLY, new={"every": "1h", "call": "work:quick"})
    new = next(spec for spec in parse(text.encode()).jobs if spec.name == "new")
    plan.apply(SPEC, new, content=text, me=registration(text))
    answer = ask(hour(-30), "new")
    assert answer.answer == "unknown"
    assert "had no such job" in answer.text
    assert "generation 2" in answer.text


def test_the_job_was_removed(plan: Scene, ask: Ask) -> None:
    plan.sql("UPDATE soloist.job SET removed_at = %s", hour(-10))
    for n in (-5, 5):
        answer = ask(hour(n))
        assert answer.answer == "unknown"
        assert "was removed from the plan" in answer.text
    assert ask(hour(-15)).answer == "unclaimed"


def test_it_is_still_to_come(plan: Scene, ask: Ask) -> None:
    answer = ask(hour(2))
    assert answer.answer == "future"
    assert "misfire.policy latest" in answer.text
    assert "no replica is live" not in answer.text
    plan.sql("UPDATE soloist.replica SET stopped_at = now()")
    assert "no replica is live: start one (soloist serve)" in ask(hour(2)).text


def test_nobody_has_claimed_it(plan: Scene, ask: Ask) -> None:
    plan.sql("UPDATE soloist.replica SET stopped_at = now()")
    assert "no replica is live: start one" in ask(hour(-2)).text
    who = registration(TEXT, "old")
    plan.apply(SPEC, content=TEXT, me=who)
    answer = ask(hour(-2))
    assert answer.answer == "unclaimed"
    assert "old is live: generation 1, holds this spec" in answer.text
    text = file(hourly={"every": "30m", "call": "work:quick"})
    plan.apply(plan_of(text), content=text, me=registration(text, "new"))
    plan.sql("DELETE FROM soloist.run")  # what the old spec still owed
    plan.sql("UPDATE soloist.job SET watermark = %s", hour(-20))
    plan.sql("UPDATE soloist.replica SET stopped_at = now() WHERE name = 'new'")
    answer = ask(hour(-2))
    assert "old is live: generation 1, holds another spec" in answer.text
    assert "that holds the spec in force" in answer.text


def test_its_row_was_purged(plan: Scene, ask: Ask) -> None:
    plan.sql("""UPDATE soloist.config SET retention = '{"succeeded": 7200, "failed": null, "skipped": 86400}'""")
    answer = ask(hour(-25))
    assert answer.answer == "purged"
    assert "from 2h on" in answer.text
    plan.sql("UPDATE soloist.config SET retention = '{}'")
    assert ask(hour(-25)).answer == "unclaimed"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["houry", "--at", "2026-01-01T00:00:00Z"], 4, 'did you mean "hourly"?'),
        (["hourly", "--at", "2026-01-01T00:00:00"], 2, "has no zone"),
        (["hourly", "--at", "noon"], 2, "--at"),
        (["hourly"], 2, "--at"),
    ],
    ids=lambda words: " ".join(words)[:30] if isinstance(words, list) else "",
)
def test_what_is_wrong_is_said(desk: Desk, plan: Scene, words: list[str], code: int, said: str) -> None:
    answer = desk.run("explain", *words)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err


def test_behind_a_pooler(desk: Desk, plan: Scene, pooled_url: str) -> None:
    desk.env["SOLOIST_DATABASE_URL"] = pooled_url
    (row,) = desk.run("explain", "hourly", "--at", key(hour(3)), "-o", "json").rows
    assert row["answer"] == "future"


def test_in_the_middle_of_a_long_history(plan: Scene, ask: Ask) -> None:
    """It is found by its place among the ids, though its run has a key that no schedule of ours would give it."""
    text = file(often={"every": "1s", "call": "work:quick"})
    plan.apply(SPEC, plan_of(text), content=text, me=registration(text))
    plan.sql(
        "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, skip_reason, exclusive, finished_at)"
        " SELECT (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7000'"
        " || substr(gen_random_uuid()::text, 20))::uuid, job.id, 'odd-' || n, at, 'schedule', 'skipped', 'missed',"
        " true, at FROM soloist.job, (SELECT n, %s - n * interval '1 s' AS at FROM generate_series(1, 20000) n) ticks"
        " WHERE job.name = 'often'",
        hour(0),
    )
    answer = ask(hour(-3), "often")
    assert answer.answer == "skipped"
    assert answer.run is not None
    assert answer.run["run_key"] == "odd-10800"
