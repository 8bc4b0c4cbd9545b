"""Facts about a replica as a whole: its life, its database, its clock."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.core.events.event import Event


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
