"""The nouns of a history: what is known of a fleet's runs afterwards. Frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Rules:
    """What a job was promised. `exclusive`: one active run at the most. `stopped`: its body is gone before anybody else
    may begin (a child process, and `lost_contact: stop`). `at_most_once`: `after_crash: fail`. `transactional`: its
    effect is a row written through `ctx.transaction()`.
    """

    exclusive: bool = True
    stopped: bool = True
    at_most_once: bool = False
    transactional: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """A row in the end. `missed`: how many ticks it stands for."""

    id: str
    job: str
    run_key: str
    scheduled_at: datetime
    status: str
    attempt: int
    crashes: int = 0
    skip_reason: str | None = None
    missed: int = 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """A line of the history."""

    run: str
    number: int
    outcome: str
    replica: str | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """What a body left behind: when it began, its last sign of life, and whether it came to its end."""

    job: str
    run_key: str
    attempt: int
    begun: float
    last: float
    finished: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of a replica's journal that is about a run."""

    replica: str
    event: str
    run: str
    attempt: int
    outcome: str | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """What a replica's row counts. `final`: it went in good order, so that its last word is in the row."""

    replica: str
    fenced_writes: int
    leases_lost: int
    takeovers: int
    final: bool


@dataclass(frozen=True, slots=True)
class History:
    """All the evidence. `effects`: (run, attempt) of each row that a body wrote through `ctx.transaction()`."""

    rules: Mapping[str, Rules]
    expected: Mapping[str, Sequence[datetime]]
    runs: Sequence[Run]
    attempts: Sequence[Attempt] = ()
    bodies: Sequence[Body] = ()
    effects: Sequence[tuple[str, int]] = ()
    journal: Sequence[Entry] = ()
    counts: Sequence[Count] = ()
