"""Presence: others know by the lock on our dedicated session that this replica is there, and may take its runs when
that is gone. So the end of that session is a matter of life and death for our bodies, whether the database is there or
not.

From the end of the session this replica has one renewal interval to *stand* again: a new session, and on it a renewal
that was acknowledged. Until then no body begins; when the interval is over, the bodies are killed, and their runs go
back to the queue at no cost. Others wait for two missed renewals before they take anything, so that there are never
two bodies. The zygotes watch the session's socket themselves, because this process may be frozen just then.

Only while the server takes nobody at all does the lease's own trust window decide instead: then no other replica can
have kept a session to see us gone from, and a short restart of PostgreSQL costs no run.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from scheduler.core.events import PresenceLost, PresenceRegained
from scheduler.core.model import Guard
from scheduler.core.policy import renew_interval, trust_window
from scheduler.kinds import Kind, Stop
from scheduler.runner.room import Room
from scheduler.runner.seats import Held, Seats
from scheduler.store import locks
from scheduler.store.engine import Session

WHY = "presence"


class Presence:
    """`check`, `ended` and `stand` belong to the keeper's thread; `wait` to any."""

    def __init__(self, session: Session, room: Room, seats: Seats, kinds: Sequence[Kind]) -> None:
        self._session, self._room, self._seats, self._kinds = session, room, seats, kinds
        self._interval = renew_interval(room.owner.lease)
        self._window = trust_window(room.owner.lease)
        self._changed = threading.Condition()
        self._stands = False
        self._fell_at = 0.0
        self._ended_at: float | None = None
        self._at_stake = False
        self._locked_in = self._watched_in = 0  # epochs of the session; 0: none yet

    @property
    def stands(self) -> bool:
        """Whether bodies may begin."""
        return self._stands

    @property
    def wants_lock(self) -> bool:
        """Whether the lock is still to be taken: soon, so the keeper should not sleep for long."""
        return not self._session.pooled and self._locked_in != self._session.epoch

    def check(self, deadline: float) -> None:
        """Before a renewal: notice that the session ended since the last; take the lock on a new one.

        Raises ContactLost. Without the lock (a session of ours from before still has it) the renewals protect us.
        """
        if self._stands and not self._session.connected:
            self.ended("the connection was closed", everyone=False)
        self._session.open()  # a lock behind a pooler would be anybody's: first know what the session is
        if self.wants_lock and locks.take_presence(self._session, self._room.owner.id, deadline):
            self._locked_in = self._session.epoch

    def ended(self, error: str, *, everyone: bool) -> None:
        """The session has ended, or still does not stand again. `everyone`: the server takes nobody at all."""
        if self._session.pooled:
            return  # leases alone: nobody takes our bodies' end for granted before those are over
        held = self._seats.held()
        if self._ended_at is None:
            self._fall(held, error)
        assert self._ended_at is not None
        if everyone:
            for kind in self._kinds:
                kind.lift()
        for one in held:
            if everyone:
                one.lift()
            else:
                one.limit(self._ended_at + self._interval)

    def _fall(self, held: list[Held], error: str) -> None:
        with self._changed:
            self._stands = False
            self._ended_at = self._fell_at = self._room.clock.boottime()
        self._seats.shut(WHY)
        self._at_stake = bool(held)
        if held:
            self._room.bus.publish(PresenceLost(replica=self._room.owner.name, error=error, within=self._interval))
        for one in held:
            if one.spec.guard is Guard.ADVISORY_LOCK:
                one.stop(Stop.LEASE_LOST)  # its lock went with the session: somebody else may have it by now

    def stand(self) -> None:
        """A renewal sent on the present session was acknowledged."""
        if self._watched_in != self._session.epoch:
            self._watch()
        with self._changed:
            stood, self._stands = self._stands, True
            ended_at, self._ended_at = self._ended_at, None
            self._changed.notify_all()
        if stood:
            return
        self._seats.reopen(WHY)
        if ended_at is not None and self._at_stake:
            after = self._room.clock.boottime() - ended_at
            self._room.bus.publish(PresenceRegained(replica=self._room.owner.name, after=after))

    def _watch(self) -> None:
        socket = self._session.fileno()
        if self._session.pooled or socket is None:
            return
        for kind in self._kinds:
            kind.watch(socket, self._interval)
        self._watched_in = self._session.epoch

    def wait(self, held: Held) -> bool:
        """Whether this body may begin; waits two renewal intervals for that.

        A lease that was given before the session fell is worth nothing until it is renewed: between the claim and its
        answer others may have seen us gone, and have taken the run.
        """
        with self._changed:
            return self._changed.wait_for(lambda: self._stands and self._is_fresh(held), 2 * self._interval)

    def _is_fresh(self, held: Held) -> bool:
        return held.trust - self._window >= self._fell_at
