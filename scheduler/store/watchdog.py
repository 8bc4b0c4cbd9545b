"""Deadlines for database calls, enforced from this side of the socket.

Behind a stalled proxy neither `statement_timeout` nor TCP keepalives end a call (measured: all hung over 12 s), so a
thread shuts the socket down.
"""

from __future__ import annotations

import heapq
import itertools
import os
import socket
import threading
from contextlib import suppress
from typing import Any

import psycopg

from scheduler.core.clock import Clock


class Watchdog:
    """Shuts down the socket of a call that is past its deadline. One thread for a process, started at first use."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Condition()
        self._calls: dict[int, psycopg.Connection[Any]] = {}
        self._deadlines: list[tuple[float, int]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def begin(self, connection: psycopg.Connection[Any], seconds: float) -> int:
        """Watch a call; returns its number for `end`."""
        with self._lock:
            number = next(self._numbers)
            self._calls[number] = connection
            heapq.heappush(self._deadlines, (self._clock.boottime() + seconds, number))
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
                self._thread.start()
            elif self._deadlines[0][1] == number:
                self._lock.notify()
            return number

    def end(self, number: int) -> None:
        """The call came back. Under the lock, so that the descriptor shut is never somebody else's."""
        with self._lock:
            self._calls.pop(number, None)

    def _watch(self) -> None:
        with self._lock:
            while True:
                while self._deadlines and self._deadlines[0][1] not in self._calls:
                    heapq.heappop(self._deadlines)
                if not self._deadlines:
                    self._lock.wait()
                    continue
                left = self._deadlines[0][0] - self._clock.boottime()
                if left > 0:
                    self._lock.wait(left)
                    continue
                _, number = heapq.heappop(self._deadlines)
                shut(self._calls.pop(number))


def shut(connection: psycopg.Connection[Any]) -> None:
    """End whatever waits on this connection's socket, in any thread."""
    with suppress(OSError, psycopg.Error):
        twin = socket.socket(fileno=os.dup(connection.fileno()))
        try:
            twin.shutdown(socket.SHUT_RDWR)
        finally:
            twin.close()
