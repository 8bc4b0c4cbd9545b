"""Keeps this replica's plan and the database's in step: whose file is in force, and what that means for our jobs."""

from __future__ import annotations

import threading
from collections.abc import Callable

from scheduler.core.errors import SoloistError
from scheduler.core.events import JobPlanned, PlanChanged
from scheduler.runner.plan import PlanInForce
from scheduler.runner.room import Room
from scheduler.runner.ticker import Ticker
from scheduler.store import jobs as store_jobs
from scheduler.store.apply import Applied
from scheduler.store.engine import Session
from scheduler.store.replicas import Pulse


class Follower:
    """`pulse` is the keeper's to call, all else belongs to the ticker's thread (and to the start, before it runs).

    Applying may have to wait for locks, and the keeper must never wait: it only leaves word. `wake`: the ticker's.
    """

    def __init__(self, room: Room, plan: PlanInForce, ticker: Ticker, session: Session) -> None:
        self._room, self._plan, self._ticker, self._session = room, plan, ticker, session
        self._in_force: int | None = None
        self._outdated, self._stale = threading.Event(), threading.Event()
        self._generation = 0
        self.apply: Callable[[], Applied]
        self.cut: Callable[[], None] = lambda: None
        self.migrate: Callable[[], object] = lambda: None
        self.wake: Callable[[], None] = lambda: None

    def pulse(self, pulse: Pulse | None) -> None:
        """What a heartbeat learned: this replica's rank, and whether its file is (again) the one in force."""
        if pulse is None:
            self._in_force = None
            self._outdated.set()
        else:
            self._ticker.rank, self._ticker.live = pulse.rank, pulse.live
            # a newer file may have come and gone between two heartbeats: its changes are all that is left of it
            if pulse.in_force != self._in_force or (pulse.newest or 0) > pulse.in_force:
                self._in_force = pulse.in_force
                self._outdated.set()
            elif self._plan.any_at_rest():
                # a pause may have ended, or somebody have put an older file in force while we were silent: nothing
                # tells us but the jobs' rows
                self._stale.set()
        if self._outdated.is_set() or self._stale.is_set():
            self.wake()

    def follow(self) -> None:
        """Do what the heartbeats left word of. Raises ContactLost."""
        if self._outdated.is_set():
            self._outdated.clear()
            try:
                self.take()
            except SoloistError:
                self._in_force = None  # the next heartbeat tries again
        elif self._stale.is_set():
            self._stale.clear()
            known = store_jobs.read_jobs(self._session)
            self._plan.swap(known, self._plan.generation)
            if self._in_force == self._generation and self._plan.differs_from(known):
                self._outdated.set()
                self.follow()

    def start(self) -> None:
        """Bring the schema up to date, and put our file in force. Raises SoloistError."""
        self.migrate()
        self.take()

    def take(self) -> None:
        """Put our file in force, unless a newer one is, and plan by what the database says. Raises SoloistError."""
        applied = self.apply()
        self._generation = applied.generation
        self._in_force = applied.generation if applied.in_force else self._in_force
        self._plan.swap(store_jobs.read_jobs(self._session), applied.generation)
        if applied.added or applied.changed or applied.removed:
            self._room.bus.publish(
                PlanChanged(
                    replica=self._room.owner.name,
                    added=applied.added,
                    changed=applied.changed,
                    removed=applied.removed,
                )
            )

    def say(self) -> None:
        """Each job's next tick, and how its last run stands."""
        planned, now = self._plan.jobs(), self._room.clock.now()
        last = {run.job: run for run in store_jobs.last_runs(self._session, list(planned))}
        for job in sorted(planned.values(), key=lambda job: job.spec.name):
            run = last.get(job.spec.name)
            self._room.bus.publish(
                JobPlanned(
                    replica=self._room.owner.name,
                    job=job.spec.name,
                    next_tick=job.next,
                    due=job.next is not None and job.next <= now,
                    last_run_key=run.run_key if run else None,
                    last_status=run.status if run else None,
                    last_replica=run.replica if run else None,
                    last_finished_at=run.finished_at if run else None,
                )
            )
