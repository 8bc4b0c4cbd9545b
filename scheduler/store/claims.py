"""How runs come to an owner: the claim of due ticks, the dequeue, and runs asked for by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from scheduler.core.errors import NotFound
from scheduler.core.model import Birth, Claim, SkipReason, Status, Trigger
from scheduler.store.arrays import instants, plain, texts
from scheduler.store.engine import Row, Session, Statements

NO_NAMES: Mapping[int, str] = {}


@dataclass(frozen=True, slots=True)
class Owner:
    """Who claims: the replica's id and name, and for how many seconds a lease lasts."""

    id: UUID
    name: str
    lease: float


@dataclass(frozen=True, slots=True)
class Want:
    """One job's due ticks as this replica decided them. `seen`: the watermark they were decided from."""

    job_id: int
    spec_hash: str
    seen: datetime
    births: tuple[tuple[UUID, Birth], ...]


@dataclass(frozen=True, slots=True)
class Made:
    """A row that the claim made. `blocked_by`: the active run that was in its way."""

    job_id: int
    id: UUID
    status: Status
    blocked_by: UUID | None


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """`moved`: jobs whose due ticks are all accounted for. Any other is to be read and decided afresh."""

    made: tuple[Made, ...]
    moved: frozenset[int]
    database_now: datetime


def claim(session: Statements, owner: Owner, wants: Sequence[Want]) -> ClaimAnswer:
    """Claim a chunk of due ticks in one statement. Raises ContactLost: then whether it took effect is unknown."""
    ordered = sorted(wants, key=lambda want: want.job_id)
    births = [(want.job_id, id_, birth) for want in ordered for id_, birth in want.births]
    rows = session.run(
        "claim",
        {
            "me": owner.id,
            "lease": owner.lease,
            "job": plain(w.job_id for w in ordered),
            "seen": instants(w.seen for w in ordered),
            "spec_hash": plain(w.spec_hash for w in ordered),
            "due_job": plain(job for job, _, _ in births),
            "id": plain(id_ for _, id_, _ in births),
            "run_key": texts(b.run_key for _, _, b in births),
            "tick_key": texts(b.tick_key for _, _, b in births),
            "scheduled_at": instants(b.scheduled_at for _, _, b in births),
            "status": plain(b.status for _, _, b in births),
            "skip_reason": plain(b.skip_reason for _, _, b in births),
            "if_blocked": plain(b.if_blocked for _, _, b in births),
            "trigger": plain(b.trigger for _, _, b in births),
            "note": texts(_notes(ordered)),
            "delay": plain(b.delay for _, _, b in births),
        },
    )
    moved, jobs, ids, statuses, blockers, now, _ = rows[0]
    made = tuple(
        Made(job, id_, Status(status), UUID(blocked) if blocked else None)
        for job, id_, status, blocked in zip(jobs or (), ids or (), statuses or (), blockers or (), strict=True)
    )
    return ClaimAnswer(made, frozenset(moved or ()), now)


def _notes(wants: Sequence[Want]) -> Iterator[str | None]:
    """What the rows say of themselves: the number of the ticks that they stand for, or what they gave way to."""
    for want in wants:
        runs = (id_ for id_, birth in reversed(want.births) if birth.status is not Status.SKIPPED)
        newest = next(runs, None)
        for _, birth in want.births:
            if birth.skip_reason is SkipReason.OVERLAP and newest is not None:
                yield json.dumps({"blocked_by": str(newest)})
            else:
                yield note_of(birth)


def note_of(birth: Birth) -> str | None:
    """What the one row that stands for many ticks says of them: {"missed": number, "since": the first one}."""
    if birth.missed is None:
        return None
    since = None if birth.since is None else birth.since.isoformat()
    return json.dumps({"missed": birth.missed, "since": since} | ({"or_more": True} if birth.capped else {}))


@dataclass(frozen=True, slots=True)
class Lost:
    """What a job that was not moved looks like now. `winner`: the name of the replica that has the run, if any."""

    job_id: int
    run_key: str
    watermark: datetime
    spec_hash: str
    at_rest: bool
    run_id: UUID | None
    status: Status | None
    winner: str | None
    database_now: datetime


def read_lost(session: Session, ticks: Sequence[tuple[int, str]]) -> tuple[Lost, ...]:
    """Read the jobs and the runs of ticks that were not won. `ticks`: (job id, run key)."""
    rows = session.run("read_lost", {"job": plain(j for j, _ in ticks), "run_key": texts(k for _, k in ticks)})
    return tuple(
        Lost(job, key, mark, spec_hash, rest, run, Status(status) if status else None, winner, now)
        for job, key, mark, spec_hash, rest, run, status, winner, now in rows
    )


