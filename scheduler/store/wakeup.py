"""LISTEN as a hint: it makes queued work start at once. The truth is what the sweeper's look finds.

It lives on the dedicated session, so whoever waits here also notices the end of that session at once.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from contextlib import suppress

from scheduler.core.clock import Clock
from scheduler.store.engine import Session

LISTEN = "LISTEN soloist"
PLAN = "plan"  # the word for: jobs were changed, paused or resumed. Any other: something is queued


class Wakeup:
    """Waits for a word from another thread or the end of the session. One waiter, any number of wakers.

    `notified` is called with the words of each batch of notifications, which do not end the wait.
    """

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session, self._clock = session, clock
        self.notified: Callable[[frozenset[str]], None] = lambda _words: None
        session.greet_with(LISTEN)
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def wake(self) -> None:
        """End the present wait, or the next one at once."""
        with suppress(BlockingIOError):  # the pipe is full of wakes already
            os.write(self._write, b"w")

    def wait(self, seconds: float | None) -> None:
        """Return when woken, out of time, or when the session has ended (None: only then)."""
        end = None if seconds is None else self._clock.boottime() + seconds
        began_connected = self._session.connected
        while True:
            if words := self._session.notified():  # also those that came in beside the answer of a statement
                self.notified(words)
            if began_connected and not self._session.connected:
                return
            left = None if end is None else end - self._clock.boottime()
            if left is not None and left <= 0:
                return
            if self._woken(left):
                return

    def _woken(self, seconds: float | None) -> bool:
        """Wait for either; whether it was a waker."""
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        socket = self._session.fileno()
        if socket is not None:
            poll.register(socket, select.POLLIN)
        ready = {number for number, _ in poll.poll(None if seconds is None else seconds * 1000)}
        if self._read not in ready:
            return False
        with suppress(BlockingIOError):
            os.read(self._read, 4096)
        return True

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._read)
        os.close(self._write)
