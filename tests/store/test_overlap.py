"""Overlap is forbidden by the schema: whatever the code does, an exclusive job has one active run."""

from __future__ import annotations

import uuid

import psycopg
import pytest
from scene import Scene, at, birth, spec

from scheduler.core.model import Ending, IfBlocked, Outcome, Overlap, Status, Trigger
from scheduler.core.policy import Decision
from scheduler.store import claims, runs
from scheduler.store.claims import Request
from scheduler.store.runs import Settlement

JOB = spec("a")
DONE = Decision(Status.SUCCEEDED), Ending(Outcome.SUCCEEDED)


def test_a_tick_beside_an_active_run_is_skipped_and_says_beside_which(scene: Scene) -> None:
    scene.jobs(JOB)
    active = scene.running(scene.owner(), JOB)
    (made,) = scene.claim(scene.owner("b"), scene.want(JOB, birth(2))).made
    assert (made.status, made.blocked_by) == (Status.SKIPPED, active)
    row = scene.row(made.id)
    assert (row["skip_reason"], row["result"]) == ("overlap", {"blocked_by": str(active)})
    assert scene.known()["a"].watermark == at(2)


@pytest.mark.case("C064")
def test_ten_ticks_beside_a_hung_run_leave_ten_records(scene: Scene) -> None:
    scene.jobs(JOB)
    scene.running(scene.owner(), JOB)
    scene.claim(scene.owner("b"), scene.want(JOB, *(birth(n) for n in range(2, 12))))
    assert [row["skip_reason"] for row in scene.rows()[1:]] == ["overlap"] * 10


@pytest.mark.case("C064")
@pytest.mark.parametrize("status", [Status.RUNNING, Status.QUEUED])
def test_ticks_of_one_claim_say_beside_which_of_them_they_were_skipped(scene: Scene, status: Status) -> None:
    """A replica that comes late claims several at once: the first is in the way of the others."""
    scene.jobs(JOB)
    made = scene.claim(scene.owner(), scene.want(JOB, birth(1, status), *(birth(n, status) for n in range(2, 6)))).made
    first, *others = sorted(made, key=lambda row: row.status is Status.SKIPPED)
    assert (first.status, [row.status for row in others]) == (status, [Status.SKIPPED] * 4)
    assert [row.blocked_by for row in others] == [first.id] * 4
    assert [scene.row(row.id)["result"] for row in others] == [{"blocked_by": str(first.id)}] * 4


def test_a_retry_that_waits_counts_as_active(scene: Scene) -> None:
    scene.jobs(JOB)
    scene.queued(JOB)
    scene.sql("UPDATE soloist.run SET ready_at = clock_timestamp() + interval '1 h'")
    (made,) = scene.claim(scene.owner("b"), scene.want(JOB, birth(2))).made
    assert made.status is Status.SKIPPED


def test_allow_lets_them_run_side_by_side(scene: Scene) -> None:
    job = spec("a", overlap=Overlap.ALLOW)
    scene.jobs(job)
    scene.running(scene.owner(), job)
    (made,) = scene.claim(scene.owner("b"), scene.want(job, birth(2))).made
    assert made.status is Status.RUNNING


def test_the_schema_itself_refuses_a_second_active_run(scene: Scene) -> None:
    scene.jobs(JOB)
    scene.running(scene.owner(), JOB)
    with pytest.raises(psycopg.errors.UniqueViolation, match="run_exclusive"):
        scene.sql(
            "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, ready_at)"
            " SELECT %s, id, 'x', now(), 'manual', 'queued', true, now() FROM soloist.job",
            uuid.uuid4(),
        )


def test_a_catch_up_waits_and_follows_when_its_predecessor_ends(scene: Scene) -> None:
    scene.jobs(JOB)
    owner = scene.owner()
    births = [birth(n, trigger=Trigger.CATCH_UP, if_blocked=Status.WAITING) for n in (1, 2, 3)]
    made = scene.claim(owner, scene.want(JOB, *births)).made
    assert sorted(one.status for one in made) == ["running", "waiting", "waiting"]
    order = [row["id"] for row in scene.rows()]
    for _ in range(3):
        (active,) = [row for row in scene.rows() if row["status"] == "running"]
        assert active["id"] == order.pop(0)
        settled = runs.settle(scene.mine, owner, [Settlement(active["id"], 1, *DONE)])
        assert settled[0].waiting is bool(order)
        runs.promote(scene.mine, [settled[0].job_id])
        claims.dequeue(scene.mine, owner, 1, 9)
    assert {row["status"] for row in scene.rows()} == {"succeeded"}


