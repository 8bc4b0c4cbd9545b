"""APScheduler as the alarm clock, never the calendar: it says when to wake, and nothing about what is due.

Its own cron trigger is not used: measured in 3.11.3, `0 3 * * 0` fires on Monday, both day fields are ANDed, and at the
start of daylight saving it yields a wall time that does not exist. One entry stands for the whole plan, so all due
ticks arrive as one batch and 10,000 jobs cost what one does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from apscheduler.executors.base import BaseExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

ENTRY = "next-tick"


class NextTick(BaseTrigger):  # type: ignore[misc]
    """Fires at the plan's next tick, by whatever the machine's clock will show then."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:  # noqa: ARG002
        """The one instant; after it the entry is gone until it is set again."""
        return self._at if previous_fire_time is None else None


class _HandOver(BaseExecutor):  # type: ignore[misc]
    """Runs nothing: tells the ticker, in the alarm's own thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        super().__init__()
        self._wake = wake

    def _do_submit_job(self, job: Any, run_times: list[datetime]) -> None:  # noqa: ARG002
        self._wake()
        self._run_job_success(job.id, [])


class Alarm:
    """Calls `wake` when the instant that was set has come."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._scheduler = BackgroundScheduler(
            jobstores={"default": MemoryJobStore()}, executors={"default": _HandOver(wake)}, timezone=UTC
        )
        self._set_to: datetime | None = None

    def start(self) -> None:
        """Start its thread."""
        self._scheduler.start()

    def set(self, at: datetime | None) -> None:
        """Wake at this instant of the machine's clock and at no other. None: at none."""
        if at is None:
            if self._scheduler.get_job(ENTRY) is not None:
                self._scheduler.remove_job(ENTRY)
            return
        self._scheduler.add_job(
            self._wake,
            NextTick(at),
            id=ENTRY,
            replace_existing=True,
            misfire_grace_time=None,  # it must never drop a wake-up: what is late is ours to judge
            coalesce=True,
        )

    def stop(self) -> None:
        """End its thread."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)
