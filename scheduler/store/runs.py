"""What happens to runs that have an owner: renewal, the end of an attempt, take-over, promotion of those that wait."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from uuid import UUID

from scheduler.core.model import Ending, Status
from scheduler.core.policy import Decision
from scheduler.store.arrays import plain, texts
from scheduler.store.claims import Owner
from scheduler.store.engine import CALL_DEADLINE, Session

Held = tuple[UUID, int]
"""A run and the attempt that holds it. Never the run alone: a zombie and its successor may be in one replica."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a renewal touched: (run id, attempt) -> whether somebody asked for its cancellation."""

    renewed: dict[Held, bool]
    database_now: datetime | None


def renew(
    session: Session, owner: Owner, held: Sequence[tuple[UUID, int, str | None]], deadline: float = CALL_DEADLINE
) -> Renewal:
    """Renew the leases of (run id, attempt, progress as JSON or None). What is missing is locked or lost."""
    rows = session.run(
        "renew",
        {
            "me": owner.id,
            "lease": owner.lease,
            "id": [id_ for id_, _, _ in held],
            "attempt": [attempt for _, attempt, _ in held],
            "progress": [progress for _, _, progress in held],
        },
        deadline=deadline,
    )
    return Renewal({(id_, attempt): cancel for id_, attempt, cancel, _ in rows}, rows[0][3] if rows else None)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a run stands by a plain read.

    `held`: the attempt asked about still owns it (its row was only locked). `recorded`: that attempt's own end is in
    the history already: an answer was lost, or `ctx.transaction()` wrote it.
    """

    status: Status
    held: bool
    recorded: bool


def read_held(session: Session, owner: Owner, held: Sequence[Held]) -> dict[Held, Standing]:
    """How the runs of these (run id, attempt) stand now."""
    rows = session.run("read_held", {"me": owner.id, "id": [i for i, _ in held], "attempt": [a for _, a in held]})
    return {
        (id_, attempt): Standing(Status(status), bool(mine), bool(recorded))
        for id_, attempt, status, mine, recorded in rows
    }


@dataclass(frozen=True, slots=True)
class Settlement:
    """One attempt's end, ready to be written. `watched`: its job's name, where bad ends in a row pause the job."""

    id: UUID
    attempt: int
    decision: Decision
    ending: Ending
    watched: str | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """A written end. `waiting`: the job has a run that waits for this one."""

    id: UUID
    attempt: int
    job_id: int
    status: Status
    waiting: bool


def settle(session: Session, owner: Owner, ends: Sequence[Settlement]) -> tuple[Settled, ...]:
    """Write the ends of attempts in one statement. What does not come back was fenced, or had been written before."""
    ends = sorted(ends, key=attrgetter("id"))
    rows = session.run(
        "settle",
        {
            "me": owner.id,
            "name": owner.name,
            **_columns(ends),
            "status": plain(e.decision.status for e in ends),
            "skip_reason": plain(e.decision.skip_reason for e in ends),
            "ready_in": plain(e.decision.ready_in for e in ends),
            "spent": plain(e.decision.spent for e in ends),
            "crashed": plain(e.decision.crashed for e in ends),
            "outcome": plain(e.ending.outcome for e in ends),
            "error_class": texts(e.ending.error_class for e in ends),
        },
    )
    return tuple(Settled(id_, attempt, job, Status(status), waits) for id_, attempt, job, status, waits, _ in rows)


def complete_record(session: Session, ends: Sequence[Settlement]) -> None:
    """Add to the record of attempts that ended inside `ctx.transaction()` what could not be known there."""
    session.run("complete_record", _columns(ends))


def _columns(ends: Sequence[Settlement]) -> dict[str, str]:
    endings = [end.ending for end in ends]
    return {
        "id": plain(e.id for e in ends),
        "attempt": plain(e.attempt for e in ends),
        "result": texts(None if e.result is None else json.dumps(e.result) for e in endings),
        "error_text": texts(e.error_text for e in endings),
        "output_tail": texts(e.output_tail for e in endings),
        "output_bytes": plain(e.output_bytes for e in endings),
        "exit_code": plain(e.exit_code for e in endings),
        "cpu": plain(e.cpu for e in endings),
        "peak_rss": plain(e.peak_rss for e in endings),
    }


@dataclass(frozen=True, slots=True)
class Look:
    """What the sweeper saw. `expired`: (run id, the `claimed_until` that is over); `next_in`: seconds; `server_since`:
    when the server that was asked had started.
    """

    expired: tuple[tuple[UUID, datetime], ...]
    ready: bool
    next_in: float | None
    others: bool
    in_vain: bool
    stale: bool
    database_now: datetime
    server_since: datetime


def look(session: Session, owner: Owner, generation: int) -> Look:
    """One look over all live rows."""
    rows = session.run("look", {"me": owner.id, "generation": generation})
    ids, untils, *rest = rows[0]
    expired = tuple(zip(ids or (), untils or (), strict=True))
    return Look(expired, *rest)


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A run taken from an owner that is gone, or whose lease was over. `watched`: bad ends in a row pause its job."""

    id: UUID
    watched: bool
    job: str
    run_key: str
    scheduled_at: datetime
    attempt: int
    status: Status
    owner: str | None
    error: str


def take_over(session: Session, seen: Sequence[tuple[UUID, datetime]], *, gone: bool = False) -> tuple[TakenOver, ...]:
    """Take these runs from their owners, if their leases are still the ones that were seen: over, or `gone` the
    owner.
    """
    ids, untils = [id_ for id_, _ in seen], [until for _, until in seen]
    rows = session.run("take_over", {"id": ids, "until": untils, "gone": gone})
    return tuple(
        TakenOver(id_, watched, job, key, at, attempt, Status(status), name, error)
        for id_, watched, job, key, at, attempt, status, name, error, _ in rows
    )


def promote(session: Session, jobs: Sequence[int] | None) -> int:
    """Queue the oldest waiting run of each of these jobs (None: of all); returns how many."""
    return len(session.run("promote", {"job": None if jobs is None else list(jobs)}))


@dataclass(frozen=True, slots=True)
class Replaced:
    """A run that gives way to a newer tick: `running` (asked to end), or `cancelled` before it began."""

    id: UUID
    job_id: int
    status: Status
    run_key: str
    scheduled_at: datetime
    attempt: int


def replace(session: Session, jobs: Sequence[int]) -> tuple[Replaced, ...]:
    """Make room for the newest waiting tick of each of these jobs."""
    rows = session.run("replace", {"job": list(jobs)})
    return tuple(Replaced(id_, job, Status(status), *rest) for id_, job, status, *rest in rows)


def end_stale(session: Session) -> tuple[tuple[UUID, str, str, datetime], ...]:
    """End queued and waiting runs of removed jobs; returns (run id, job, run key, tick) of each."""
    return tuple((r[0], r[1], r[2], r[3]) for r in session.run("end_stale", {}))


@dataclass(frozen=True, slots=True)
class Witnessed:
    """What the database says now of a run that it once acknowledged."""

    status: Status
    attempt: int


def witness(session: Session, ids: Sequence[UUID]) -> dict[UUID, Witnessed]:
    """How these runs stand now; those that are missing are gone."""
    rows = session.run("witness", {"id": list(ids)})
    return {id_: Witnessed(Status(status), attempt) for id_, status, attempt in rows}