def test_promotion_takes_the_oldest_and_only_where_nothing_is_active(scene: Scene) -> None:
    one, two = spec("a"), spec("b")
    scene.jobs(one, two)
    scene.running(scene.owner(), one)
    for number, name in enumerate(("a", "b", "b")):
        if name == "b" and number == 1:
            scene.running(scene.owner(), two)
        claims.create_run(scene.mine, Request(uuid.uuid4(), name, f"manual:{number}", Trigger.MANUAL, "me"))
    scene.sql(
        "UPDATE soloist.run SET status = 'lost', finished_at = now() WHERE status = 'running' AND job = %s",
        scene.known()["b"].id,
    )
    assert runs.promote(scene.mine, None) == 1
    assert [row["status"] for row in scene.rows("a")] == ["running", "waiting"]
    by_key = {row["run_key"]: row["status"] for row in scene.rows("b")}
    assert (by_key["manual:1"], by_key["manual:2"]) == ("queued", "waiting")


def test_a_waiting_run_has_no_place_in_the_queue(scene: Scene) -> None:
    """A dequeue that touched it would be refused by the index, with all that it took beside it."""
    scene.jobs(JOB)
    scene.running(scene.owner(), JOB)
    claims.create_run(scene.mine, Request(uuid.uuid4(), "a", "manual:1", Trigger.MANUAL, "me"))
    assert claims.dequeue(scene.mine, scene.owner(), 1, 9) == ()


def test_a_waiting_row_that_is_locked_holds_up_its_own_job_alone(scene: Scene) -> None:
    """An application looks at one row with FOR UPDATE and goes for lunch."""
    other = spec("b")
    scene.jobs(JOB, other)
    owner, waiting = scene.owner(), {}
    for job in (JOB, other):
        active = scene.running(owner, job)
        (made,) = scene.claim(owner, scene.want(job, birth(2, if_blocked=Status.WAITING))).made
        waiting[job.name] = made.id
        runs.settle(scene.mine, owner, [Settlement(active, 1, *DONE)])
    with psycopg.connect(scene.url) as lunch:
        lunch.execute("SELECT 1 FROM soloist.run WHERE id = %s FOR UPDATE", (waiting["a"],))
        assert runs.promote(scene.mine, None) == 1
        assert {name: scene.row(run)["status"] for name, run in waiting.items()} == {"a": "waiting", "b": "queued"}
    assert runs.promote(scene.mine, None) == 1


def test_one_tick_waits_and_the_others_give_way(scene: Scene) -> None:
    """`overlap: queue`: the first that finds an active run waits; whoever waits already is not joined by another."""
    job = spec("a", overlap=Overlap.QUEUE)
    scene.jobs(job)
    active = scene.running(scene.owner(), job)
    births = [birth(n, if_blocked=IfBlocked.ONE) for n in (2, 3, 4)]
    made = scene.claim(scene.owner("b"), scene.want(job, *births)).made
    assert [one.status for one in made] == ["waiting", "skipped", "skipped"]
    assert [one.blocked_by for one in made] == [active] * 3
    (later,) = scene.claim(scene.owner("b"), scene.want(job, birth(5, if_blocked=IfBlocked.ONE))).made
    assert later.status is Status.SKIPPED
    runs.settle(scene.mine, scene.owner("x"), [])
    scene.sql("UPDATE soloist.run SET status = 'succeeded', finished_at = now() WHERE id = %s", active)
    assert runs.promote(scene.mine, None) == 1
    (again,) = scene.claim(scene.owner("b"), scene.want(job, birth(6, if_blocked=IfBlocked.ONE))).made
    assert again.status is Status.WAITING, "the one that waited is active now, so there is room for another"


