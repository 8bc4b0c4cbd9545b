"""The net under everything: takes over runs of the dead, seats queued runs, promotes waiting ones, finds orphans.

It looks when a notification comes, when a seat is freed while there is a backlog, when the next retry is ready, when a
tick was lost to another replica, and at the latest after `busy` seconds while anything is going on, or `idle` seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from scheduler.core.events import AnswerRecovered, RunReplaced, TickSkipped
from scheduler.core.model import Claim, Ending, Outcome, SkipReason, Status
from scheduler.core.policy import Decision, renew_interval, trust_window
from scheduler.runner.plan import PlanInForce
from scheduler.runner.reaper import Reaper
from scheduler.runner.room import Room
from scheduler.runner.seats import Held, Seats
from scheduler.store import claims, runs
from scheduler.store.claims import Mine
from scheduler.store.engine import CALL_DEADLINE, ContactLost, Refused, Session
from scheduler.store.runs import Look, Settlement

NEVER_BEGUN = Ending(Outcome.HANDED_BACK, error_text="the answer to the claim was lost", started=False)
POLL = 1.0  # seconds between two looks where no notification can come
LINGER = 0.001  # seconds that freed seats wait for others, so that bodies of microseconds are not fetched one by one


class Sweeper:
    """`step` belongs to one thread; `backlog`, `answer_lost` and `overflowed` are for any."""

    def __init__(self, session: Session, room: Room, plan: PlanInForce, seats: Seats, reaper: Reaper) -> None:
        self._session, self._plan, self._seats, self._reaper = session, plan, seats, reaper
        self._owner, self._clock, self._bus = room.owner, room.clock, room.bus
        self._busy = renew_interval(room.owner.lease)
        self._idle = room.owner.lease / 2  # sees a run that begins elsewhere well before its lease can be over
        self._look_at = 0.0
        self._backlog = threading.Event()
        self._unclear = threading.Event()
        self._curious = threading.Event()
        self._news = threading.Event()
        self._unclear_until = 0.0
        self._server_since: datetime | None = None
        self.notified: Callable[[], bool] = lambda: True  # whether notifications reach this replica
        self.elsewhere: Callable[[], None] = lambda: None  # called when the server is another one, or began anew

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

    def fetch_soon(self) -> None:
        """Something is queued: it is fetched before anything is looked at, for somebody may be waiting for it."""
        self._news.set()

    def look_soon(self) -> None:
        """Others begin to work, whose presence has to be seen before it can be missed."""
        self._curious.set()

    def step(self) -> float:
        """Look, and do what the look asks for; returns seconds to the next one."""
        now = self._clock.boottime()
        if self._unclear.is_set():
            self._unclear.clear()
            # the statement itself may still be at work in the server: look again until it cannot be
            self._unclear_until = now + CALL_DEADLINE + 2
            self._look_at = 0.0
        if self._curious.is_set():
            self._curious.clear()
            self._look_at = 0.0
        if self._news.is_set():
            self._news.clear()
            self._look_at = 0.0
            self._dequeue()
        if now < self._unclear_until:
            self._find_orphans()
        if self._reaper.due(now):
            gone = self._reaper.watch()
            if gone:
                self._dequeue()
        if self._clock.boottime() < self._look_at:
            if self._backlog.is_set():  # between two looks, freed seats are filled without one
                self._seats.wait_free(self._seats.count // 2, LINGER)
                self._dequeue()
            return self._until_next()
        seen = runs.look(self._session, self._owner, self._plan.generation)
        self._reaper.others(seen.others)
        self._sweep(seen)
        unclear = self._clock.boottime() < self._unclear_until
        busy = seen.others or seen.ready or bool(seen.expired) or unclear
        wait = self._busy if busy else self._idle if self.notified() else POLL
        if seen.next_in is not None:
            wait = min(wait, seen.next_in + 0.001)
        self._look_at = self._clock.boottime() + wait
        return self._until_next()

    def _until_next(self) -> float:
        now = self._clock.boottime()
        return max(0.0, min(self._look_at, self._reaper.next_at) - now)

    def _sweep(self, seen: Look) -> None:
        if self._server_since not in (None, seen.server_since):
            self.elsewhere()
        self._server_since = seen.server_since
        abandoned = self._reaper.bury(seen)
        if seen.stale:
            self._end_stale()
        replaced = self._replace()
        promoted = self._promote() if seen.in_vain or replaced else 0
        if seen.ready or abandoned or promoted:
            self._dequeue()

    def _replace(self) -> bool:
        """Make room for the newest tick of jobs that want it so; whether a run ended by it."""
        jobs, ended = self._plan.replacing, False
        for one in runs.replace(self._session, jobs) if jobs else ():
            ended = ended or one.status is Status.CANCELLED
            self._bus.publish(
                RunReplaced(
                    replica=self._owner.name,
                    job=self._plan.names.get(one.job_id, ""),
                    run_key=one.run_key,
                    run_id=one.id,
                    attempt=one.attempt,
                    scheduled_at=one.scheduled_at,
                    status=one.status,
                )
            )
        return ended

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
        trust = sent + trust_window(self._owner.lease)
        try:
            taken = claims.dequeue(self._session, self._owner, self._plan.generation, granted, self._plan.names)
            back = self._begin(taken, trust)
            begun = len(taken) - len(back)
            self._hand_back(back)
        except (ContactLost, Refused):
            self._unclear.set()
            raise
        finally:
            self._seats.give_back(granted - begun)
        if len(taken) == granted:
            self._backlog.set()
        else:
            self._backlog.clear()

    def _begin(self, taken: Sequence[tuple[int, Claim]], trust: float) -> list[tuple[UUID, int]]:
        """Seat what was taken; returns what cannot be: the plan was swapped between the statement and here."""
        held, back = [], []
        for job_id, claim in taken:
            planned = self._plan.get(job_id)
            if planned is None:
                back.append((claim.id, claim.attempt))
            else:
                named = claim if claim.job else replace(claim, job=planned.spec.name)
                held.append(Held(named, planned.spec, trust))
        self._seats.begin(*held)
        return back

    def _find_orphans(self) -> None:
        """Seat the runs that are ours though no seat knows them: their bodies have not begun. Or hand them back.

        The seats are asked after the database: a claim of the ticker that commits in between is known to them. And the
        database once more after the seats: a run that ended in between, and left its seat, is not begun a second time.
        """
        mine = claims.read_mine(self._session, self._owner)
        known = self._seats.known()
        unknown = {(one.claim.id, one.claim.attempt) for one in mine if one.claim.id not in known}
        if not unknown:
            return
        sent = self._clock.boottime()
        orphans = [
            one for one in claims.read_mine(self._session, self._owner) if (one.claim.id, one.claim.attempt) in unknown
        ]
        back = [one for one in orphans if not self._adopt(one, sent)]
        self._hand_back([(one.claim.id, one.claim.attempt) for one in back])

    def _adopt(self, orphan: Mine, sent: float) -> bool:
        """Begin it here after all, if its lease is good for it and a seat is free."""
        lease, planned = self._owner.lease, self._plan.get(orphan.job_id)
        trust = sent + orphan.left - (lease - trust_window(lease))
        if planned is None or trust <= self._clock.boottime() or not self._seats.reserve(1):
            return False
        claim = replace(orphan.claim, job=planned.spec.name)
        self._seats.begin(Held(claim, planned.spec, trust, self._recovered(claim)))
        return True

    def _recovered(self, claim: Claim) -> AnswerRecovered:
        return AnswerRecovered(
            replica=self._owner.name,
            job=claim.job,
            run_key=claim.run_key,
            run_id=claim.id,
            attempt=claim.attempt,
            scheduled_at=claim.scheduled_at,
            what="claim",
        )

    def _hand_back(self, owned: Any) -> None:
        back = [Settlement(id_, attempt, Decision(Status.QUEUED), NEVER_BEGUN) for id_, attempt in owned]
        if back:
            runs.settle(self._session, self._owner, back)
