"""The clock as the rest of the house sees it. Its one implementation is `runner/clock.py`."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Two times that must not be mixed: the calendar's (may jump) and the stopwatch's (never does)."""

    def now(self) -> datetime:
        """The instant, aware, UTC, corrected by the offset to the database's clock that was measured last."""

    def boottime(self) -> float:
        """Seconds of CLOCK_BOOTTIME: monotonic, and it goes on while the machine is suspended."""
