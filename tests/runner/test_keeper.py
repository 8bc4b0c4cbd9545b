"""The keeper: whom it goes on trusting when a renewal did not touch the row."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scene import Scene, at, spec

from scheduler.core.events import LeaseLostEvent
from scheduler.core.model import Claim, Ending, Outcome, Status, Trigger
from scheduler.core.policy import Decision
from scheduler.kinds import Stop
from scheduler.runner.clock_watch import ClockWatch
from scheduler.runner.keeper import Charge, Keeper
from scheduler.runner.presence import Presence
from scheduler.runner.room import Room
from scheduler.runner.seats import Held, Seats
from scheduler.runner.tally import Tally
from scheduler.runner.witness import Witness
from scheduler.store import runs
from scheduler.store.runs import Settlement

JOB = spec("a")


@pytest.fixture
def kept(facts: Scene) -> tuple[Keeper, Held]:
    """A keeper, and a run that its replica holds (its seat's thread is the test)."""
    facts.jobs(JOB)
    room = Room(facts.owner("keeps", lease=5.0), facts.clock, facts.bus)
    claim = Claim(facts.running(room.owner, JOB), "a", "k", at(1), 1, 0, 0, Trigger.SCHEDULE)
    held = Held(claim, JOB, trust=facts.clock.boottime() + 1)
    seats = Seats(1)
    seats._held.add(held)
    session = facts.session("keeper")
    presence = Presence(session, room, seats, ())
    charge = Charge(seats, Tally(), presence, ClockWatch(room, seats), Witness(room), lambda _: None, lambda: None)
    return Keeper(session, room, charge), held


def end(facts: Scene, keeper: Keeper, held: Held, status: Status, outcome: Outcome) -> None:
    settlement = Settlement(held.claim.id, 1, Decision(status), Ending(outcome))
    runs.settle(facts.session(), keeper._owner, [settlement])


def test_a_body_whose_own_transaction_has_ended_the_run_may_finish(facts: Scene, kept: tuple[Keeper, Held]) -> None:
    keeper, held = kept
    end(facts, keeper, held, Status.SUCCEEDED, Outcome.SUCCEEDED)
    before = held.trust
    keeper.step()
    assert held.stopped is None
    assert held.trust > before


def test_a_body_whose_run_was_handed_back_is_stopped(facts: Scene, kept: tuple[Keeper, Held]) -> None:
    """Its own name stands under that line of the history, and yet somebody else may run it by now."""
    keeper, held = kept
    end(facts, keeper, held, Status.QUEUED, Outcome.HANDED_BACK)
    before = held.trust
    keeper.step()
    assert held.stopped is Stop.LEASE_LOST
    assert held.trust == before
    assert [event for event in facts.events if isinstance(event, LeaseLostEvent)]


def test_a_renewal_carries_the_trust_and_the_progress(facts: Scene, kept: tuple[Keeper, Held]) -> None:
    keeper, held = kept
    until = facts.row(held.claim.id)["claimed_until"]
    keeper.step()
    assert facts.row(held.claim.id)["claimed_until"] > until
    assert held.trust > facts.clock.boottime() + 1


def test_a_zombie_is_not_renewed_by_its_successor_in_the_same_replica(facts: Scene, kept: tuple[Keeper, Held]) -> None:
    """The run was taken over and came back to us before the keeper knew: two attempts sit here, one of them owns it."""
    keeper, zombie = kept
    facts.sql("UPDATE soloist.run SET attempt = 2 WHERE id = %s", zombie.claim.id)
    successor = Held(replace(zombie.claim, attempt=2), JOB, trust=facts.clock.boottime() + 1)
    keeper._seats._held.add(successor)
    heard: list[LeaseLostEvent] = []
    facts.bus.subscribe(heard.append, LeaseLostEvent)  # type: ignore[arg-type]
    before = zombie.trust
    keeper.step()
    assert (zombie.stopped, zombie.trust) == (Stop.LEASE_LOST, before)
    assert (successor.stopped, successor.trust > before) == (None, True)
    assert [event.attempt for event in heard] == [1]
