"""Keeps this replica's plan and the database's in step: whose file is in force, what an edit means, who is paused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

from scheduler.core.errors import SoloistError
from scheduler.core.events import JobPlanned, PlanChanged, PlanDelayed
from scheduler.core.model import JobSpec
from scheduler.runner.clock import new_id
from scheduler.runner.edits import Edited, Former, say_edit
from scheduler.runner.news import News
from scheduler.runner.plan import PlanInForce
from scheduler.runner.reloader import Reloader
from scheduler.runner.room import LONGEST_WAIT, Room
from scheduler.runner.ticker import Ticker
from scheduler.store import jobs as store_jobs
from scheduler.store import pauses, replicas
from scheduler.store.apply import Applied
from scheduler.store.engine import Blocked, ContactLost, Session
from scheduler.store.replicas import Pulse


class Follower:
    """`pulse`, `look_soon` and `reload` leave word, from any thread; `step` does it, in a thread of its own: it may
    have to wait for locks, and neither ticks nor renewals must. (`start` is called before there are threads.)

    `reloader`: where the file is watched. `wake`: this thread's; `changed`: called when the plan was swapped.
    """

    def __init__(self, room: Room, plan: PlanInForce, ticker: Ticker, session: Session) -> None:
        self._room, self._plan, self._ticker, self._session = room, plan, ticker, session
        self._in_force: int | None = None
        self._outdated, self._stale = threading.Event(), threading.Event()
        self._edit: Edited | None = None
        self._news = News(room)
        self._delay: str | None = None  # why a sound edit is not in force yet
        self._noted: str | None = None  # what the database has been told of our file
        self._making: Callable[[], AbstractContextManager[None]] = nullcontext
        self.tzdata = ""
        self.retention: Mapping[str, float] = {}  # as the file has it that this replica works by
        self.reloader: Reloader | None = None
        self.apply: Callable[[], Applied]
        self.offer: Callable[[Edited, int], None] = lambda _edit, _after: None
        self.cut: Callable[[], None] = lambda: None
        self.migrate: Callable[[], object] = lambda: None
        self.wake: Callable[[], None] = lambda: None
        self.changed: Callable[[], None] = lambda: None

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

    def look_soon(self) -> None:
        """Jobs were changed, paused or resumed, or a failover has forgotten where they were: read them."""
        self._stale.set()
        self.wake()

    def reload(self) -> None:
        """Look at the file now, changed or not."""
        if self.reloader is not None:
            self.reloader.ask()

    def step(self) -> float:
        """Take an edit, and see what the database says; returns seconds to the next look. Raises ContactLost."""
        reloader = self.reloader
        if reloader is not None and (edit := reloader.edit()) is not None:
            self._edit = edit
            self.offer(edit, self._plan.generation)
            self._outdated.set()
        wait = self.follow()
        if reloader is not None and (problem := reloader.trouble() or self._delay) != self._noted:
            replicas.note_problem(self._session, self._room.owner.id, problem)
            self._noted = problem
        return wait

    def follow(self) -> float:
        """Do what was left word of; returns seconds until there may be something by itself. Raises ContactLost."""
        if self._outdated.is_set():
            self._outdated.clear()
            try:
                self.take()
            except SoloistError as error:
                self._in_force = None  # the next heartbeat tries again
                if self._edit is not None:
                    self._outdated.set()
                    self._put_off(self._edit, str(error))
                    return 1.0
        elif self._stale.is_set():
            self._stale.clear()
            try:
                self._read()
            except (ContactLost, Blocked):
                self._stale.set()
                raise
        return self._end_pauses()

    def _put_off(self, edit: Edited, error: str) -> None:
        """An edit that is tried again and again is told of once."""
        if self._delay is None:
            self._room.bus.publish(PlanDelayed(replica=self._room.owner.name, file=edit.file, error=error))
        self._delay = f"{edit.file} is in order, but cannot be put in force yet: {error[:400]}"

    def _read(self) -> None:
        known = self._swap(self._plan.generation)
        if self._in_force == self._plan.generation and self._plan.differs_from(known):
            self._outdated.set()
            self.follow()

    def _end_pauses(self) -> float:
        """Resume the jobs whose pause is over; returns seconds to the next one that ends."""
        until = self._plan.resumes_at
        if until is None:
            return LONGEST_WAIT
        left = (until - self._room.clock.now()).total_seconds()
        if left <= 0:
            self._news.resumed(pauses.end_pauses(self._session, new_id))
            self._swap(self._plan.generation)
            left = 0.1  # where another replica is at it, or its clock is right and ours is early
        return min(left, LONGEST_WAIT)

    def make_by(self, making: Callable[[], AbstractContextManager[None]]) -> None:
        """`making` is entered wherever a plan is made of an edit."""
        self._making = making
        if self.reloader is not None:
            self.reloader.making = making

    def start(self) -> None:
        """Bring the schema up to date, and put our file in force. Raises SoloistError."""
        self.migrate()
        self.take()

    def take(self) -> None:
        """Put our file in force, unless a newer one is, and plan by what the database says. Raises SoloistError."""
        with nullcontext() if self._edit is None else self._making():
            self._take(self._edit)

    def _take(self, edit: Edited | None) -> None:
        applied = self.apply()
        self._in_force = applied.generation if applied.in_force else self._in_force
        before = Former(self._plan.specs, self.retention)
        self._swap(applied.generation, None if edit is None else edit.jobs)
        if edit is not None:
            self._edit = self._delay = None
            self.retention = edit.retention
            say_edit(self._room, self._plan, edit, before, applied)
        elif applied.added or applied.changed or applied.removed:
            self._room.bus.publish(
                PlanChanged(
                    replica=self._room.owner.name,
                    added=applied.added,
                    changed=applied.changed,
                    removed=applied.removed,
                )
            )
        self._news.standing(applied, told=edit is not None)
        self._news.zones(self.tzdata, applied.tzdata)

    def _swap(self, generation: int, specs: tuple[JobSpec, ...] | None = None) -> tuple[store_jobs.KnownJob, ...]:
        """Plan by what the database says now; returns that."""
        stood = self._plan.watermarks()
        known = store_jobs.read_jobs(self._session)
        self._plan.swap(known, generation, specs, stood)
        self._news.pauses(known, self._plan.specs)
        self._news.sick(self._plan.jobs().values())
        self.changed()
        return known

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
                    no_tick=job.no_tick,
                    due=job.next is not None and job.next <= now,
                    last_run_key=run.run_key if run else None,
                    last_status=run.status if run else None,
                    last_replica=run.replica if run else None,
                    last_finished_at=run.finished_at if run else None,
                )
            )
