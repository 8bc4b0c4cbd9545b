"""`guard: advisory_lock`: while a run of such a job executes, its owner holds a session lock of the job as well.

The row is claimed first and stays the truth: a lock alone ran every tick twice where clocks differed by more than the
job's length (measured). The lock adds that nobody runs beside an owner whose lease is over but whose session lives.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass

from scheduler.core.policy import renew_interval
from scheduler.runner.room import Room
from scheduler.store import locks
from scheduler.store.engine import ContactLost, Refused, Session

OURSELVES = "this replica, for an earlier run"


@dataclass(frozen=True, slots=True)
class Busy:
    """Somebody else has the lock. `holder`: in words, None: not known."""

    holder: str | None


class JobLocks:
    """The locks of this replica's guarded runs, on its dedicated session. For any thread.

    A session's locks are re-entrant, so what is held here is remembered here.
    """

    def __init__(self, session: Session, room: Room) -> None:
        self._session, self._clock = session, room.clock
        self._interval = renew_interval(room.owner.lease)
        self._lock = threading.Lock()
        self._held: dict[str, int] = {}  # job -> epoch of the session that holds its lock
        self._idle: dict[str, tuple[int, float]] = {}  # job -> backend that holds it without a run, since when

    def take(self, job: str) -> Busy | None:
        """Take the job's lock; None: it is ours. Raises ContactLost."""
        with self._lock:
            if self._held.get(job) == self._session.epoch and self._session.connected:
                return Busy(OURSELVES)
            if locks.take_job(self._session, job):
                self._held[job] = self._session.epoch
                self._idle.pop(job, None)
                return None
        return self._busy(job)

    def free(self, job: str) -> None:
        """Let it go, before the outcome is written. If its session has ended, so has the lock."""
        with self._lock:
            if self._held.pop(job, None) == self._session.epoch and self._session.connected:
                with suppress(ContactLost, Refused):
                    locks.free_job(self._session, job)

    def _busy(self, job: str) -> Busy:
        """Who has it? A replica that holds it without a run was overtaken while frozen: after a while it is ended, or
        it would keep the job from running for good."""
        holder = locks.read_holder(self._session, job)
        if holder is None:
            return Busy(None)
        if holder.replica is None:
            return Busy(f"session {holder.pid} of the database, which is no replica of ours")
        now = self._clock.boottime()
        with self._lock:
            pid, since = self._idle.get(job, (0, now))
            if holder.owns or pid != holder.pid:
                since = now
            self._idle[job] = holder.pid, since
        if not holder.owns and now - since >= 3 * self._interval:
            locks.end_idle_holder(self._session, job, holder.pid)
        return Busy(holder.replica)