def dequeue(
    session: Session, owner: Owner, generation: int, seats: int, names: Mapping[int, str] = NO_NAMES
) -> tuple[tuple[int, Claim], ...]:
    """Take up to `seats` queued runs, with their job ids. `names`: of the jobs, by id.

    Raises ContactLost: then see `read_mine`.
    """
    rows = session.run("dequeue", {"me": owner.id, "lease": owner.lease, "generation": generation, "seats": seats})
    return tuple([_claimed(row, names) for row in rows])


def dequeue_one(session: Session, owner: Owner, run_id: UUID) -> Claim | None:
    """Take this queued run if it is ready and nobody has it. The job's name is the caller's to know."""
    rows = session.run("dequeue_one", {"me": owner.id, "lease": owner.lease, "id": run_id})
    return _claimed(rows[0], NO_NAMES)[1] if rows else None


@dataclass(frozen=True, slots=True)
class Mine:
    """A run that is this replica's. `left`: seconds until its lease is over."""

    job_id: int
    claim: Claim
    left: float


def read_mine(session: Session, owner: Owner) -> tuple[Mine, ...]:
    """All runs that are mine; their claims lack the job's name."""
    return tuple(Mine(*_claimed(row, NO_NAMES), left=row[-1]) for row in session.run("read_mine", {"me": owner.id}))


def _claimed(row: Row, names: Mapping[int, str]) -> tuple[int, Claim]:
    id_, job, key, at, attempt, left, crashes, trigger, payload, checkpoint, trace, _ = row
    name, traced = names.get(job, ""), trace or id_.hex
    return job, Claim(id_, name, key, at, attempt, left, crashes, Trigger(trigger), payload, checkpoint, traced)


@dataclass(frozen=True, slots=True)
class Request:
    """A run asked for by name. `tick_key`: of a skipped row. `action`: a person's, for the audit; None: no person's.

    `heeds_pause`: it is the calendar's tick, so it is not made while its job is paused.
    """

    id: UUID
    job: str
    run_key: str
    trigger: Trigger
    triggered_by: str
    tick_key: str | None = None
    scheduled_at: datetime | None = None
    retry_of: UUID | None = None
    payload: dict[str, Any] | None = None
    if_blocked: Status = Status.WAITING
    action: str | None = None
    heeds_pause: bool = False


@dataclass(frozen=True, slots=True)
class Created:
    """`fresh`: this request made the row; else its key named an older one. `owner`: who runs it.

    `pause`: there is no row, as the job is paused: by whom and why. `other_payload`: the older one has not the payload
    of this request, which is not used.
    """

    id: UUID
    status: Status
    fresh: bool
    owner: str | None = None
    pause: str | None = None
    other_payload: bool = False


def create_run(session: Session, request: Request, owner: Owner | None = None) -> Created:
    """Make the run, or find the one that its key already names. Asked again with the same id, it is `fresh` once more.

    Raises NotFound when the plan in force has no such job, or the tick lies in the future by the database's clock.
    """
    payload = None if request.payload is None else json.dumps(request.payload)
    rows = session.run(
        "create_run",
        {
            "id": request.id,
            "job": request.job,
            "run_key": request.run_key,
            "tick_key": request.tick_key or request.run_key,
            "scheduled_at": request.scheduled_at,
            "trigger": request.trigger.value,
            "triggered_by": request.triggered_by,
            "retry_of": request.retry_of,
            "payload": payload,
            "if_blocked": request.if_blocked.value,
            "action": request.action,
            "heeds_pause": request.heeds_pause,
            "me": None if owner is None else owner.id,
            "lease": 0.0 if owner is None else owner.lease,
        },
    )
    if not rows:
        raise NotFound(f'no job "{request.job}" in the plan in force; `soloist next` lists the jobs of the file')
    _, id_, status, held, by, reason, _ = rows[0]
    if id_ is not None:
        return Created(id_, Status(status), fresh=True)
    try:
        return find_run(session, request.job, request.run_key, payload)
    except NotFound:
        if not held:
            raise
        return Created(request.id, Status.SKIPPED, fresh=False, pause=f"by {by}: {reason}")


def find_run(session: Session, job: str, run_key: str, payload: str | None = None) -> Created:
    """The run that a job's key names. `payload`: JSON to compare its own with.

    Raises NotFound: then a tick with this key has not come yet.
    """
    found = session.run("find_run", {"job": job, "run_key": run_key, "payload": payload})
    if not found:
        raise NotFound(f"{job}: {run_key} has not come yet by the database's clock")
    id_, status, _, name, other = found[0]
    return Created(id_, Status(status), fresh=False, owner=name, other_payload=other)
