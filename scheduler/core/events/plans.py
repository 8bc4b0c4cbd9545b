"""Facts about jobs and the file that they stand in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from scheduler.core.events.event import Event
from scheduler.core.words import NoTick, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlanned(Event):
    """A job of the plan at start: when it ticks next, and how its last run stands (all None: never ran).

    `due`: that tick has come already and will be claimed now. `no_tick`: why there is none.
    """

    job: str
    next_tick: datetime | None
    no_tick: NoTick | None = None
    due: bool = False
    last_run_key: str | None = None
    last_status: Status | None = None
    last_replica: str | None = None
    last_finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSick(Event):
    """The calendar cannot say when this job ticks. It stands still here until it can; the others tick on."""

    job: str
    error: str


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
    """A job ticks again. `missed`: how many ticks its pause took, or more (`capped`). `by`: empty where unknown."""

    job: str
    by: str = ""
    reason: str = ""
    missed: int = 0
    capped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReloaded(Event):
    """The jobs file was edited, and this replica works by it now. `differing`: how many of its jobs differ.

    `in_force`: False when a newer file is; then this replica stands back where the two differ. `what`: the file's own
    keys that differ, as of `JobEdited`.
    """

    file: str
    config_hash: str
    generation: int
    in_force: bool
    differing: int
    what: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEdited(Event):
    """What an edit of the file did to one job. `what`: the keys that differ, `key: old → new`.

    `no_tick`: why there is no next tick.
    """

    job: str
    change: Literal["added", "changed", "removed"]
    what: tuple[str, ...] = ()
    next_tick: datetime | None = None
    no_tick: NoTick | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRefused(Event):
    """The jobs file was edited and is not in order: the former plan goes on. `problems`: as `check` says them."""

    file: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDelayed(Event):
    """The jobs file was edited and is in order, but the database does not take it just now: it is tried again."""

    file: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanUnread(Event):
    """A look at the jobs file does not come to its end: its disk hangs, or the import of a module that it names.

    `after`: seconds since the look began.
    """

    file: str
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRestored(Event):
    """After an edit that was refused the jobs file is again what this replica works by."""

    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSuperseded(Event):
    """This replica's file (`generation`) is not in force: another's is, since generation `newest`. Said once."""

    generation: int
    newest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInForce(Event):
    """After `FileSuperseded`: the file of this replica is in force again."""

    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneDataDiffers(Event):
    """Live replicas have other versions of the zone data: they may see a tick at different instants (never twice)."""

    mine: str
    others: tuple[str, ...]
