"""Facts about one run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from scheduler.core.events.event import Event
from scheduler.core.words import Outcome, SkipReason, Status, Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent(Event):
    """A fact about one run."""

    job: str
    run_key: str
    run_id: UUID | None = None
    attempt: int = 1
    scheduled_at: datetime | None = None
    trace_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TickWon(RunEvent):
    """This replica claimed the tick; the run is `running` here or `queued` for whoever has a seat.

    `delay`: seconds after the tick before which it does not begin (jitter).
    """

    status: Status
    trigger: Trigger
    delay: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TickLost(RunEvent):
    """The tick has its row already: another replica's, the normal fate of most, or an earlier one of its period."""

    winner: str | None = None
    status: Status | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TickSkipped(RunEvent):
    """The tick left a row but will not run. `missed`: how many ticks the one row stands for."""

    reason: SkipReason
    missed: int | None = None
    blocked_by: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted(RunEvent):
    """A body is about to begin. `start_delay`: seconds after the tick."""

    start_delay: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded(RunEvent):
    """The outcome is written. `status`: what the run is now; `ready_in`: seconds to the next try, when queued."""

    outcome: Outcome
    status: Status
    duration: float
    ready_in: float | None = None
    error_class: str | None = None
    error_text: str | None = None
    result: object = None
    output_tail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTakenOver(RunEvent):
    """The owner's lease was over, or its presence gone; the run goes on (`queued`) or ends (`lost`, `failed`)."""

    owner: str | None
    status: Status
    how: Literal["lease", "presence"] = "lease"
    error_text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReplaced(RunEvent):
    """The job's newest tick takes this run's place. `status`: `running` (asked to end), or `cancelled` already."""

    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseLostEvent(RunEvent):
    """The run is no longer ours while its body was at work: the body is stopped. `reason` says how we know."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFenced(RunEvent):
    """An outcome was refused: the run had been taken over. It is discarded."""

    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeUnwritten(RunEvent):
    """The database stayed away until this replica had to go: the outcome is in this event alone."""

    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecovered(RunEvent):
    """The answer to a claim or to an outcome was lost, and the database shows that it took effect: it is ours."""

    what: Literal["claim", "outcome"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitForgotten(RunEvent):
    """The database no longer has what it once acknowledged: `status` of this run. Its tick may run twice."""

    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardBusy(RunEvent):
    """Somebody else holds the lock of a guarded job: the run goes back to the queue. `holder`: its name, if known."""

    holder: str | None
