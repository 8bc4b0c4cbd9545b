"""Settlement: fenced by attempt and owner, the history with the state, terminal states for good."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest
from scene import Scene, birth, spec

from scheduler.core.model import Ending, Outcome, SkipReason, Status
from scheduler.core.policy import Decision
from scheduler.store import claims, runs
from scheduler.store.engine import Refused
from scheduler.store.runs import Settlement

JOB = spec("a")


def _end(run: uuid.UUID, status: Status = Status.SUCCEEDED, attempt: int = 1, **facts: Any) -> Settlement:
    outcome = facts.pop("outcome", Outcome.SUCCEEDED)
    decision = {name: facts.pop(name) for name in ("ready_in", "spent", "crashed", "skip_reason") if name in facts}
    return Settlement(run, attempt, Decision(status, **decision), Ending(outcome, **facts))


def test_an_end_is_written_with_its_line_in_the_history(scene: Scene) -> None:
    scene.jobs(JOB)
    owner = scene.owner("writer")
    run = scene.running(owner, JOB)
    facts = {
        "result": {"n": [1, None, "ü"]},
        "output_tail": "said",
        "output_bytes": 4,
        "cpu": 0.5,
        "peak_rss": 9,
        "exit_code": 0,
    }
    (settled,) = runs.settle(scene.mine, owner, [_end(run, **facts)])
    assert (settled.id, settled.status, settled.waiting) == (run, Status.SUCCEEDED, False)
    row = scene.row(run)
    assert (row["status"], row["result"]) == ("succeeded", {"n": [1, None, "ü"]})
    assert row["finished_at"] >= row["started_at"]
    (line,) = scene.attempts(run)
    kept = [line[name] for name in ("number", "replica", "replica_name", "outcome", "output_tail", "cpu", "peak_rss")]
    assert kept == [1, owner.id, "writer", "succeeded", "said", 0.5, 9]
    assert line["started_at"] == row["started_at"]


def test_a_retry_goes_back_to_the_queue_and_costs_one(scene: Scene) -> None:
    scene.jobs(JOB)
    owner = scene.owner()
    run = scene.running(owner, JOB)
    scene.sql("UPDATE soloist.run SET retries_left = 2")
    back = _end(run, Status.QUEUED, outcome=Outcome.FAILED, spent=1, ready_in=30.0, error_text="no")
    runs.settle(scene.mine, owner, [back])
    row = scene.row(run)
    assert (row["status"], row["retries_left"], row["crashes"], row["claimed_by"]) == ("queued", 1, 0, None)
    assert (row["claimed_until"], row["finished_at"], row["last_error"]) == (None, None, "no")
    ((soon,),) = [
        tuple(
            scene.sql("SELECT ready_at - clock_timestamp() BETWEEN '25 s' AND '30 s' AS soon FROM soloist.run")[
                0
            ].values()
        )
    ]
    assert soon


@pytest.mark.parametrize("thief", ["another owner", "another attempt", "the run ended", "the run is queued"])
def test_whoever_no_longer_owns_the_run_writes_nothing(scene: Scene, thief: str) -> None:
    scene.jobs(JOB)
    owner = scene.owner()
    run = scene.running(owner, JOB)
    change = {
        "another owner": "claimed_by = gen_random_uuid()",
        "another attempt": "attempt = 2",
        "the run ended": "status = 'lost', finished_at = now()",
        "the run is queued": "status = 'queued', ready_at = now(), claimed_by = NULL",
    }[thief]
    scene.sql(f"UPDATE soloist.run SET {change}")
    before = scene.row(run)
    assert runs.settle(scene.mine, owner, [_end(run, result=1)]) == ()
    assert scene.row(run) == before
    assert scene.attempts(run) == []
    standing = runs.read_held(scene.mine, owner, [(run, 1)])[run, 1]
    assert (standing.held, standing.recorded) == (False, False)


def test_an_end_written_twice_is_recognised_as_ones_own(scene: Scene) -> None:
    scene.jobs(JOB)
    owner = scene.owner()
    run = scene.running(owner, JOB)
    end = _end(run, result=1)
    assert len(runs.settle(scene.mine, owner, [end])) == 1
    assert runs.settle(scene.mine, owner, [end]) == ()
    assert runs.read_held(scene.mine, owner, [(run, 1)])[run, 1].recorded
    assert not runs.read_held(scene.mine, scene.owner("x"), [(run, 1)])[run, 1].recorded
    assert len(scene.attempts(run)) == 1


def test_one_that_was_taken_over_is_not_taken_for_ones_own(scene: Scene) -> None:
    """The take-over writes the dead owner's line for it; that is no proof of the owner's own end."""
    scene.jobs(JOB)
    owner = scene.owner()
    run = scene.running(owner, JOB)
    scene.expire(run)
    runs.take_over(scene.mine, runs.look(scene.mine, owner, 1).expired)
    assert runs.settle(scene.mine, owner, [_end(run)]) == ()
    standing = runs.read_held(scene.mine, owner, [(run, 1)])[run, 1]
    assert (standing.held, standing.recorded, standing.status) == (False, False, Status.QUEUED)


def test_a_wish_to_cancel_ends_a_run_that_would_be_tried_again(scene: Scene) -> None:
    scene.jobs(JOB)
    owner = scene.owner()
    run = scene.running(owner, JOB)
    scene.sql("UPDATE soloist.run SET cancel_requested_at = now()")
    (settled,) = runs.settle(scene.mine, owner, [_end(run, Status.QUEUED, outcome=Outcome.FAILED, spent=1)])
    assert settled.status is Status.CANCELLED
    assert scene.row(run)["finished_at"] is not None


def test_many_ends_in_one_statement_and_one_that_is_fenced(scene: Scene) -> None:
    specs = [spec(f"j-{n}") for n in range(50)]
    scene.jobs(*specs)
    owner = scene.owner()
    made = scene.claim(owner, *(scene.want(one, birth(1)) for one in specs)).made
    stolen = made[7].id
    scene.sql("UPDATE soloist.run SET attempt = 9 WHERE id = %s", stolen)
    settled = runs.settle(scene.mine, owner, [_end(one.id) for one in made])
    assert {one.id for one in made} - {one.id for one in settled} == {stolen}
    assert {row["status"] for row in scene.rows() if row["id"] != stolen} == {"succeeded"}


@pytest.mark.parametrize("bad", [{"result": "a\x00b"}, {"error_text": "a\x00b"}, {"output_tail": "\udcff"}])
def test_what_postgresql_would_not_store_is_refused_whole(scene: Scene, bad: dict[str, Any]) -> None:
    scene.jobs(JOB)
    owner = scene.owner()
    run = scene.running(owner, JOB)
    with pytest.raises((Refused, UnicodeError)):
        runs.settle(scene.mine, owner, [_end(run, **bad)])
    assert scene.row(run)["status"] == "running"
    assert scene.attempts(run) == []
    assert len(runs.settle(scene.mine, owner, [_end(run)])) == 1, "the session is of use after it"


@pytest.mark.parametrize("status", ["succeeded", "failed", "timed_out", "cancelled", "lost", "skipped"])
def test_a_terminal_state_never_changes(scene: Scene, status: str) -> None:
    scene.jobs(JOB)
    owner = scene.owner()
    run = scene.running(owner, JOB)
    reason = SkipReason.JOB if status == "skipped" else None
    runs.settle(scene.mine, owner, [_end(run, Status(status), skip_reason=reason)])
    for change in ("status = 'queued', ready_at = now(), finished_at = NULL, skip_reason = NULL", "attempt = 2"):
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="never change"):
            scene.sql(f"UPDATE soloist.run SET {change}")


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("claimed_by = NULL", "run_running_is_owned"),
        ("claimed_until = NULL", "run_running_is_owned"),
        ("status = 'queued'", "run_queued_is_ready"),
        ("status = 'succeeded'", "run_terminal_is_finished"),
        ("finished_at = now()", "run_terminal_is_finished"),
        ("status = 'skipped', finished_at = now()", "run_skipped_says_why"),
        ("skip_reason = 'missed'", "run_skipped_says_why"),
        ("status = 'odd'", "run_status_check"),
        ("trigger = 'odd'", "run_trigger_check"),
    ],
)
def test_rows_that_make_no_sense_are_forbidden_by_the_schema(scene: Scene, change: str, constraint: str) -> None:
    scene.jobs(JOB)
    scene.running(scene.owner(), JOB)
    with pytest.raises(psycopg.errors.CheckViolation, match=constraint):
        scene.sql(f"UPDATE soloist.run SET {change}")


def test_a_renewal_extends_names_cancels_and_skips_what_is_locked(scene: Scene) -> None:
    one, two = spec("a"), spec("b")
    scene.jobs(one, two)
    owner = scene.owner(lease=100.0)
    first, second = scene.running(owner, one), scene.running(owner, two)
    scene.sql("UPDATE soloist.run SET cancel_requested_at = now() WHERE id = %s", second)
    scene.expire(first, second)
    held = [(first, 1, '{"done": 1}'), (second, 1, None)]
    assert runs.renew(scene.mine, owner, held).renewed == {(first, 1): False, (second, 1): True}
    assert scene.row(first)["progress"] == {"done": 1}
    with scene.facts.transaction():
        scene.sql("SELECT 1 FROM soloist.run WHERE id = %s FOR UPDATE", first)
        assert set(runs.renew(scene.mine, owner, held).renewed) == {(second, 1)}
        assert runs.read_held(scene.mine, owner, [(first, 1)])[first, 1].held
    assert set(runs.renew(scene.mine, owner, [(first, 2, None)]).renewed) == set()
    assert set(runs.renew(scene.mine, scene.owner("x"), held).renewed) == set()


def test_what_is_mine(scene: Scene) -> None:
    one, two = spec("a"), spec("b")
    scene.jobs(one, two)
    owner = scene.owner()
    first, second = scene.running(owner, one), scene.running(owner, two)
    mine = claims.read_mine(scene.mine, owner)
    assert {(one.claim.id, one.claim.attempt) for one in mine} == {(first, 1), (second, 1)}
    assert all(0 < one.left <= owner.lease for one in mine)
    assert claims.read_mine(scene.mine, scene.owner("x")) == ()
    assert claims.dequeue(scene.mine, owner, 1, 9) == ()
