"""What the engine says happened. Logs, metrics and Sentry listen; none of them can hurt it or hold it up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from scheduler.core.model import Outcome, SkipReason, Status, Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A fact. `replica` is the name of the one that saw it."""

    replica: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStarted(Event):
    """The engine runs: it ticks and takes work."""

    version: str
    jobs: int
    seats: int
    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaDraining(Event):
    """A signal came; nothing new is taken. `running`: bodies still at work, of `jobs`; `within`: seconds they have."""

    running: int
    within: float
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStopped(Event):
    """All threads and children are gone. `handed_back`: runs that go on elsewhere."""

    handed_back: int
    fenced_writes: int = 0
    leases_lost: int = 0
    takeovers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlanned(Event):
    """A job of the plan at start: when it ticks next, and how its last run stands (all None: never ran).

    `due`: that tick has come already and will be claimed now.
    """

    job: str
    next_tick: datetime | None
    due: bool = False
    last_run_key: str | None = None
    last_status: Status | None = None
    last_replica: str | None = None
    last_finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChanged(Event):
    """What applying the file did to the jobs in the database."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPaused(Event):
    """A job's ticks have stopped. `until`: when they go on by themselves; None: when somebody resumes it."""

    job: str
    by: str
    reason: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResumed(Event):
    """A job ticks again. `missed`: how many ticks its pause took, or more, where `capped`."""

    job: str
    by: str
    reason: str
    missed: int = 0
    capped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReloaded(Event):
    """The jobs file was edited, and this replica works by it now. `differing`: how many of its jobs differ.

    `in_force`: False when a newer file is; then this replica stands back where the two differ.
    """

    file: str
    config_hash: str
    generation: int
    in_force: bool
    differing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEdited(Event):
    """What an edit of the file did to one job. `what`: the keys that differ, `key: old → new`."""

    job: str
    change: Literal["added", "changed", "removed"]
    what: tuple[str, ...] = ()
    next_tick: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRefused(Event):
    """The jobs file was edited and is not in order: the former plan goes on. `problems`: as `check` says them."""

    file: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRestored(Event):
    """After an edit that was refused the jobs file is again what this replica works by."""

    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneDataDiffers(Event):
    """Live replicas have other versions of the zone data: they may see a tick at different instants (never twice)."""

    mine: str
    others: tuple[str, ...]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PresenceLost(Event):
    """The dedicated session ended while bodies are at work. They have `within` seconds for a new one."""

    error: str
    within: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PresenceRegained(Event):
    """A new dedicated session stands, `after` seconds."""

    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolerFound(Event):
    """A pooler stands before the database. `variable`: the setting that leads there; `consequence`: what is off."""

    variable: str
    consequence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockAway(Event):
    """This machine's clock is `offset` seconds ahead of the database's. `claims`: whether this replica still claims."""

    offset: float
    claims: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockRight(Event):
    """This machine's clock is again as it should be."""

    offset: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseLost(Event):
    """Contact was lost (said once; the next word is `DatabaseRegained`)."""

    room: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseRegained(Event):
    """Contact is back after `after` seconds and `tries` tries."""

    room: str
    after: float
    tries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFailed(Event):
    """An engine thread died; the process ends with an error rather than look alive."""

    room: str
    error: str


Listener = Callable[[Event], None]


class Bus:
    """Hands each event to every listener, in the publisher's thread.

    A listener that raises is reported to `on_error` and is otherwise ignored: no edge may break the engine. A listener
    that has slow work to do queues it for a thread of its own.
    """

    def __init__(self, on_error: Callable[[Event, Exception], None] | None = None) -> None:
        self._listeners: list[tuple[Listener, tuple[type[Event], ...]]] = []
        self._who_hears: dict[type[Event], tuple[Listener, ...]] = {}
        self._on_error = on_error

    def subscribe(self, listener: Listener, *kinds: type[Event]) -> None:
        """Add a listener to these kinds of events, or to all; not meant to be called once the engine runs."""
        self._listeners.append((listener, kinds or (Event,)))
        self._who_hears.clear()

    def publish(self, event: Event) -> None:
        """Tell everybody whom it concerns. Never raises."""
        listeners = self._who_hears.get(type(event))
        if listeners is None:
            listeners = tuple(listener for listener, kinds in self._listeners if isinstance(event, kinds))
            self._who_hears[type(event)] = listeners
        for listener in listeners:
            try:
                listener(event)
            except Exception as error:
                if self._on_error is not None:
                    self._on_error(event, error)
