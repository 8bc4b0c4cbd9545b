"""The sweeper: abandoned is what was seen to be over twice, three renewals apart, in one unbroken session."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from replicas import eventually
from scene import Scene, at, birth, spec

from scheduler.core.events import AnswerRecovered, RunTakenOver
from scheduler.core.model import Claim, Overlap, Status, Trigger
from scheduler.core.policy import renew_interval
from scheduler.runner.plan import PlanInForce
from scheduler.runner.reaper import Reaper
from scheduler.runner.room import Room
from scheduler.runner.seats import Held, Seats
from scheduler.runner.sweeper import Sweeper
from scheduler.store import claims
from scheduler.store.engine import ContactLost

JOB = spec("a", overlap=Overlap.ALLOW)
Build = Callable[..., Sweeper]


def _attend(note: Callable[[Held], None]) -> Callable[[Held, Callable[[], None]], None]:
    def attend(held: Held, leave: Callable[[], None]) -> None:
        note(held)
        leave()

    return attend


@pytest.fixture
def build(facts: Scene) -> Build:
    """A sweeper with this many seats; what it seats is in `attended`."""
    facts.jobs(JOB)

    def build(seats: int = 0, attend: Callable[[Held], None] = lambda _: None) -> Sweeper:
        room = Room(facts.owner("sweeps", lease=1.0), facts.clock, facts.bus)
        plan = PlanInForce([JOB])
        plan.swap(tuple(facts.known().values()), 1)
        session = facts.session("sweeper")
        return Sweeper(session, room, plan, Seats(seats, _attend(attend)), Reaper(session, room, session))

    return build


def _apart(facts: Scene) -> None:
    """Three renewals pass."""
    since = facts.clock.boottime()
    eventually(lambda: facts.clock.boottime() - since > 3 * renew_interval(1.0), "three renewals pass")


def test_one_look_is_no_proof_and_two_at_once_are_none(facts: Scene, build: Build) -> None:
    run = facts.running(facts.owner("dead"), JOB)
    facts.expire(run)
    sweeper = build()
    for _ in range(5):
        sweeper.step()
    assert facts.row(run)["status"] == "running"
    _apart(facts)
    sweeper.step()
    assert facts.row(run)["status"] == "queued"
    (event,) = [event for event in facts.events if isinstance(event, RunTakenOver)]
    assert (event.owner, event.status, event.run_id) == ("dead", Status.QUEUED, run)


def test_a_lease_that_was_renewed_and_is_over_again_is_seen_afresh(facts: Scene, build: Build) -> None:
    """A database clock that jumped expires every living lease at one blow; their owners renew between the looks."""
    run = facts.running(facts.owner("alive"), JOB)
    facts.expire(run)
    sweeper = build()
    sweeper.step()
    _apart(facts)
    facts.expire(run)  # another instant than the one that was seen
    sweeper.step()
    assert facts.row(run)["status"] == "running"


@pytest.mark.own_session
def test_what_was_seen_in_another_session_counts_for_nothing(facts: Scene, build: Build) -> None:
    """Over the loss of a session lies a restart or a failover: the owners could not renew either."""
    run = facts.running(facts.owner("alive"), JOB)
    facts.expire(run)
    sweeper = build()
    sweeper.step()
    _apart(facts)
    facts.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'soloist sweeper'")
    with pytest.raises(ContactLost):
        sweeper.step()
    sweeper.step()
    assert facts.row(run)["status"] == "running"
    _apart(facts)
    sweeper.step()
    assert facts.row(run)["status"] == "queued"


def test_a_claim_whose_answer_was_lost_is_carried_out_all_the_same(facts: Scene, build: Build) -> None:
    attended: list[Held] = []
    sweeper = build(2, attended.append)
    run = facts.running(claims.Owner(sweeper._owner.id, "sweeps", 60.0), JOB)
    sweeper.step()
    assert not attended, "nobody has told it yet"
    sweeper.answer_lost()
    sweeper.step()
    (held,) = eventually(lambda: attended, "it is seated")
    assert (held.claim.id, held.claim.attempt, held.claim.job) == (run, 1, "a")
    assert isinstance(held.news, AnswerRecovered)
    row = facts.row(run)
    assert (row["status"], row["attempt"], row["crashes"]) == ("running", 1, 0)
    assert not facts.attempts(run)


def test_an_orphan_whose_lease_is_no_longer_sure_is_handed_back_at_no_cost(facts: Scene, build: Build) -> None:
    attended: list[Held] = []
    sweeper = build(2, attended.append)
    run = facts.running(claims.Owner(sweeper._owner.id, "sweeps", 0.1), JOB)
    sweeper.answer_lost()
    sweeper.step()
    eventually(lambda: attended, "it is seated again")
    row = facts.row(run)
    assert (row["status"], row["attempt"], row["crashes"]) == ("running", 2, 0)
    assert [line["outcome"] for line in facts.attempts(run)] == ["handed_back"]


def test_it_seats_no_more_than_there_are_seats(facts: Scene, build: Build) -> None:
    owner = facts.owner()
    births = [birth(n + 1, Status.QUEUED) for n in range(5)]
    made = facts.claim(owner, facts.want(JOB, *births)).made
    assert len(made) == 5
    attended: list[uuid.UUID] = []
    sweeper = build(2, lambda held: attended.append(held.claim.id))
    sweeper.step()
    assert len([row for row in facts.rows() if row["status"] == "running"]) == 2
    eventually(lambda: len(attended) == 2, "both are attended")


def test_a_claim_that_commits_while_orphans_are_looked_for_is_none(
    facts: Scene, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ticker claims and seats a run while the sweeper's look is on its way (its session had to reconnect)."""
    gate = threading.Event()
    sweeper = build(2, lambda _: gate.wait(30) and None)
    seats, session, owner = sweeper._seats, sweeper._session, sweeper._owner
    look, seated = session.run, []

    def late(name: str, params: dict[str, Any], **more: Any) -> list[Any]:
        if name == "read_mine" and not seated:
            run = facts.running(owner, JOB)
            seated.append(run)
            seats.reserve(1)
            seats.begin(Held(Claim(run, "a", "k", at(1), 1, 0, 0, Trigger.SCHEDULE), JOB, facts.clock.boottime() + 9))
        return look(name, params, **more)

    monkeypatch.setattr(session, "run", late)
    sweeper.answer_lost()
    sweeper.step()
    gate.set()
    assert facts.row(seated[0])["status"] == "running"
    assert facts.row(seated[0])["attempt"] == 1


