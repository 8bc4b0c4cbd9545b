"""Whether the database answers, told once per change: one line in the log for an outage, not a thousand."""

from __future__ import annotations

import threading

from scheduler.core.clock import Clock
from scheduler.core.events import Bus, DatabaseLost, DatabaseRegained
from scheduler.store.connect import one_line

QUIET = 5.0  # seconds without a refusal after which a server that refused some of our work is said to be well again


class Contact:
    """What the sessions of one replica tell of their calls. Thread-safe.

    A server may refuse some of our work and do the rest (a full disk, a moment of read-only): then one answer does not
    say that it is well.
    """

    def __init__(self, bus: Bus, replica: str, clock: Clock) -> None:
        self._bus, self._replica, self._clock = bus, replica, clock
        self._lock = threading.Lock()
        self._lost_at: float | None = None
        self._refused_at = self._regained_at = 0.0
        self._tries = 0

    def now(self) -> float:
        """CLOCK_BOOTTIME seconds, for `used_at` of `failed` and `asked_at` of `worked`."""
        return self._clock.boottime()

    def failed(self, room: str, error: BaseException, *, refused: bool = False, used_at: float | None = None) -> None:
        """A call failed for want of an answer. `refused`: the session stood, the server would not do it.

        `used_at`: when that session last had an answer. One that has idled through an outage finds out afterwards that
        it is dead: no news.
        """
        now = self._clock.boottime()
        with self._lock:
            if self._lost_at is None and used_at is not None and used_at < self._regained_at:
                return
            first = self._lost_at is None
            self._tries += 1
            self._lost_at = now if first else self._lost_at
            self._refused_at = now if refused else self._refused_at
        if first:
            self._bus.publish(DatabaseLost(replica=self._replica, room=room, error=one_line(error)))

    def worked(self, room: str, asked_at: float) -> None:
        """A call came back that was sent at `asked_at`.

        Where the server was lost in between, its answer is older than the loss: a server that shuts down still answers
        what it has begun, and is not back for that.
        """
        if not self._tries:  # the common case, without the lock
            return
        now = self._clock.boottime()
        with self._lock:
            lost_at, tries = self._lost_at, self._tries
            if lost_at is None or asked_at < lost_at or now - self._refused_at < QUIET:
                return
            self._lost_at, self._tries, self._regained_at = None, 0, now
        self._bus.publish(DatabaseRegained(replica=self._replica, room=room, after=now - lost_at, tries=tries))
