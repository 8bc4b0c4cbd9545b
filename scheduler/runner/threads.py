"""Threads for seats: started as work needs them, kept for the next, and never in the way of the process's end."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Threads:
    """At most `most` threads that do what is given to `submit`, first come first served.

    One thread is on its way to the work at a time, woken or started; having taken its first work, it brings the next
    one while more waits. So whoever submits a herd is not held up by hundreds of threads, and bodies that take
    microseconds are done by a few: to hand work to another thread costs more than they do. The last to fall idle is the
    first to be woken.
    Daemons: a body that never ends must not keep the process.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._lock = threading.Lock()
        self._work: deque[Callable[[], None]] = deque()
        self._idle: list[threading.Lock] = []  # the beds of idle threads, each locked by its own until it is woken
        self._threads = 0
        self._coming = self._closed = False

    def submit(self, *work: Callable[[], None]) -> None:
        """Have each `work` done soon. It must not raise."""
        with self._lock:
            self._work.extend(work)
            bring = self._who_comes()
        if bring is not None:
            bring()

    def close(self) -> None:
        """Threads end when they have nothing left to do."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for bed in idle:
            bed.release()

    def _who_comes(self) -> Callable[[], None] | None:
        """How to bring one more thread, if work waits and none is on its way. Holds the lock."""
        if self._coming or not self._work:
            return None
        if self._idle:
            self._coming = True
            return self._idle.pop().release
        if self._threads < self._most:
            self._coming = True
            self._threads += 1
            return self._start
        return None

    def _start(self) -> None:
        try:
            threading.Thread(target=self._live, name=f"{self._name}-{self._threads}", daemon=True).start()
        except RuntimeError:  # the system gives no thread: those that are there go on, and the next work tries again
            with self._lock:
                self._threads -= 1
                self._coming = False
                if self._threads == 0:
                    raise

    def _live(self) -> None:
        bed = threading.Lock()
        bed.acquire()
        came = True
        while (work := self._take(bed, came)) is not None:
            came = False
            work()

    def _take(self, bed: threading.Lock, came: bool) -> Callable[[], None] | None:
        """The next work; None: the end. `came`: this thread was on its way to it."""
        while True:
            with self._lock:
                if came:
                    self._coming = False
                if self._work:
                    work = self._work.popleft()
                    bring = self._who_comes()
                    break
                if self._closed:
                    self._threads -= 1
                    return None
                self._idle.append(bed)
            bed.acquire()
            came = True
        if bring is not None:
            bring()
        return work
