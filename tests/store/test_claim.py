"""The claim: one winner a tick, no tick without a row, nothing before the database's time."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from scene import BASE, Scene, at, birth, spec

from scheduler.core.errors import NotFound
from scheduler.core.model import AfterCrash, Misfire, Overlap, RetryPolicy, SkipReason, Status, Trigger
from scheduler.core.policy import decide_tick
from scheduler.store import claims
from scheduler.store.claims import Request

ALLOW = spec("a", overlap=Overlap.ALLOW)
SKIP = spec("a")


def test_the_winner_owns_the_run_and_the_watermark_moves(scene: Scene) -> None:
    scene.jobs(SKIP)
    owner = scene.owner()
    answer = scene.claim(owner, scene.want(SKIP, birth(1)))
    (row,) = scene.rows()
    assert [made.id for made in answer.made] == [row["id"]]
    assert (row["status"], row["attempt"], row["claimed_by"]) == ("running", 1, owner.id)
    assert row["claimed_until"] > row["started_at"] >= row["scheduled_at"]
    job = scene.known()["a"]
    assert job.watermark == at(1)
    assert answer.moved == {job.id}


def test_a_second_claim_of_the_tick_gets_nothing_and_writes_nothing(scene: Scene) -> None:
    scene.jobs(SKIP)
    late = scene.want(SKIP, birth(1))
    scene.claim(scene.owner("first"), scene.want(SKIP, birth(1)))
    (before,) = scene.rows()
    answer = scene.claim(scene.owner("second"), late)
    assert (answer.made, answer.moved) == ((), frozenset())
    assert scene.rows() == [before]


def test_read_lost_names_the_winner(scene: Scene) -> None:
    scene.jobs(SKIP)
    job = scene.known()["a"]
    run = scene.running(scene.owner("the-winner"), SKIP)
    (lost,) = claims.read_lost(scene.mine, [(job.id, birth(1).run_key)])
    assert (lost.winner, lost.run_id, lost.status, lost.watermark) == ("the-winner", run, Status.RUNNING, at(1))


def test_a_tick_that_is_still_to_come_by_the_databases_clock_is_not_claimed(scene: Scene) -> None:
    scene.jobs(SKIP)
    ahead = (datetime.now(UTC) - at(0)).total_seconds() + 3600
    answer = scene.claim(scene.owner(), scene.want(SKIP, birth(ahead)))
    assert (answer.made, answer.moved, scene.rows()) == ((), frozenset(), [])
    assert answer.database_now is not None
    assert scene.known()["a"].watermark == at(0)


def test_ticks_past_and_to_come_in_one_claim_do_not_move_the_watermark_past_the_latter(scene: Scene) -> None:
    scene.jobs(ALLOW)
    ahead = (datetime.now(UTC) - at(0)).total_seconds() + 3600
    answer = scene.claim(scene.owner(), scene.want(ALLOW, birth(1), birth(ahead)))
    assert len(answer.made) == 1
    assert answer.moved == frozenset()
    assert scene.known()["a"].watermark == at(0)


@pytest.mark.parametrize(
    "rest",
    ["paused_at = now()", "removed_at = now()", "spec_hash = 'of a newer file'"],
    ids=["paused", "removed", "changed"],
)
def test_a_job_at_rest_or_changed_is_not_claimed(scene: Scene, rest: str) -> None:
    scene.jobs(SKIP)
    scene.sql(f"UPDATE soloist.job SET {rest}")
    answer = scene.claim(scene.owner(), scene.want(SKIP, birth(1)))
    assert (answer.made, answer.moved, scene.rows()) == ((), frozenset(), [])


def test_a_tick_whose_row_is_there_already_moves_the_watermark(scene: Scene) -> None:
    """A pod was asked for the tick by name; or the period was run by hand."""
    scene.jobs(SKIP)
    scene.running(scene.owner(), SKIP)
    scene.sql("UPDATE soloist.job SET watermark = %s", at(0))
    answer = scene.claim(scene.owner(), scene.want(SKIP, birth(1)))
    assert answer.made == ()
    assert len(answer.moved) == 1
    assert len(scene.rows()) == 1


def test_a_row_for_many_ticks_finds_a_place_beside_the_run_of_its_newest(scene: Scene) -> None:
    """A pod was asked for that one, or a person filled it in, while nobody was there to claim the others."""
    job = replace(ALLOW, misfire=Misfire(limit=2, grace=0.0))
    scene.jobs(job)
    pod = Request(uuid.uuid4(), "a", birth(5).run_key, Trigger.CRONJOB, "pod", scheduled_at=at(5))
    claims.create_run(scene.mine, pod, scene.owner())
    births = decide_tick(job, at(0), at(7.5))
    assert births[0].run_key == pod.run_key
    for _ in range(2):  # asked again, where the watermark could not move, there is nothing more to do
        assert scene.claim(scene.owner(), scene.want(job, *births)).moved
        scene.sql("UPDATE soloist.job SET watermark = %s", at(0))
    (counted,) = [row for row in scene.rows() if row["result"]]
    assert counted["result"] == {"missed": 5, "since": at(1).isoformat()}
    assert counted["run_key"] == f"{birth(1).run_key}/{birth(5).run_key}"
    assert len(scene.rows()) == 4


def test_many_ticks_are_born_as_decided(scene: Scene) -> None:
    scene.jobs(ALLOW)
    births = (
        birth(1, Status.SKIPPED, skip_reason=SkipReason.MISSED, missed=7, since=at(1)),
        birth(2, Status.SKIPPED, skip_reason=SkipReason.MISSED),
        birth(3, trigger=Trigger.CATCH_UP),
        birth(4, Status.QUEUED),
    )
    scene.claim(scene.owner(), scene.want(ALLOW, *births))
    rows = scene.rows()
    assert [row["status"] for row in rows] == ["skipped", "skipped", "running", "queued"]
    assert [row["skip_reason"] for row in rows] == ["missed", "missed", None, None]
    assert rows[0]["result"] == {"missed": 7, "since": at(1).isoformat()}
    assert [row["trigger"] for row in rows] == ["schedule", "schedule", "catch_up", "schedule"]
    assert rows[3]["attempt"] == 0
    assert scene.known()["a"].watermark == at(4)


def test_policy_travels_in_the_rows_own_columns(scene: Scene) -> None:
    from scheduler.core.model import AfterCrash, RetryPolicy

    job = spec("a", retry=RetryPolicy(5, 2.0, 9.0), after_crash=AfterCrash.FAIL, crash_limit=4)
    scene.jobs(job)
    row = scene.row(scene.running(scene.owner(), job))
    kept = [row[name] for name in ("retries_left", "backoff", "backoff_max", "after_crash", "crash_limit", "spec_hash")]
    assert kept == [4, 2.0, 9.0, "fail", 4, job.hash]


def test_one_refused_job_holds_up_no_other_of_its_chunk(scene: Scene) -> None:
    one, two = spec("a"), spec("b")
    scene.jobs(one, two)
    stale = scene.want(one, birth(1), seen=at(-5))
    answer = scene.claim(scene.owner(), stale, scene.want(two, birth(1)))
    assert [row["name"] for row in scene.rows()] == ["b"]
    assert len(answer.moved) == 1


def test_a_chunk_of_250_jobs_is_claimed_by_one_statement(scene: Scene) -> None:
    specs = [spec(f"j-{n}") for n in range(250)]
    known = scene.jobs(*specs)
    wants = [
        claims.Want(
            known[s.name].id, s.hash, at(0), ((uuid.uuid4(), birth(1)), (uuid.uuid4(), birth(2, Status.QUEUED)))
        )
        for s in specs
    ]
    answer = claims.claim(scene.mine, scene.owner(), wants)
    assert len(answer.made) == 500
    assert len(answer.moved) == 250
    counted = scene.sql("SELECT status, count(*) AS n FROM soloist.run GROUP BY 1 ORDER BY 1")
    # the second tick of each exclusive job gives way to the first
    assert {row["status"]: row["n"] for row in counted} == {"running": 250, "skipped": 250}


def test_a_claim_by_name_and_a_tick_share_one_row(scene: Scene) -> None:
    scene.jobs(SKIP)
    owner = scene.owner("pod")
    request = Request(uuid.uuid4(), "a", birth(1).run_key, Trigger.CRONJOB, "pod", scheduled_at=at(1))
    created = claims.create_run(scene.mine, request, owner)
    assert (created.fresh, created.status) == (True, Status.RUNNING)
    assert scene.claim(scene.owner(), scene.want(SKIP, birth(1))).made == ()
    again = claims.create_run(scene.mine, Request(uuid.uuid4(), "a", birth(1).run_key, Trigger.CRONJOB, "x"), owner)
    assert (again.fresh, again.id, again.owner) == (False, created.id, "pod")


def test_a_claim_by_name_that_is_asked_again_is_known_by_its_id(scene: Scene) -> None:
    """Its answer was lost. It may be the row of a tick that was skipped, under that tick's own key."""
    weekly = spec("a", once_per="week")
    scene.jobs(weekly)
    owner = scene.owner("pod")
    request = Request(uuid.uuid4(), "a", "2026-W49", Trigger.CRONJOB, "pod", birth(1).run_key, at(1))
    assert claims.create_run(scene.mine, request, owner) == claims.create_run(scene.mine, request, owner)
    assert scene.row(request.id)["status"] == "running"
    blocked = Request(
        uuid.uuid4(), "a", "2026-W50", Trigger.CRONJOB, "pod", birth(2).run_key, at(2), if_blocked=Status.SKIPPED
    )
    for _ in range(2):
        created = claims.create_run(scene.mine, blocked, owner)
        assert (created.id, created.status, created.fresh) == (blocked.id, Status.SKIPPED, True)
    assert scene.row(blocked.id)["run_key"] == birth(2).run_key


