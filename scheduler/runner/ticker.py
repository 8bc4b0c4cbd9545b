"""Ticks: decide what is due, claim it, seat what was won. Level-triggered: any call at any time is safe.

Every replica walks the same overdue jobs in chunks, each from another start (by its rank among the live ones), so that
they meet seldom and never wait for each other. A chunk that is another replica's to begin with is looked at first: most
often it is gone, and a look costs a fraction of a claim.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from scheduler.core.model import Birth, Status, first_claim
from scheduler.core.policy import trust_window
from scheduler.runner import tick_events
from scheduler.runner.clock import new_id
from scheduler.runner.plan import PlanInForce, Planned
from scheduler.runner.room import Room
from scheduler.runner.seats import Held, Seats
from scheduler.store import claims
from scheduler.store.claims import ClaimAnswer, Want
from scheduler.store.engine import Blocked, ContactLost, Session
from scheduler.store.jobs import read_moved

CHUNK = 250
TOLD = 20  # ticks won by others that are told one by one: as many as a log tells of
AFRESH = 0.1  # seconds within which a job that was not moved is looked at again
PATIENCE = 0.05  # seconds that ticks wait for seats before they are queued
COURTESY = 0.025  # seconds that a tick is left to the replica that begins with it
EARLY = 0.001  # added to a wait for the database's clock, which is known to about that
BLOCKED = 1.0  # seconds before a job that an open transaction blocks is tried again

Births = tuple[tuple[UUID, Birth], ...]
Decided = dict[int, tuple[Planned, Births]]
"""Job id -> the job and how its due ticks are to come into the world."""


class Ticker:
    """The ticks of one replica. `tick` belongs to one thread.

    `rank` and `live` say where this replica starts. `unclear` is called when a claim's answer was lost, `beaten` when
    others were faster, `waits` when a run was born that may not start yet.
    """

    def __init__(self, session: Session, room: Room, plan: PlanInForce, seats: Seats) -> None:
        self._session, self._plan, self._seats = session, plan, seats
        self._owner, self._clock, self._bus = room.owner, room.clock, room.bus
        self._heap: list[tuple[datetime, int]] = []  # ticks to come
        self._overdue: list[Planned] = []  # came, and not yet accounted for: contested, blocked, or too early
        self._version, self._jobs = -1, plan.jobs()
        self._contested: dict[int, int] = {}  # how often each was looked at in vain
        self._blocked: dict[int, float] = {}
        self._patient = True
        self.rank, self.live = 0, 1
        self.unclear: Callable[[], None] = lambda: None
        self.overflowed: Callable[[], None] = lambda: None
        self.beaten: Callable[[], None] = lambda: None
        self.waits: Callable[[], None] = lambda: None

    def next_tick(self) -> datetime | None:
        """The next tick that is still to come."""
        self._follow_plan()
        return self._heap[0][0] if self._heap else None

    def tick(self) -> float | None:
        """Claim all that is due. Returns in how many seconds it must be called again, None: at `next_tick`.

        Raises ContactLost; nothing is forgotten by it.
        """
        self._follow_plan()
        now = self._clock.now()
        due = self._pop_due(now)
        again = None
        try:
            again = self._tick(due, now) if due else None
        finally:
            self._overdue = [job for job in due if job.next is not None and job.next <= now]
            for job in due:
                if job.next is not None and job.next > now:
                    heapq.heappush(self._heap, (job.next, job.id))
        return AFRESH if again is None and self._overdue else again

    def _follow_plan(self) -> None:
        if self._version != self._plan.version:
            self._version, self._jobs = self._plan.version, self._plan.jobs()
            self._heap = [(job.next, id_) for id_, job in self._jobs.items() if job.next is not None]
            heapq.heapify(self._heap)
            self._overdue.clear()
            self._contested.clear()

    def _pop_due(self, now: datetime) -> list[Planned]:
        due = self._overdue
        while self._heap and self._heap[0][0] <= now:
            _, id_ = heapq.heappop(self._heap)
            due.append(self._jobs[id_])  # of the plan that the heap was made of: another may be in force by now
        return sorted(due, key=lambda job: job.id)

    def _tick(self, due: list[Planned], now: datetime) -> float | None:
        own, others = self._share([job for job in due if job.id not in self._contested])
        if contested := [job for job in due if job.id in self._contested]:
            others.insert(0, contested)  # most likely somebody has claimed them by now
        if not (own or contested):  # whoever looks at the same instant is in the way of the one that begins with them
            wait = COURTESY - max((now - job.next).total_seconds() for job in due if job.next is not None)
            if wait > 0:
                return wait
        left: Decided = {}
        gone, self._patient = 0, True
        for chunk in own:
            left.update(self._claim_apart(chunk, now))
        for chunk in others:
            still_open = self._still_open(chunk, now)
            gone += len(chunk) - len(still_open)
            if still_open:
                left.update(self._claim_apart(still_open, now))
        self._contested = {id_: self._contested.get(id_, 0) + 1 for id_ in left}
        if left or gone:
            self.beaten()
        return self._look(left) if left else None

    def _share(self, due: list[Planned]) -> tuple[list[list[Planned]], list[list[Planned]]]:
        """The due jobs in chunks: those that this replica claims at once, and those that it looks at before.

        Every replica sees the same chunks, and each begins with another part of them. With which one changes with the
        tick, so that lone jobs do not all run in one place.
        """
        if not due:
            return [], []
        live = max(self.live, 1)
        size = max(25, min(CHUNK, -(-len(due) // (2 * live))))
        chunks = [due[i : i + size] for i in range(0, len(due), size)]
        part = (self.rank + (due[0].id + int(due[0].next.timestamp()) if due[0].next else 0)) % live
        first, last = part * len(chunks) // live, (part + 1) * len(chunks) // live
        return chunks[first:last], chunks[last:] + chunks[:first]

    def _still_open(self, chunk: list[Planned], now: datetime) -> list[Planned]:
        """The jobs of a chunk whose ticks nobody has claimed; the others move on.

        Who won the others is asked, and told, for a few only: to lose is the normal fate of most.
        """
        asked = [(job.id, job.watermark, job.spec_hash) for job in chunk]
        moved = {job.job_id: job for job in read_moved(self._session, asked)}
        gone = [job for job in chunk if job.id in moved]
        told: Decided = {}
        for job in gone:
            births = self._decide(job, now) if len(gone) <= TOLD else ()
            if job.at_rest or moved[job.id].at_rest:
                job.stand_down()
                continue
            job.move(moved[job.id].watermark)  # also back: a failover may have forgotten where it was
            if births:
                told[job.id] = (job, births)
        self._look(told)
        return [job for job in chunk if job.id not in moved]

    def _claim_apart(self, chunk: list[Planned], now: datetime) -> Decided:
        """Claim a chunk; where somebody's open transaction is in the way of one job, that job alone waits.

        A job that was blocked is claimed by itself until it goes through, and not before its time has come again.
        """
        clear = [job for job in chunk if job.id not in self._blocked]
        apart = [job for job in chunk if job.id in self._blocked and self._clock.boottime() >= self._blocked[job.id]]
        left: Decided = {}
        try:
            left.update(self._claim(clear, now) if clear else {})
        except Blocked:
            apart = clear + apart
        for job in apart:
            try:
                left.update(self._claim([job], now))
                self._blocked.pop(job.id, None)
            except Blocked:
                self._blocked[job.id] = self._clock.boottime() + BLOCKED
        return left

    def _decide(self, job: Planned, now: datetime) -> Births:
        return tuple([(new_id(), birth) for birth in job.births(now)])

    def _claim(self, chunk: list[Planned], now: datetime) -> Decided:
        """Claim one chunk; returns the jobs whose ticks are not all accounted for by it."""
        decided = {job.id: (job, births) for job in chunk if (births := self._decide(job, now))}
        wanted = sum(birth.status is Status.RUNNING for _, births in decided.values() for _, birth in births)
        granted = self._reserve(wanted)
        if granted < wanted:
            decided = _queue_beyond(decided, granted)
        sent, begun = self._clock.boottime(), 0
        claiming = self._seats.claiming(id_ for _, births in decided.values() for id_, _ in births)
        try:
            with claiming:
                wants = [Want(job.id, job.spec_hash, job.watermark, births) for job, births in decided.values()]
                answer = claims.claim(self._session, self._owner, wants)
                begun = self._begin(answer, decided, sent + trust_window(self._owner.lease))
        except ContactLost:
            self.unclear()  # after `claiming`: whoever looks for orphans must not find their ids still spoken for
            raise
        finally:
            self._seats.give_back(granted - begun)
        return self._account(answer, decided)

    def _reserve(self, wanted: int) -> int:
        """Seats for that many, waiting a moment where they lack: bodies of microseconds free theirs sooner than the
        queue would take a run to another. Not again in this pass, if none became free.
        """
        if self._patient and wanted > self._seats.free:
            self._patient = self._seats.wait_free(wanted, PATIENCE)
        return self._seats.reserve(wanted)

    def _begin(self, answer: ClaimAnswer, decided: Decided, trust: float) -> int:
        """Seat what was born running, before anything else is done."""
        held = []
        for made in answer.made:
            if made.status is Status.RUNNING:
                job, births = decided[made.job_id]
                birth = next(birth for id_, birth in births if id_ == made.id)
                claim = first_claim(job.spec, made.id, birth.run_key, birth.scheduled_at, birth.trigger)
                won = tick_events.won(self._owner, job, made.id, birth, made.status)
                held.append(Held(claim, job.spec, trust, won))
        self._seats.begin(*held)
        return len(held)

    def _account(self, answer: ClaimAnswer, decided: Decided) -> Decided:
        made = {row.id: row for row in answer.made}
        left = {}
        for job_id, (job, births) in decided.items():
            for id_, birth in births:
                if row := made.get(id_):
                    self._say(job, id_, birth, row.status, row.blocked_by)
            if job_id in answer.moved:
                job.move(births[-1][1].scheduled_at)
                if not any(id_ in made for id_, _ in births):
                    # every tick had its row already: the period was run, or a pod was asked for the tick by name
                    left[job_id] = (job, births)
            else:
                left[job_id] = (job, births)
        return left

    def _look(self, left: Decided) -> float | None:
        """See what became of ticks that were not won; returns when those still open are to be tried again."""
        asked = [(job_id, birth.run_key) for job_id, (_, births) in left.items() for _, birth in births]
        if not asked:
            return None
        wait: float | None = None
        sent = self._clock.boottime()
        found = claims.read_lost(self._session, asked)
        if found:  # who was too early, by a clock that was measured while much was going on, is so once
            self._clock.measure(found[0].database_now, sent)
        for lost in found:
            job, births = left[lost.job_id]
            if lost.at_rest or lost.spec_hash != job.spec_hash:
                job.stand_down()
                continue
            birth = next(birth for _, birth in births if birth.run_key == lost.run_key)
            if lost.watermark >= birth.scheduled_at:
                job.move(max(lost.watermark, job.watermark))
                self._contested.pop(job.id, None)
                if (event := tick_events.lost(self._owner, job, birth, lost)) is not None:
                    self._bus.publish(event)
            else:
                early = (birth.scheduled_at - lost.database_now).total_seconds()
                fresh = EARLY if self._contested.get(job.id, 0) <= 1 else AFRESH / 4
                again = early + EARLY if early > 0 else fresh
                wait = min(again, AFRESH) if wait is None else min(wait, again)
        return wait

    def _say(self, job: Planned, id_: UUID, birth: Birth, status: Status, blocked_by: UUID | None) -> None:
        if status is Status.SKIPPED:
            self._bus.publish(tick_events.skipped(self._owner, job, id_, birth, blocked_by))
        elif status is not Status.RUNNING:  # else its seat says so
            self._bus.publish(tick_events.won(self._owner, job, id_, birth, status))
        if status is Status.QUEUED and not birth.delay:
            self.overflowed()
        if status is Status.WAITING:
            self.waits()


def _queue_beyond(decided: Decided, granted: int) -> Decided:
    """What has no seat here is born queued, for whoever has one."""
    out: Decided = {}
    for job_id, (job, births) in decided.items():
        fitted = []
        for id_, birth in births:
            granted -= birth.status is Status.RUNNING
            beyond = birth.status is Status.RUNNING and granted < 0
            fitted.append((id_, replace(birth, status=Status.QUEUED) if beyond else birth))
        out[job_id] = (job, tuple(fitted))
    return out
