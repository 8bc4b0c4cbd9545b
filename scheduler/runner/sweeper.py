"""The net under everything: takes over runs whose lease is over, seats queued runs, promotes waiting ones.

It looks when a notification comes, when a seat is freed while there is a backlog, when the next retry is ready, and at
the latest after `busy` seconds while anything is going on, or `idle` seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from scheduler.core.events import RunTakenOver, TickSkipped
from scheduler.core.model import Claim, Ending, Outcome, SkipReason, Status
from scheduler.core.policy import Decision, renew_interval, trust_window
from scheduler.runner.plan import PlanInForce
from scheduler.runner.room import Room
from scheduler.runner.seats import Held, Seats
from scheduler.store import claims, runs
from scheduler.store.engine import CALL_DEADLINE, ContactLost, Refused, Session
from scheduler.store.runs import Look, Settlement

NEVER_BEGUN = Ending(Outcome.HANDED_BACK, error_text="the answer to the claim was lost", started=False)


@dataclass(slots=True)
class _Suspect:
    """A lease seen to be over: the instant it ended at, and when (CLOCK_BOOTTIME) and in which session it was seen."""

    until: datetime
    seen_at: float
    epoch: int


class Sweeper:
    """`step` belongs to one thread; `backlog`, `answer_lost` and `overflowed` are for any."""

    def __init__(self, session: Session, room: Room, plan: PlanInForce, seats: Seats) -> None:
        self._session, self._plan, self._seats = session, plan, seats
        self._owner, self._clock, self._bus = room.owner, room.clock, room.bus
        self._busy = renew_interval(room.owner.lease)
        self._idle = room.owner.lease / 2  # sees a run that begins elsewhere well before its lease can be over
        self._suspects: dict[UUID, _Suspect] = {}
        self._look_at = 0.0
        self._backlog = threading.Event()
        self._unclear = threading.Event()
        self._unclear_until = 0.0

    @property
    def backlog(self) -> bool:
        """Whether there may be queued runs that only lack a seat."""
        return self._backlog.is_set()

    def answer_lost(self) -> None:
        """A claim's answer was lost: what it took, if anything, has no seat."""
        self._unclear.set()

    def overflowed(self) -> None:
        """A tick was born queued for want of a seat."""
        self._backlog.set()

    def step(self) -> float:
        """Look, and do what the look asks for; returns seconds to the next one."""
        if self._unclear.is_set():
            self._unclear.clear()
            # the statement itself may still be at work in the server: look again until it cannot be
            self._unclear_until = self._clock.boottime() + CALL_DEADLINE + 2
            self._look_at = 0.0
        if self._clock.boottime() < self._unclear_until:
            self._return_orphans()
        if self._backlog.is_set() and self._clock.boottime() < self._look_at:
            self._dequeue()  # between two looks, freed seats are filled without one
            return max(0.0, self._look_at - self._clock.boottime())
        seen = runs.look(self._session, self._owner, self._plan.generation)
        self._sweep(seen)
        unclear = self._clock.boottime() < self._unclear_until
        busy = seen.others or seen.ready or bool(seen.expired) or unclear
        wait = self._busy if busy else self._idle
        if seen.next_in is not None:
            wait = min(wait, seen.next_in + 0.001)
        self._look_at = self._clock.boottime() + wait
        return wait

    def _sweep(self, seen: Look) -> None:
        abandoned = list(self._abandoned(seen))
        if abandoned:
            self._take_over(abandoned)
        if seen.stale:
            self._end_stale()
        promoted = self._promote() if seen.in_vain else 0
        if seen.ready or abandoned or promoted:
            self._dequeue()

    def _abandoned(self, seen: Look) -> Iterator[tuple[UUID, datetime]]:
        """Leases over that were seen so before: at least three renewals ago, in this same session.

        A clock that jumps (a failover) would otherwise expire every living lease at one blow; their owners renew
        between the two looks.
        """
        now, epoch = self._clock.boottime(), self._session.epoch
        suspects = {}
        for run_id, until in seen.expired:
            old = self._suspects.get(run_id)
            if old is None or old.until != until or old.epoch != epoch:
                suspects[run_id] = _Suspect(until, now, epoch)
            elif now - old.seen_at >= 3 * renew_interval(self._owner.lease):
                yield run_id, until
            else:
                suspects[run_id] = old
        self._suspects = suspects

    def _take_over(self, abandoned: list[tuple[UUID, datetime]]) -> None:
        for taken in runs.take_over(self._session, abandoned):
            self._bus.publish(
                RunTakenOver(
                    replica=self._owner.name,
                    job=taken.job,
                    run_key=taken.run_key,
                    run_id=taken.id,
                    attempt=taken.attempt,
                    scheduled_at=taken.scheduled_at,
                    owner=taken.owner,
                    status=taken.status,
                    error_text=taken.error,
                )
            )

    def _promote(self) -> int:
        """Queue runs that wait for nothing; returns how many."""
        try:
            return runs.promote(self._session, None)
        except Refused:
            return 0  # another run became active just now: the next look tries again

    def _end_stale(self) -> None:
        for run_id, job, key, at in runs.end_stale(self._session):
            self._bus.publish(
                TickSkipped(
                    replica=self._owner.name,
                    job=job,
                    run_key=key,
                    run_id=run_id,
                    scheduled_at=at,
                    reason=SkipReason.STALE_CONFIG,
                )
            )

    def _dequeue(self) -> None:
        """Fill the free seats from the queue, and remember whether there may be more."""
        granted = self._seats.reserve(self._seats.count)
        if not granted:
            self._backlog.set()
            return
        sent, begun = self._clock.boottime(), 0
        try:
            taken = claims.dequeue(self._session, self._owner, self._plan.generation, granted)
            for job_id, claim in taken:
                begun += self._begin(job_id, claim, sent + trust_window(self._owner.lease))
        except ContactLost:
            self._unclear.set()
            raise
        finally:
            self._seats.give_back(granted - begun)
        if len(taken) == granted:
            self._backlog.set()
        else:
            self._backlog.clear()

    def _begin(self, job_id: int, claim: Claim, trust: float) -> int:
        planned = self._plan.get(job_id)
        if planned is None:  # the plan was swapped between the statement and here
            self._hand_back([(claim.id, claim.attempt)])
            return 0
        self._seats.begin(Held(replace(claim, job=planned.spec.name), planned.spec, trust))
        return 1

    def _return_orphans(self) -> None:
        """Hand back runs that are ours though no seat knows them: their bodies have not begun.

        The seats are asked after the database: a claim of the ticker that commits in between is known to them.
        """
        mine = runs.read_mine(self._session, self._owner)
        known = self._seats.known()
        self._hand_back([(run_id, attempt) for run_id, attempt in mine if run_id not in known])

    def _hand_back(self, owned: Any) -> None:
        back = [Settlement(id_, attempt, Decision(Status.QUEUED), NEVER_BEGUN) for id_, attempt in owned]
        if back:
            runs.settle(self._session, self._owner, back)
