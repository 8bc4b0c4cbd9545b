"""How ends are written: many by one, none held up by another, none given up for what will pass."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest
from replicas import eventually
from scene import Scene, spec

from scheduler.core.model import Ending, Outcome, Overlap, Status
from scheduler.core.policy import Decision
from scheduler.runner.room import Room
from scheduler.runner.settler import Settler, Written
from scheduler.store.runs import Settlement

JOB = spec("a", overlap=Overlap.ALLOW)


@pytest.fixture
def room(facts: Scene) -> Room:
    facts.jobs(JOB)
    return Room(facts.owner("settles"), facts.clock, facts.bus)


def _end(run: UUID, result: Any = None, **fields: Any) -> Settlement:
    return Settlement(run, 1, Decision(Status.SUCCEEDED), Ending(Outcome.SUCCEEDED, result=result, **fields))


def _in_thread(settler: Settler, end: Settlement, told: Callable[[Written], None]) -> threading.Thread:
    thread = threading.Thread(target=settler.settle, args=(end, told), daemon=True)
    thread.start()
    return thread


def test_ends_that_gather_are_written_by_one(facts: Scene, room: Room) -> None:
    runs = [facts.running(room.owner, JOB, second) for second in range(1, 21)]
    settler, told = Settler(facts.session("settler"), room), []
    threads = [_in_thread(settler, _end(run), told.append) for run in runs]
    eventually(lambda: len(told) == 20, "each is told")
    assert {written.status for written in told} == {Status.SUCCEEDED}
    assert {row["status"] for row in facts.rows()} == {"succeeded"}
    for thread in threads:
        thread.join(30)


def test_a_locked_row_is_tried_again_and_holds_up_no_other(facts: Scene, room: Room) -> None:
    locked, free = facts.running(room.owner, JOB, 1), facts.running(room.owner, JOB, 2)
    settler, told = Settler(facts.session("settler"), room), {}
    with psycopg.connect(facts.url) as holder:
        holder.execute("SELECT FROM soloist.run WHERE id = %s FOR UPDATE", (locked,))
        leader = _in_thread(settler, _end(locked), lambda w: told.update(locked=w))
        eventually(lambda: settler._later, "it is put off")
        settler.settle(_end(free), lambda w: told.update(free=w))
        eventually(lambda: "free" in told, "the other is written meanwhile")
        assert "locked" not in told
    eventually(lambda: "locked" in told, "it is written when the lock is gone")
    assert told == {"locked": Written(Status.SUCCEEDED), "free": Written(Status.SUCCEEDED)}
    leader.join(30)


def test_what_cannot_be_stored_fails_the_run_and_no_other(facts: Scene, room: Room) -> None:
    bad, good = facts.running(room.owner, JOB, 1), facts.running(room.owner, JOB, 2)
    settler, told, gate = _gated(facts, room)
    for run, result in ((good, None), (bad, "\x00"), (good, 1)):
        _in_thread(settler, _end(run, result), lambda w, run=run: told.append((run, w.status)))
        eventually(lambda: settler._led, "somebody leads")
    gate.set()
    eventually(lambda: len(told) == 3, "all are told")
    assert (bad, Status.FAILED) in told
    assert facts.row(good)["status"] == "succeeded"
    assert "could not be stored" in facts.row(bad)["last_error"]


def test_a_missing_right_is_waited_out(facts: Scene, room: Room) -> None:
    """It says nothing about the result: the run has succeeded, and is written when somebody grants the right again."""
    run = facts.running(room.owner, JOB, 1)
    session, told = facts.session("settler"), []
    session.execute("SELECT 1")
    role = f"poor_{room.owner.id.hex[:8]}"
    facts.sql(f"CREATE ROLE {role}")
    facts.sql(f"GRANT USAGE ON SCHEMA soloist TO {role}")
    facts.sql(f"GRANT SELECT, UPDATE ON ALL TABLES IN SCHEMA soloist TO {role}")
    try:
        session.execute(f"SET ROLE {role}")  # type: ignore[arg-type]
        settler = Settler(session, room)
        thread = _in_thread(settler, _end(run, {"n": 1}), told.append)
        eventually(lambda: settler._later, "it is put off")
        assert not told
        facts.sql(f"GRANT INSERT ON soloist.attempt TO {role}")
        eventually(lambda: told, "it is written")
        assert told == [Written(Status.SUCCEEDED)]
        assert facts.row(run)["result"] == {"n": 1}
        thread.join(30)
    finally:
        session.execute("RESET ROLE")
        facts.sql(f"DROP OWNED BY {role}")
        facts.sql(f"DROP ROLE {role}")


def test_what_is_put_off_is_given_up_with_the_rest(facts: Scene, room: Room) -> None:
    run = facts.running(room.owner, JOB, 1)
    settler, told = Settler(facts.session("settler"), room), []
    with psycopg.connect(facts.url) as holder:
        holder.execute("SELECT FROM soloist.run WHERE id = %s FOR UPDATE", (run,))
        thread = _in_thread(settler, _end(run), told.append)
        eventually(lambda: settler._later, "it is put off")
        settler.give_up()
        eventually(lambda: told, "it is told")
    assert told == [Written(None, given_up=True)]
    thread.join(30)
    settler.settle(_end(run), told.append)
    assert told[1] == Written(Status.SUCCEEDED), "while the database answers, it is written all the same"


def test_whoever_gathers_is_told_when_the_leader_fails(facts: Scene, room: Room) -> None:
    run = facts.running(room.owner, JOB, 1)
    settler, told = Settler(facts.session("settler"), room), []

    def fail(*_: object, **__: object) -> Any:
        raise LookupError("a bug")

    settler._flush = fail  # type: ignore[method-assign]
    with pytest.raises(LookupError):
        settler.settle(_end(run), told.append)
    assert told == [Written(None, given_up=True)]


def _gated(facts: Scene, room: Room) -> tuple[Settler, list[Any], threading.Event]:
    """A settler whose first statement waits for the gate, so that the next ends gather."""
    gate = threading.Event()
    session = facts.session("settler")
    run = session.run

    def gated(name: str, params: dict[str, Any], **fields: Any) -> Any:
        gate.wait(30)
        return run(name, params, **fields)

    session.run = gated  # type: ignore[method-assign]
    return Settler(session, room), [], gate


def test_two_attempts_of_one_run_in_one_batch_are_not_taken_for_each_other(facts: Scene, room: Room) -> None:
    """A zombie's end comes beside its successor's: the one is fenced, the other written."""
    run, other = facts.running(room.owner, JOB, 1), facts.running(room.owner, JOB, 2)
    facts.sql("UPDATE soloist.run SET attempt = 2 WHERE id = %s", run)
    settler, told, gate = _gated(facts, room)
    threads = [_in_thread(settler, _end(other), lambda _: None)]
    eventually(lambda: settler._led, "somebody leads, and others gather")
    for attempt in (1, 2):
        end = Settlement(run, attempt, Decision(Status.SUCCEEDED), Ending(Outcome.SUCCEEDED))
        threads.append(_in_thread(settler, end, lambda w, attempt=attempt: told.append((attempt, w.status))))
    eventually(lambda: len(settler._gathered) == 2, "both wait for the next flush")
    gate.set()
    eventually(lambda: len(told) == 2, "each is told")
    assert dict(told) == {1: None, 2: Status.SUCCEEDED}
    for thread in threads:
        thread.join(30)
