"""One attempt, from its seat to its written outcome. The only place that classifies outcomes."""

from __future__ import annotations

import os
import random
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from scheduler.core.context import RunInfo
from scheduler.core.events import (
    AnswerRecovered,
    AttemptEnded,
    AttemptStarted,
    Event,
    GuardBusy,
    JobPaused,
    OutcomeUnwritten,
    WriteFenced,
)
from scheduler.core.model import SOLOIST, Claim, Ending, Guard, Isolation, Outcome, Trigger
from scheduler.core.policy import Decision, decide_outcome
from scheduler.core.redaction import Redaction
from scheduler.kinds import Body, Kind
from scheduler.runner.job_locks import JobLocks
from scheduler.runner.presence import Presence
from scheduler.runner.room import Room
from scheduler.runner.seats import Held
from scheduler.runner.settler import Settler, Written
from scheduler.store.claims import Owner
from scheduler.store.engine import ContactLost, Refused
from scheduler.store.runs import Settlement

LOCK_BUSY = 1.0  # seconds until a run is tried again whose job's lock somebody else has


@dataclass(frozen=True, slots=True)
class Leave:
    """What a body needs besides its seat. `presence`: may it begin now? `job_locks`: for guarded jobs."""

    presence: Presence
    job_locks: JobLocks


class Attempts:
    """Runs attempts: body, decision, settlement. `kinds`: how a body is executed, by isolation."""

    def __init__(self, kinds: Mapping[Isolation, Kind], settler: Settler, room: Room, leave: Leave) -> None:
        self._kinds, self._settler = kinds, settler
        self._presence, self._job_locks = leave.presence, leave.job_locks
        self._owner, self._bus, self._clock = room.owner, room.bus, room.clock
        self._redaction = Redaction(os.environ)
        self._told: dict[str, UUID] = {}  # job -> the run of which it was said that its lock is not free

    def attend(self, held: Held, leave: Callable[[], None]) -> None:
        """Carry one run through its attempt. `leave`: called when its outcome is written, fenced or given up.

        That may be later, and in another thread, than this returns.
        """
        claim = held.claim
        begun, now = self._clock.boottime(), self._clock.now()
        if held.news is not None:
            self._bus.publish(held.news)
        guarded = held.spec.guard is Guard.ADVISORY_LOCK
        if guarded and (refusal := self._refused_lock(claim)) is not None:
            self._write(held, refusal, None, leave)  # quietly: it may be so for hours, a second at a time
            return
        self._bus.publish(AttemptStarted(**_about(claim, self._owner), start_delay=_delay(claim, now)))
        ending = self._unsecret(self._execute(held, now))
        if guarded:
            self._job_locks.free(claim.job)  # before the outcome is written: who sees the run ended finds the lock free
        self._write(held, ending, self._clock.boottime() - begun, leave)

    def _write(self, held: Held, ending: Ending, took: float | None, leave: Callable[[], None]) -> None:
        """Have the outcome written and, where `took` says how many seconds it was about, told."""
        claim = held.claim
        decision = decide_outcome(held.spec, claim, ending, random.random())  # noqa: S311 - jitter, not a secret

        def told(written: Written) -> None:
            held.written = written.status
            try:
                for event in self._events(claim, ending, decision, written, took):
                    self._bus.publish(event)
            finally:
                leave()

        watched = None if held.spec.pause_after_failures is None else claim.job
        self._settler.settle(Settlement(claim.id, claim.attempt, decision, ending, watched), told)

    def _events(
        self, claim: Claim, ending: Ending, decision: Decision, written: Written, took: float | None
    ) -> Iterator[Event]:
        about = _about(claim, self._owner)
        if written.given_up:
            yield OutcomeUnwritten(**about, outcome=ending.outcome)
        elif written.status is None:
            yield WriteFenced(**about, outcome=ending.outcome)
        if written.recovered:
            yield AnswerRecovered(**about, what="outcome")
        if written.status is not None and took is not None:
            yield AttemptEnded(
                **about,
                outcome=ending.outcome,
                status=written.status,
                duration=took,
                ready_in=decision.ready_in if written.status == decision.status == "queued" else None,
                error_class=ending.error_class,
                error_text=ending.error_text,
                result=ending.result,
                output_tail=ending.output_tail,
            )
        if written.pause is not None:
            yield JobPaused(replica=self._owner.name, job=claim.job, by=SOLOIST, reason=written.pause)

    def _refused_lock(self, claim: Claim) -> Ending | None:
        """Take the lock of a guarded job; the Ending: somebody else has it, and the run goes back to the queue."""
        try:
            busy = self._job_locks.take(claim.job)
        except (ContactLost, Refused) as error:
            return _unbegun(f"the job's lock could not be taken: {error}")
        if busy is None:
            self._told.pop(claim.job, None)
            return None
        if self._told.get(claim.job) != claim.id:
            self._told[claim.job] = claim.id
            self._bus.publish(GuardBusy(**_about(claim, self._owner), holder=busy.holder))
        by = f" ({busy.holder})" if busy.holder else ""
        return _unbegun(f"skipped for now: another replica runs it{by}: {claim.job} {claim.run_key}")

    def _unsecret(self, ending: Ending) -> Ending:
        """The history is kept for months: no password that an exception or a print happened to quote stays in it."""
        if not (ending.error_text or ending.output_tail):
            return ending
        return replace(
            ending,
            error_text=None if ending.error_text is None else self._redaction.text(ending.error_text),
            output_tail=self._redaction.text(ending.output_tail),
        )

    def _execute(self, held: Held, now: datetime) -> Ending:
        """Run the body. Whatever goes wrong on this side of it is a failed attempt, never a dead seat."""
        try:
            execution = self._kinds[held.spec.isolation].start(
                _body(held, self._owner, now), held.trust, lambda: self._may_begin(held)
            )
            with held.lock:
                held.execution = execution
            return execution.wait()
        except Exception as error:
            return Ending(
                Outcome.FAILED,
                error_class=type(error).__qualname__,
                error_text=f"the body could not be executed: {error}",
                output_tail=traceback.format_exc()[-4000:],
                started=False,
            )

    def _may_begin(self, held: Held) -> float | None:
        """Asked just before the body begins: getting a child may have taken longer than the lease."""
        return held.may_begin(self._clock.boottime()) if self._presence.wait(held) else None


