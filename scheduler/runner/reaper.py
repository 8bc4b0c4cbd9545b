"""Judges who is dead, and takes over what they left. Two signs, each seen twice on one *ground*: one unbroken session
to one server. Behind a pooler a session may outlive the server, so the ground is the start of that server as well.

The lease is over: seen so at least three renewals apart. A clock that jumps (a failover) would otherwise expire every
living lease at one blow; their owners renew between the two looks. So does this replica, whose bodies may have gone on
through an outage: it counts from when its own dedicated session stands again.

The presence lock is gone: counted only where it was seen to stand before on the same ground, else everybody's may be
gone. Our own dedicated session belongs to that ground: it ends with the server as the owner's does, also in a crash
that does not start the server anew. The run's lease must then stay as it is for two renewals of its owner, who needs
one to notice and to end its bodies. Asked only while others own runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from scheduler.core.events import JobPaused, RunTakenOver
from scheduler.core.model import SOLOIST
from scheduler.core.policy import ENDED_BADLY, renew_interval
from scheduler.runner.failing import pause_failing
from scheduler.runner.room import Room
from scheduler.store import locks, runs
from scheduler.store.engine import Session
from scheduler.store.runs import Look

PRESENCE_POLL = 0.25  # seconds
NEVER = float("inf")
_Ground = tuple[object, ...]


@dataclass(slots=True)
class _Suspect:
    """A lease in doubt: the `claimed_until` that was seen, when (CLOCK_BOOTTIME), and on which ground."""

    until: datetime
    seen_at: float
    ground: _Ground


class Reaper:
    """Belongs to the sweeper's thread. `dedicated`: the keeper's session."""

    def __init__(self, session: Session, room: Room, dedicated: Session) -> None:
        self._session, self._dedicated = session, dedicated
        self._owner, self._clock, self._bus = room.owner, room.clock, room.bus
        self._interval = renew_interval(room.owner.lease)
        self._poll = min(PRESENCE_POLL, self._interval)
        self._expired: dict[UUID, _Suspect] = {}
        self._gone: dict[UUID, _Suspect] = {}
        self._seen: dict[UUID, _Ground] = {}  # owner -> where its presence was seen
        self.next_at = NEVER

    def others(self, own_runs: bool) -> None:
        """Whether others own runs, as the last look saw it: then their presence is watched."""
        if not own_runs:
            self.next_at = NEVER
            self._seen.clear()
            self._gone.clear()
        elif self.next_at == NEVER:
            self.next_at = 0.0

    def due(self, now: float) -> bool:
        """Whether it is time to watch."""
        return now >= self.next_at

    def watch(self) -> bool:
        """Look for the presence of all owners; whether runs were taken from one that is gone. Raises ContactLost."""
        before = self._dedicated.epoch
        owners = locks.watch_owners(self._session, self._owner.id)
        self.next_at = (self._clock.boottime() + self._poll) if owners else NEVER
        if not owners:
            self._seen, self._gone = {}, {}
            return False
        ground = (*self._ground(owners[0].server_since), before)
        # asked before and after the look: where it has ended, or is a new one, the answer may be of either server
        if self._dedicated.over or self._dedicated.epoch != before:
            ground = ()
        self._seen = {one.id: ground if one.present else self._seen.get(one.id, ()) for one in owners}
        gone = [one for one in owners if ground and not one.present and self._seen[one.id] == ground]
        waits = {run: 2 * renew_interval(one.lease) for one in gone for run, _ in one.runs}
        left = [each for one in gone for each in one.runs]
        self._gone, over = self._judge(self._gone, left, waits, ground)
        return self._take_over(over, "presence")

    def bury(self, seen: Look) -> bool:
        """Take over runs whose lease is over; whether there was one. Raises ContactLost."""
        if self._dedicated.over:  # who cannot renew now would judge its own runs first
            self._expired = {}
            return False
        waits = {run: 3 * self._interval for run, _ in seen.expired}
        ground = (*self._ground(seen.server_since), self._dedicated.epoch)
        self._expired, over = self._judge(self._expired, seen.expired, waits, ground)
        if over:
            # a frozen owner that holds its job's lock: its session first, the run at the next look
            guarded = locks.end_holders(self._session, [run for run, _ in over])
            over = [(run, until) for run, until in over if run not in guarded]
        return self._take_over(over, "lease")

    def _ground(self, server_since: datetime) -> _Ground:
        return (self._session.epoch, server_since)

    def _judge(
        self,
        known: dict[UUID, _Suspect],
        seen: Iterable[tuple[UUID, datetime]],
        waits: dict[UUID, float],
        ground: _Ground,
    ) -> tuple[dict[UUID, _Suspect], list[tuple[UUID, datetime]]]:
        """The suspects from now on, and those that have been suspects for long enough."""
        now = self._clock.boottime()
        suspects, over = {}, []
        for run, until in seen:
            old = known.get(run)
            if old is None or old.until != until or old.ground != ground:
                old = _Suspect(until, now, ground)
            elif now - old.seen_at >= waits[run]:
                over.append((run, until))
            suspects[run] = old
        return suspects, over

    def _take_over(self, over: list[tuple[UUID, datetime]], how: Literal["lease", "presence"]) -> bool:
        if not over:
            return False
        all_taken = runs.take_over(self._session, over, gone=how == "presence")
        for taken in all_taken:
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
                    how=how,
                    error_text=taken.error,
                )
            )
        self._pause_failing({taken.job for taken in all_taken if taken.watched and taken.status in ENDED_BADLY})
        return True

    def _pause_failing(self, jobs: set[str]) -> None:
        """What the dead left may have been a job's last failure but one too many."""
        for job, reason in (pause_failing(self._session, jobs) if jobs else {}).items():
            self._bus.publish(JobPaused(replica=self._owner.name, job=job, by=SOLOIST, reason=reason))
