"""LISTEN as a hint: it makes queued work start at once. The truth is what the sweeper's look finds."""

from __future__ import annotations

import os
import select
from contextlib import suppress

from scheduler.store.engine import Session

LISTEN = "LISTEN soloist"


class Wakeup:
    """Waits for a notification on a session, or for a word from another thread. One waiter, any number of wakers."""

    def __init__(self, session: Session) -> None:
        self._session = session
        session.greet_with(LISTEN)
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def wake(self) -> None:
        """End the present wait, or the next one at once."""
        with suppress(BlockingIOError):  # the pipe is full of wakes already
            os.write(self._write, b"w")

    def wait(self, seconds: float | None) -> None:
        """Return when woken, notified, or out of time (None: only then when woken or notified)."""
        if self._session.notified():  # one that came in beside the answer of a statement
            return
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        socket = self._session.fileno()
        if socket is not None:
            poll.register(socket, select.POLLIN)
        ready = poll.poll(None if seconds is None else max(0.0, seconds) * 1000)
        if any(number == self._read for number, _ in ready):
            with suppress(BlockingIOError):
                os.read(self._read, 4096)
        if any(number == socket for number, _ in ready):
            self._session.notified()

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._read)
        os.close(self._write)
