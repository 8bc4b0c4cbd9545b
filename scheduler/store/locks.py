"""Session advisory locks, all of them on a replica's dedicated session: its presence, and the locks of guarded jobs.

None is ever waited for: a session blocked in `pg_advisory_lock` pins `backend_xmin` and so stops vacuum (measured).
They protect nothing by themselves; the run's row decides, and these make it known sooner that an owner is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from scheduler.store.engine import Session


def presence_key(replica: UUID) -> int:
    """The last eight bytes of a replica's id, which are random, as PostgreSQL's signed 64-bit key."""
    return int.from_bytes(replica.bytes[8:], "big", signed=True)


def job_key(job: str) -> int:
    """A stable digest: `hash()` differs from process to process, and 32 bits of `hashtext` collide."""
    return int.from_bytes(hashlib.sha256(f"soloist.{job}".encode()).digest()[:8], "big", signed=True)


@dataclass(frozen=True, slots=True)
class OwnerSeen:
    """An owner of runs. `present`: its presence lock stands. Else `runs`: (run id, `claimed_until`) of what it left.

    `server_since`: when the server that was asked had started.
    """

    id: UUID
    present: bool
    lease: float
    runs: tuple[tuple[UUID, datetime], ...]
    server_since: datetime


def watch_owners(session: Session, me: UUID) -> tuple[OwnerSeen, ...]:
    """All others that own runs now."""
    rows = session.run("watch_owners", {"me": me})
    return tuple(
        OwnerSeen(id_, present, lease, tuple(zip(runs or (), untils or (), strict=True)), since)
        for id_, present, lease, runs, untils, since in rows
    )


def take_presence(session: Session, me: UUID, deadline: float) -> bool:
    """Take this replica's presence lock; False while a lost session of ours still has it. Not twice on one session."""
    return bool(session.run("take_presence", {"key": presence_key(me)}, deadline=deadline)[0][0])


def take_job(session: Session, job: str) -> bool:
    """Try the job's lock. It is re-entrant: the caller sees to it that this session does not hold it already."""
    return bool(session.execute("SELECT pg_try_advisory_lock(%s::bigint)", (job_key(job),))[0][0])


def free_job(session: Session, job: str) -> None:
    """Let the job's lock go."""
    session.execute("SELECT pg_advisory_unlock(%s::bigint)", (job_key(job),))


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a job's lock. `replica`: its name, None for a stranger; `owns`: it owns a running run of the job."""

    pid: int
    replica: str | None
    owns: bool


def read_holder(session: Session, job: str) -> Holder | None:
    """Who holds the lock of this job; None: nobody now."""
    rows = session.run("read_guard", {"job": job})
    return Holder(*rows[0]) if rows else None


def end_idle_holder(session: Session, job: str, pid: int) -> bool:
    """End the session of a replica that holds the lock and owns no running run of the job; whether it was so."""
    return bool(session.run("end_idle_guard", {"job": job, "pid": pid}))


def end_holders(session: Session, runs: Sequence[UUID]) -> frozenset[UUID]:
    """End the sessions of owners that hold the locks of these abandoned runs; returns the runs that have to wait
    for it.
    """
    return frozenset(row[0] for row in session.run("end_guards", {"id": list(runs)}))