def test_a_run_by_name_of_an_unknown_job_or_a_future_tick_is_not_found(scene: Scene) -> None:
    scene.jobs(SKIP)
    with pytest.raises(NotFound, match='"b"'):
        claims.create_run(scene.mine, Request(uuid.uuid4(), "b", "k", Trigger.MANUAL, "me"))
    soon = datetime.now(UTC) + timedelta(hours=1)
    with pytest.raises(NotFound, match="has not come"):
        claims.create_run(scene.mine, Request(uuid.uuid4(), "a", "k", Trigger.CRONJOB, "me", scheduled_at=soon))
    assert scene.rows() == []


def test_a_manual_run_beside_an_active_one_waits(scene: Scene) -> None:
    scene.jobs(SKIP)
    scene.running(scene.owner(), SKIP)
    created = claims.create_run(
        scene.mine, Request(uuid.uuid4(), "a", "manual:1", Trigger.MANUAL, "me", payload={"x": 1})
    )
    assert created.status is Status.WAITING
    assert scene.row(created.id)["payload"] == {"x": 1}


def test_a_run_takes_its_policy_from_the_spec_that_is_in_force(scene: Scene) -> None:
    mild = spec("a", overlap=Overlap.ALLOW)
    strict = spec("a", after_crash=AfterCrash.FAIL, crash_limit=7, retry=RetryPolicy(4, 2.5, 9.0))
    scene.apply(mild)
    scene.apply(strict, content="2")
    scene.sql("UPDATE soloist.job SET watermark = %s", BASE)
    row = scene.row(scene.running(scene.owner(), strict))
    found = [
        row[name] for name in ("exclusive", "retries_left", "after_crash", "crash_limit", "backoff", "backoff_max")
    ]
    assert found == [True, 3, "fail", 7, 2.5, 9.0]


def test_a_job_with_runs_cannot_be_deleted(scene: Scene) -> None:
    scene.jobs(spec("a"), spec("b"))
    scene.running(scene.owner(), spec("a"))
    scene.sql("DELETE FROM soloist.plan_job")
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match="job a has runs"):
        scene.sql("DELETE FROM soloist.job WHERE name = 'a'")
    scene.sql("DELETE FROM soloist.job WHERE name = 'b'")
    assert set(scene.known()) == {"a"}
