"""Warm children on demand: hand them out, take them back, replace the worn and the spoiled, and a dead zygote."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from pathlib import Path

from scheduler.core.errors import SoloistError
from scheduler.pool import linux
from scheduler.pool.door import DATABASE_URL
from scheduler.pool.leash import Leash
from scheduler.pool.nursery import Nursery, NurseryGone
from scheduler.pool.words import boottime

_ALWAYS = ("scheduler.config.callables", "scheduler.config.arguments", "scheduler.config.secrets")
_WITH_DATABASE = ("psycopg", "sqlalchemy", "scheduler.store.transaction")
_TRIES = 3

_IDLE_NS = 60_000_000_000  # how long a child without work is kept: the next one is born in milliseconds

logger = logging.getLogger("soloist.pool")


class PoolClosed(Exception):
    """The pool is closed: it has no children to give."""


class Pool:
    """As many children as bodies run at the same time; idle ones are kept.

    `root`: the folder in which callables are found. `preload`: modules that every child finds imported already.
    `seats`: how many bodies may run at once. `max_runs`: after that many bodies a child is replaced.
    Raises SoloistError on other systems than Linux.
    """

    def __init__(
        self,
        root: Path,
        *,
        database_url: str | None = None,
        preload: tuple[str, ...] = (),
        seats: int = 16,
        max_runs: int = 1000,
    ) -> None:
        linux.require_linux()
        self._root = root
        self._url = database_url
        self._preload = [*_ALWAYS, *(_WITH_DATABASE if database_url else ()), *preload]
        self._slots = 2 * seats + 8  # children on their way out hold theirs for a moment
        self._max_runs = max_runs
        self._lock = threading.Lock()
        self._nursery: Nursery | None = None
        self._idle: list[Leash] = []
        self._homes: dict[Leash, Nursery] = {}
        self._closed = False
        self._session: tuple[int, float] | None = None

    def warm(self) -> None:
        """Start the zygote, without waiting for it: its imports take longer than a body may be late."""
        with self._lock, suppress(PoolClosed, OSError):  # a first body says what is wrong
            self._present_nursery()

    def tidy(self) -> None:
        """Let children go that have had no work for a while."""
        now = boottime()
        with self._lock:
            for leash in [leash for leash in self._idle if now - leash.idle_since > _IDLE_NS]:
                self._idle.remove(leash)
                self._part(leash, 0.0)

    def watch(self, session: int, interval: float) -> None:
        """From the end of this session (a socket's descriptor, copied) all bodies have `interval` seconds to live,
        unless another session or `lift` comes first. The zygote keeps that: also while the replica is frozen."""
        with self._lock:
            self._forget_session()
            self._session = os.dup(session), interval
            if self._nursery is not None:
                self._nursery.watch(*self._session)

    def lift(self) -> None:
        """The end of the session that is watched means nothing after all."""
        with self._lock:
            if self._nursery is not None:
                self._nursery.lift()

    def _forget_session(self) -> None:
        if self._session is not None:
            os.close(self._session[0])
            self._session = None

    @property
    def skipped(self) -> dict[str, str]:
        """Modules that could not be preloaded, and why; empty until the first child lives."""
        return {} if self._nursery is None else dict(self._nursery.skipped)

    @property
    def zygote(self) -> int | None:
        """The zygote's pid, once there is one."""
        return None if self._nursery is None else self._nursery.pid

    def obtain(self) -> Leash:
        """A living child with nothing to do; may wait for its birth. Raises PoolClosed, SoloistError if none lives."""
        try:
            for _ in range(_TRIES):
                leash = self._idle_child() or self._new_child()
                if leash is not None:
                    return leash
        except OSError as error:
            raise SoloistError(f"no child process could be started: {error}") from None
        with self._lock:
            if self._closed:
                raise PoolClosed
        raise SoloistError(
            f"no child process could be started in {_TRIES} tries: what they said is in the replica's stderr"
        )

    def give_back(self, leash: Leash) -> None:
        """A child that did its work and left nothing behind."""
        with self._lock:
            if leash.death is None and leash.runs < self._max_runs and not self._closed:
                leash.idle_since = boottime()
                self._idle.append(leash)
                return
            self._part(leash, 0.0)

    def discard(self, leash: Leash, wait: float = 0.0) -> None:
        """Kill a child and all it left behind; waits for that up to `wait` seconds."""
        with self._lock:
            home = self._homes.pop(leash)
        home.discard(leash, wait)

    def close(self) -> None:
        """All children and the zygote are gone when this returns. Bodies at work end with them."""
        with self._lock:
            self._closed = True
            self._forget_session()
            nursery, self._nursery = self._nursery, None
            idle, self._idle = self._idle, []
        if nursery is not None:
            nursery.close()
        for leash in idle:
            self.discard(leash)

    def _idle_child(self) -> Leash | None:
        with self._lock:
            while self._idle:
                leash = self._idle.pop()
                if leash.death is None:
                    return leash
                self._part(leash, 0.0)
        return None

    def _new_child(self) -> Leash | None:
        """None: it died at once. Raises PoolClosed, SoloistError, OSError."""
        with self._lock:
            nursery = self._present_nursery()
        try:
            leash = nursery.fork()
        except NurseryGone:
            return None
        with self._lock:
            self._homes[leash] = nursery
        if leash.death is None:
            return leash
        why = leash.death.why or ""
        self.discard(leash)
        if why.startswith("fork"):
            raise SoloistError(f"no child process could be started: {why}")
        return None

    def _part(self, leash: Leash, wait: float) -> None:
        self._homes.pop(leash).discard(leash, wait)

    def _present_nursery(self) -> Nursery:
        """The living one; a new one after a death. Holds the lock."""
        if self._closed:
            raise PoolClosed
        if self._nursery is None or not self._nursery.alive:
            if self._nursery is not None:
                logger.warning("the zygote (pid %d) died; a new one is started", self._nursery.pid)
                self._nursery.close()
            environment = dict(os.environ)
            if self._url:
                environment[DATABASE_URL] = self._url
            self._nursery = Nursery(self._root, environment, self._preload, self._slots)
            if self._session is not None:
                self._nursery.watch(*self._session)
        return self._nursery