def _unbegun(text: str) -> Ending:
    return Ending(Outcome.HANDED_BACK, error_text=text, retry_after=LOCK_BUSY, started=False)


def _body(held: Held, owner: Owner, now: datetime) -> Body:
    claim, spec = held.claim, held.spec
    info = RunInfo(
        run_id=claim.id,
        job=claim.job,
        run_key=claim.run_key,
        scheduled_at=claim.scheduled_at,
        attempt=claim.attempt,
        owner=str(owner.id),
        checkpoint=claim.checkpoint,
        payload=claim.payload,
        deadline=None if spec.timeout is None else now + timedelta(seconds=spec.timeout),
        trace_id=claim.trace_id,
    )
    return Body(info, spec.call, spec.args, spec.timeout)


def _about(claim: Claim, owner: Owner) -> dict[str, Any]:
    return {
        "replica": owner.name,
        "job": claim.job,
        "run_key": claim.run_key,
        "run_id": claim.id,
        "attempt": claim.attempt,
        "scheduled_at": claim.scheduled_at,
        "trace_id": claim.trace_id,
    }


def _delay(claim: Claim, now: datetime) -> float | None:
    """Seconds from the tick to here; only a first attempt on schedule has a delay worth the name."""
    if claim.attempt == 1 and claim.trigger is Trigger.SCHEDULE:
        return (now - claim.scheduled_at).total_seconds()
    return None