@pytest.mark.parametrize(
    ("overlap", "blocked", "becomes"),
    [(Overlap.QUEUE, IfBlocked.ONE, Status.SKIPPED), (Overlap.QUEUE_ALL, IfBlocked.WAITING, Status.WAITING)],
)
def test_a_tick_between_an_end_and_the_promotion_overtakes_nobody(
    scene: Scene, overlap: Overlap, blocked: IfBlocked, becomes: Status
) -> None:
    """In that instant nothing is active, and the index would let it in."""
    job = spec("a", overlap=overlap)
    scene.jobs(job)
    active = scene.running(scene.owner(), job)
    (first,) = scene.claim(scene.owner("b"), scene.want(job, birth(2, if_blocked=blocked))).made
    scene.sql("UPDATE soloist.run SET status = 'succeeded', finished_at = now() WHERE id = %s", active)
    (made,) = scene.claim(scene.owner("b"), scene.want(job, birth(3, if_blocked=blocked))).made
    assert (made.status, made.blocked_by) == (becomes, first.id)
    assert scene.known()["a"].watermark == at(3)
    assert runs.promote(scene.mine, None) == 1
    assert scene.row(first.id)["status"] == "queued"


def test_the_one_that_waits_may_be_born_beside_the_run_in_its_way(scene: Scene) -> None:
    job = spec("a", overlap=Overlap.QUEUE)
    scene.jobs(job)
    made = scene.claim(scene.owner(), scene.want(job, *(birth(n, if_blocked=IfBlocked.ONE) for n in (1, 2, 3)))).made
    assert sorted(one.status for one in made) == ["running", "skipped", "waiting"]
    assert [row["status"] for row in scene.rows()] == ["running", "waiting", "skipped"]


def test_a_run_that_a_person_waits_for_takes_no_tick_s_place(scene: Scene) -> None:
    job = spec("a", overlap=Overlap.QUEUE)
    scene.jobs(job)
    scene.running(scene.owner(), job)
    claims.create_run(scene.mine, Request(uuid.uuid4(), "a", "manual:1", Trigger.MANUAL, "me"))
    (made,) = scene.claim(scene.owner("b"), scene.want(job, birth(2, if_blocked=IfBlocked.ONE))).made
    assert made.status is Status.WAITING


@pytest.mark.parametrize("status", [Status.RUNNING, Status.QUEUED])
def test_the_newest_tick_takes_the_place_of_all_before_it(scene: Scene, status: Status) -> None:
    job, other = spec("a", overlap=Overlap.REPLACE), spec("b", overlap=Overlap.REPLACE)
    scene.jobs(job, other)
    neighbour = scene.running(scene.owner(), other)
    active = scene.running(scene.owner(), job)
    if status is Status.QUEUED:  # it waits for its next try
        scene.sql(
            "UPDATE soloist.run SET status = 'queued', ready_at = now() + interval '1 h' WHERE id = %s",
            active,
        )
    for n in (2, 3):
        scene.claim(scene.owner("b"), scene.want(job, birth(n, if_blocked=IfBlocked.WAITING)))
    _, older, newest = (row["id"] for row in scene.rows("a"))
    replaced = runs.replace(scene.mine, [scene.known()["a"].id, scene.known()["b"].id])
    expected = {active: Status.RUNNING if status is Status.RUNNING else Status.CANCELLED, older: Status.CANCELLED}
    assert {one.id: one.status for one in replaced} == expected
    assert scene.row(older)["result"] == {"replaced_by": str(newest)}
    assert scene.row(active)["cancel_requested_at"] is not None
    assert scene.row(neighbour)["cancel_requested_at"] is None, "nothing waits for the neighbour's place"
    assert runs.replace(scene.mine, [scene.known()["a"].id]) == (), "asked again, there is nothing left to do"
    if status is Status.QUEUED:
        assert runs.promote(scene.mine, None) == 1
        assert scene.row(newest)["status"] == "queued"


def test_jitter_puts_off_the_run_and_not_the_tick(scene: Scene) -> None:
    scene.jobs(JOB)
    (made,) = scene.claim(scene.owner(), scene.want(JOB, birth(1, Status.QUEUED, delay=30 * 365 * 86400.0))).made
    row = scene.row(made.id)
    assert (row["scheduled_at"], (row["ready_at"] - at(1)).days) == (at(1), 30 * 365)
    assert claims.dequeue(scene.mine, scene.owner("b"), 1, 9) == ()
