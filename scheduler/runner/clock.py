"""The one place that asks for the time."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

from uuid_utils.compat import uuid7


class SystemClock:
    """The machine's clock, corrected by the offset to the database's that was measured last.

    `shift`: seconds added to the machine's clock, a setting for tests of replicas whose clocks differ.
    """

    def __init__(self, shift: float = 0.0) -> None:
        self._shift = timedelta(seconds=shift)
        self._offset = timedelta(0)
        self._lock = threading.Lock()

    def _local(self) -> datetime:
        return datetime.now(UTC) + self._shift  # noqa: TID251 - here and nowhere else

    def now(self) -> datetime:
        """The instant by the database's clock, as well as it is known here. Aware, UTC."""
        return self._local() - self._offset

    def boottime(self) -> float:
        """Seconds of CLOCK_BOOTTIME: monotonic, and it goes on while the machine is suspended."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def alarm_time(self, instant: datetime) -> datetime:
        """What the machine's own clock will show at `instant`: what the alarm has to be set to."""
        return instant + self._offset - self._shift

    @property
    def offset(self) -> float:
        """Seconds that this machine's clock is ahead of the database's."""
        return self._offset.total_seconds()

    def measure(self, database_now: datetime, took: float) -> None:
        """Learn the offset from an answer that carries the database's time and took so many seconds to come.

        The database read its clock at some point of the exchange; the middle is the best guess, and half the exchange
        the error. A slow exchange says little, so it is not believed over a fast one unless the difference is larger.
        """
        seen = self._local() - timedelta(seconds=took / 2) - database_now
        with self._lock:
            if abs((seen - self._offset).total_seconds()) > max(took / 2, 0.001):
                self._offset = seen


def new_id() -> UUID:
    """A run's or a replica's id: UUIDv7, so ids sort by the time they were made and cannot be guessed."""
    return uuid7()
