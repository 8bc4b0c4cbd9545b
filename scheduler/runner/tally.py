"""Counts of what should be rare: it is kept with the replica's row, so that somebody can ask for it later."""

from __future__ import annotations

import threading
from collections import Counter

from scheduler.core.events import Event, LeaseLostEvent, RunTakenOver, WriteFenced
from scheduler.store.replicas import Counts


class Tally:
    """Listens to the bus for the events it `COUNTS`; `counts` may be asked from any thread."""

    COUNTS = (WriteFenced, LeaseLostEvent, RunTakenOver)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: Counter[type[Event]] = Counter()

    def __call__(self, event: Event) -> None:
        """Count the event."""
        with self._lock:
            self._seen[type(event)] += 1

    def counts(self) -> Counts:
        """What has been seen so far."""
        with self._lock:
            return Counts(self._seen[WriteFenced], self._seen[LeaseLostEvent], self._seen[RunTakenOver])
