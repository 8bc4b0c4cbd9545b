"""Threads for seats: started as work needs them, kept for the next, and never in the way of the process's end."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Threads:
    """At most `most` threads that do what is given to `submit`, first come first served.

    One thread is being started at a time; having taken its first work, it starts the next while more waits. So whoever
    submits a herd is not held up by hundreds of thread starts, and bodies that take microseconds are done by a few.
    Daemons: a body that never ends must not keep the process.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._changed = threading.Condition()
        self._work: deque[Callable[[], None]] = deque()
        self._threads = self._idle = 0
        self._starting = self._closed = False

    def submit(self, work: Callable[[], None]) -> None:
        """Have `work` done soon. It must not raise."""
        with self._changed:
            self._work.append(work)
            if self._idle:
                self._changed.notify()
            if not self._may_grow():
                return
            self._starting = True
        self._start()

    def close(self) -> None:
        """Threads end when they have nothing left to do."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _may_grow(self) -> bool:
        """Whether more work waits than idle threads, woken ones included, will take."""
        return len(self._work) > self._idle and self._threads < self._most and not self._starting

    def _start(self) -> None:
        with self._changed:
            self._threads += 1
            number = self._threads
        try:
            threading.Thread(target=self._live, name=f"{self._name}-{number}", daemon=True).start()
        except RuntimeError:  # the system gives no thread: those that are there go on, and the next work tries again
            with self._changed:
                self._threads -= 1
                self._starting = False
                if self._threads == 0:
                    raise

    def _live(self) -> None:
        fresh = True
        while (work := self._take(fresh)) is not None:
            fresh = False
            work()

    def _take(self, fresh: bool) -> Callable[[], None] | None:
        """The next work; None: the end. A fresh thread passes the start on to the next one, if there is need."""
        with self._changed:
            if fresh:
                self._starting = False
            while not self._work:
                if self._closed:
                    self._threads -= 1
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
            work = self._work.popleft()
            grow = self._may_grow()
            self._starting = self._starting or grow
        if grow:
            self._start()
        return work