def test_a_run_that_ends_while_orphans_are_looked_for_is_not_begun_again(
    facts: Scene, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was running when the database was asked, and has left its seat when the seats are."""
    gate, begun = threading.Event(), []
    sweeper = build(2)
    seats, owner = sweeper._seats, claims.Owner(sweeper._owner.id, "sweeps", 60.0)

    def attend(held: Held) -> None:
        begun.append(held.claim.attempt)
        gate.wait(30)
        facts.sql("UPDATE soloist.run SET status = 'succeeded', finished_at = now() WHERE id = %s", held.claim.id)

    seats.attend = _attend(attend)
    run = facts.running(owner, JOB)
    seats.reserve(1)
    seats.begin(Held(Claim(run, "a", "k", at(1), 1, 0, 0, Trigger.SCHEDULE), JOB, facts.clock.boottime() + 60))
    ask = seats.known

    def late() -> set[uuid.UUID]:
        gate.set()
        assert seats.wait_empty(30)
        return ask()

    monkeypatch.setattr(seats, "known", late)
    sweeper.answer_lost()
    sweeper.step()
    assert seats.wait_empty(30)
    assert begun == [1]
    assert facts.row(run)["status"] == "succeeded"


def test_a_claim_whose_answer_was_lost_is_handed_back(facts: Scene, build: Build) -> None:
    sweeper = build(0)
    orphan = facts.running(sweeper._owner, JOB)
    sweeper.answer_lost()
    sweeper.step()
    assert facts.row(orphan)["status"] == "queued"
    assert [row["outcome"] for row in facts.attempts(orphan)] == ["handed_back"]
