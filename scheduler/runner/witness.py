"""Remembers what the database acknowledged to this replica, and asks after it when a session had to be made anew.

After a failover to a standby that lacked the last commits, a tick that was claimed, or even done, looks free again and
is run twice. Nothing here can undo that; but it must not pass in silence.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from scheduler.core.events import AttemptEnded, AttemptStarted, CommitForgotten, Event
from scheduler.core.model import TERMINAL, Status
from scheduler.runner.room import Room
from scheduler.store import runs
from scheduler.store.engine import Session
from scheduler.store.runs import Witnessed

RECALL = 600.0  # seconds: no standby that may still be promoted should be further behind
MOST = 20_000  # acknowledgements: of each run two


class Seen(NamedTuple):
    """An acknowledgement, at this CLOCK_BOOTTIME. The event itself may hold a long output."""

    at: float
    run_id: UUID
    attempt: int
    status: Status
    job: str
    run_key: str
    scheduled_at: datetime | None
    trace_id: str | None


class Witness:
    """Listens to the bus in any thread for what it `REMEMBERS`; `ask` belongs to the keeper's."""

    REMEMBERS = (AttemptStarted, AttemptEnded)

    def __init__(self, room: Room) -> None:
        self._room = room
        self._seen: deque[Seen] = deque(maxlen=MOST)  # its `append` and `copy` need no lock
        self._said: dict[UUID, Seen] = {}  # what was said to be forgotten, until this replica has the run anew

    def __call__(self, event: Event) -> None:
        """Remember a claim whose body begins here, and an outcome that is written."""
        assert isinstance(event, AttemptStarted | AttemptEnded)
        if event.run_id is not None:
            status = event.status if isinstance(event, AttemptEnded) else Status.RUNNING
            now = self._room.clock.boottime()
            self._seen.append(
                Seen(
                    now,
                    event.run_id,
                    event.attempt,
                    status,
                    event.job,
                    event.run_key,
                    event.scheduled_at,
                    event.trace_id,
                )
            )

    def ask(self, session: Session) -> None:
        """Does the database still know all of it? Says what it has forgotten, once. Raises ContactLost."""
        since = self._room.clock.boottime() - RECALL
        latest = {seen.run_id: seen for seen in self._seen.copy() if seen.at >= since}
        self._said = {id_: seen for id_, seen in self._said.items() if latest.get(id_) is seen}
        asked = [id_ for id_ in latest if id_ not in self._said]
        if not asked:
            return
        there = runs.witness(session, asked)
        for id_ in asked:
            if _forgotten(latest[id_], there.get(id_)):
                self._said[id_] = latest[id_]
                self._say(latest[id_])

    def _say(self, seen: Seen) -> None:
        self._room.bus.publish(
            CommitForgotten(
                replica=self._room.owner.name,
                job=seen.job,
                run_key=seen.run_key,
                run_id=seen.run_id,
                attempt=seen.attempt,
                scheduled_at=seen.scheduled_at,
                trace_id=seen.trace_id,
                status=seen.status,
            )
        )


def _forgotten(seen: Seen, now: Witnessed | None) -> bool:
    """A fence never goes back, and terminal states never change: where they did, a commit is gone."""
    if now is None or now.attempt < seen.attempt:
        return True
    return seen.status in TERMINAL and now.status is not seen.status
