"""Remembers what the database acknowledged to this replica, and asks after it when a session had to be made anew.

After a failover to a standby that lacked the last commits, a tick that was claimed, or even done, looks free again and
is run twice. Nothing here can undo that; but it must not pass in silence.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from uuid import UUID

from scheduler.core.events import AttemptEnded, AttemptStarted, CommitForgotten, Event
from scheduler.core.model import TERMINAL, Status
from scheduler.runner.room import Room
from scheduler.store import runs
from scheduler.store.engine import Session
from scheduler.store.runs import Witnessed

RECALL = 600.0  # seconds: no standby that may still be promoted should be further behind
MOST = 10_000  # runs


class Witness:
    """Listens to the bus in any thread; `ask` belongs to the keeper's."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._seen: OrderedDict[UUID, tuple[float, AttemptStarted | AttemptEnded]] = OrderedDict()

    def __call__(self, event: Event) -> None:
        """Remember a claim whose body begins here, and an outcome that is written."""
        if isinstance(event, AttemptStarted | AttemptEnded) and event.run_id is not None:
            now = self._room.clock.boottime()
            with self._lock:
                self._seen[event.run_id] = now, event
                self._seen.move_to_end(event.run_id)
                while len(self._seen) > MOST or now - next(iter(self._seen.values()))[0] > RECALL:
                    self._seen.popitem(last=False)

    def ask(self, session: Session) -> None:
        """Does the database still know all of it? Says what it has forgotten, once. Raises ContactLost."""
        with self._lock:
            seen = {id_: event for id_, (_, event) in self._seen.items()}
        if not seen:
            return
        there = runs.witness(session, list(seen))
        for id_, event in seen.items():
            if _forgotten(event, there.get(id_)):
                self._say(event)
                with self._lock:
                    self._seen.pop(id_, None)

    def _say(self, event: AttemptStarted | AttemptEnded) -> None:
        self._room.bus.publish(
            CommitForgotten(
                replica=self._room.owner.name,
                job=event.job,
                run_key=event.run_key,
                run_id=event.run_id,
                attempt=event.attempt,
                scheduled_at=event.scheduled_at,
                trace_id=event.trace_id,
                status=_status(event),
            )
        )


def _status(event: AttemptStarted | AttemptEnded) -> Status:
    return event.status if isinstance(event, AttemptEnded) else Status.RUNNING


def _forgotten(event: AttemptStarted | AttemptEnded, now: Witnessed | None) -> bool:
    """A fence never goes back, and terminal states never change: where they did, a commit is gone."""
    if now is None or now.attempt < event.attempt:
        return True
    status = _status(event)
    return status in TERMINAL and now.status is not status
