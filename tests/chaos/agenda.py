"""What is to be done when, in one thread: so that a storm's steps never meet each other halfway."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from threading import Event

LOOK = 0.05  # seconds between two looks at something that is awaited


class Agenda:
    """`after` and `when` may also be called by what is being done."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self._pause = Event()

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        """Act in so many seconds."""
        heapq.heappush(self._entries, (time.monotonic() + seconds, next(self._numbers), act))

    def when(self, fact: Callable[[], bool], act: Callable[[], object]) -> None:
        """Act as soon as the fact is true."""
        self.after(LOOK, lambda: act() if fact() else self.when(fact, act))

    def follow(self) -> None:
        """Do it all; returns when nothing is left to do."""
        while self._entries:
            at, _, act = heapq.heappop(self._entries)
            self._pause.wait(max(0.0, at - time.monotonic()))
            act()
