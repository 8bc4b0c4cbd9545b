"""The one place that asks for the time."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

from uuid_utils.compat import uuid7

AGREED = 0.001  # seconds of difference that are none
DRIFT = 0.0001  # seconds by which two clocks part in one, at most


class SystemClock:
    """The database's time, as well as it is known here.

    Until it has been measured it is the machine's own clock. From then on it is the measured instant plus the time that
    CLOCK_BOOTTIME says has passed: a machine whose clock is set, or was wrong all along, ticks right all the same.
    `shift`: seconds added to the machine's clock, a setting for tests of replicas whose clocks differ.
    """

    def __init__(self, shift: float = 0.0) -> None:
        self._shift = timedelta(seconds=shift)
        self._known: tuple[datetime, float] | None = None  # an instant of the database, and its boottime
        self.error = 0.0  # seconds by which that instant may be wrong
        self._lock = threading.Lock()

    def _local(self) -> datetime:
        return datetime.now(UTC) + self._shift  # noqa: TID251 - here and nowhere else

    def now(self) -> datetime:
        """The instant by the database's clock. Aware, UTC."""
        known = self._known
        if known is None:
            return self._local()
        instant, at = known
        return instant + timedelta(seconds=self.boottime() - at)

    def boottime(self) -> float:
        """Seconds of CLOCK_BOOTTIME: monotonic, and it goes on while the machine is suspended."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def alarm_time(self, instant: datetime) -> datetime:
        """What the machine's own clock will show at `instant`, if nobody sets it: what the alarm has to be set to."""
        return self._local() - self._shift + (instant - self.now())

    @property
    def offset(self) -> float:
        """Seconds that this machine's clock is ahead of the database's."""
        return 0.0 if self._known is None else (self._local() - self.now()).total_seconds()

    def measure(self, database_now: datetime, sent: float) -> None:
        """Learn from an answer that carries the database's time, and was asked for at `sent`, by `boottime`.

        The database read its clock at some point of the exchange; the middle is the best guess, and half the exchange
        the error. Believed is what is more exact than what is known, and what contradicts it: lies farther from it than
        both errors allow. Where one side of the exchange stood still, the difference is half of the exchange.
        """
        at = self.boottime()  # here, and the one reading that counts: this thread may stand still at any point
        error = (at - sent) / 2
        seen = database_now + timedelta(seconds=error)
        with self._lock:
            if self._known is not None:
                instant, known_at = self._known
                doubt = self.error + DRIFT * (at - known_at)
                apart = abs((seen - instant).total_seconds() - (at - known_at))
                if error > doubt and apart <= error + doubt + AGREED:
                    return
            self._known, self.error = (seen, at), error


def new_id() -> UUID:
    """A run's or a replica's id: UUIDv7, so ids sort by the time they were made and cannot be guessed."""
    return uuid7()
