"""One run in this process, under the same guard: what a CronJob's pod calls. It takes no other work."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from scheduler.core.model import Claim, JobSpec, Status, Trigger, first_claim
from scheduler.core.policy import reconnect_wait, trust_window
from scheduler.core.schedule import run_key, tick_key
from scheduler.runner.clock import new_id
from scheduler.runner.seats import Held
from scheduler.runner.service import Parts, Service
from scheduler.store import claims
from scheduler.store.claims import Created, Request
from scheduler.store.engine import Blocked, ContactLost, Session

Answer = TypeVar("Answer")

POLL = 0.5  # seconds between two looks at a run that waits for its next try
EXIT_CODES = {
    Status.SUCCEEDED: 0,
    Status.SKIPPED: 0,
    Status.FAILED: 1,
    Status.LOST: 1,
    Status.CANCELLED: 6,
    Status.TIMED_OUT: 7,
}
ANOTHER_HAS_IT = 5
STOPPED = 1


@dataclass(frozen=True, slots=True)
class Tick:
    """A job and the instant it is run for. The run key is the one that a replica's own tick would have: the same row
    guards both. `force`: also while the job is paused."""

    spec: JobSpec
    at: datetime
    run_key: str
    tick_key: str
    force: bool = False


def tick_of(spec: JobSpec, at: datetime, force: bool = False) -> Tick:
    """The tick of a scheduled job at `at`, which must be one of its ticks."""
    assert spec.schedule is not None
    key = run_key(spec.schedule, at, spec.once_per, spec.timezone)
    return Tick(spec, at, key, tick_key(spec.schedule, at), force)


class Single:
    """Executes one run and its retries. `say`: told in a sentence what happened, for a person's eyes."""

    def __init__(self, service: Service, parts: Parts, say: Callable[[str], None]) -> None:
        self._service, self._parts, self._say = service, parts, say
        self._session: Session = parts.sessions["worker"]

    def stop(self) -> None:
        """Hand the run back and end."""
        self._service.stop()

    def run(self, tick: Tick) -> int:
        """Run it, unless somebody has; returns the exit code. Raises SoloistError when it cannot start."""
        self._service.start()
        try:
            return self._run(tick)
        finally:
            self._service.drain()

    def _run(self, tick: Tick) -> int:
        sent = self._parts.room.clock.boottime()
        request = Request(
            id=new_id(),
            job=tick.spec.name,
            run_key=tick.run_key,
            tick_key=tick.tick_key,
            scheduled_at=tick.at,
            trigger=Trigger.CRONJOB,
            triggered_by=self._parts.room.owner.name,
            if_blocked=Status.SKIPPED,
            heeds_pause=not tick.force,
        )
        created = self._create(request)
        if created.pause is not None:
            self._say(f"{tick.spec.name} {tick.run_key}: not run, the job is paused {created.pause}")
            return EXIT_CODES[Status.SKIPPED]
        if created.fresh and created.status is Status.RUNNING:
            self._attend(tick, first_claim(tick.spec, created.id, tick.run_key, tick.at, Trigger.CRONJOB), sent)
        elif created.fresh and created.status is Status.SKIPPED:
            self._say(f"{tick.spec.name} {tick.run_key}: skipped, another run of this job is active")
            return ANOTHER_HAS_IT
        return self._see_through(tick, created)

    def _create(self, request: Request) -> Created:
        """Make the run; one whose answer was lost is known as ours by its id."""
        return self._answer(lambda: claims.create_run(self._session, request, self._parts.room.owner))

    def _dequeue(self, run_id: UUID) -> Claim | None:
        """Take the run if it is ready. One that an answer was lost of is ours already."""
        asked = False

        def ask() -> Claim | None:
            nonlocal asked
            lost, asked = asked, True
            taken = claims.dequeue_one(self._session, self._parts.room.owner, run_id)
            if taken is not None or not lost:
                return taken
            mine = claims.read_mine(self._session, self._parts.room.owner)
            return next((one.claim for one in mine if one.claim.id == run_id), None)

        return self._answer(ask)

    def _answer(self, ask: Callable[[], Answer]) -> Answer:
        """Ask until there is an answer: this process has no sweeper that would find what a lost one has left lying.

        Blocked: what was lost may still be at its commit. Raises these when no answer comes for half a lease.
        """
        clock, tries = self._parts.room.clock, 0
        end = clock.boottime() + self._parts.room.owner.lease / 2
        while True:
            try:
                return ask()
            except (ContactLost, Blocked):
                wait = reconnect_wait(tries, random.random())  # noqa: S311
                if (tries and clock.boottime() + wait > end) or self._service.stopping.wait(wait):
                    raise
                tries += 1

    def _attend(self, tick: Tick, claim: Claim, sent: float) -> None:
        seats = self._parts.seats
        seats.reserve(1)
        seats.begin(Held(claim, tick.spec, sent + trust_window(self._parts.room.owner.lease)))
        while not seats.wait_empty(0.2):
            if self._service.stopping.is_set():
                return  # the drain stops the body and hands the run back

    def _see_through(self, tick: Tick, created: Created) -> int:
        """Follow the run to its end, doing its further attempts here unless another replica takes them."""
        mine = created.fresh
        while not self._service.stopping.is_set():
            standing = self._answer(lambda: claims.find_run(self._session, tick.spec.name, tick.run_key))
            if standing.status in EXIT_CODES:
                if not mine:
                    self._say(f"{tick.spec.name} {tick.run_key}: {standing.status} already, by {standing.owner}")
                return EXIT_CODES[standing.status]
            if standing.status is Status.RUNNING:
                self._say(f"{tick.spec.name} {tick.run_key}: {standing.owner or 'another replica'} has it")
                return ANOTHER_HAS_IT
            if self._service.stopping.wait(POLL if mine else 0.01):
                break
            sent = self._parts.room.clock.boottime()
            claim = self._dequeue(standing.id)
            if claim is not None:
                mine = True
                self._attend(tick, replace(claim, job=tick.spec.name), sent)
        self._say(f"{tick.spec.name} {tick.run_key}: stopped before its end; the run is handed back")
        return STOPPED
