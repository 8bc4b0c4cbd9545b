"""The plan in the database: which jobs there are, up to where their ticks have rows, whose file is in force.

Each distinct content of the file has a generation, in order of first sight. In force is the newest generation among the
live replicas. `job.generation` is the generation that last changed the job, so an older replica may still take the
runs of every job that the newer file left alone. No replica deletes what it does not know: a job that the file in force
lacks is marked removed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from scheduler.core.errors import DatabaseUnreachable
from scheduler.core.model import JobSpec, Status
from scheduler.core.policy import decide_tick, first_watermark
from scheduler.core.spec import spec_from_dict
from scheduler.store.claims import Owner, Want, claim
from scheduler.store.engine import Row, Session, one_line
from scheduler.store.replicas import SILENCE, Registration
from scheduler.store.sql import load


@dataclass(frozen=True, slots=True)
class KnownJob:
    """A job as the database has it. `at_rest`: paused or removed."""

    id: int
    name: str
    spec_hash: str
    generation: int
    watermark: datetime
    at_rest: bool


@dataclass(frozen=True, slots=True)
class Applied:
    """What putting a plan in force did. `in_force`: False when a newer one is, and nothing was touched."""

    generation: int
    in_force: bool
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan as the store keeps it. `retention`: seconds by group of states."""

    config_hash: str
    content: str
    retention: dict[str, float]
    jobs: tuple[JobSpec, ...]


def read_jobs(session: Session, names: Sequence[str] | None = None) -> tuple[KnownJob, ...]:
    """The jobs as they stand (None: all)."""
    return tuple(KnownJob(*row) for row in session.run("read_jobs", {"name": None if names is None else list(names)}))


@dataclass(frozen=True, slots=True)
class LastRun:
    """The last run of a job that was not skipped."""

    job: str
    run_key: str
    status: Status
    replica: str | None
    finished_at: datetime | None


def last_runs(session: Session, jobs: Sequence[int]) -> tuple[LastRun, ...]:
    """The last run of each of these jobs, where there is one."""
    rows = session.run("last_runs", {"job": list(jobs)})
    return tuple(LastRun(job, key, Status(status), name, at) for job, key, status, name, at in rows)


def apply(connection: psycopg.Connection[Any], plan: PlanFile, me: Registration, new_id: Callable[[], UUID]) -> Applied:
    """Register the content and the replica, and put the plan in force unless a newer one is. One transaction.

    Before a spec changes, the ticks that the old one still owed are accounted for, up to the database's now.
    Raises DatabaseUnreachable when the connection broke, or somebody kept a lock for too long: nothing was done.
    """
    try:
        return _apply(connection, plan, me, new_id)
    except psycopg.OperationalError as error:
        raise DatabaseUnreachable(f"the plan could not be put in force: {one_line(error)}") from error


def _apply(
    connection: psycopg.Connection[Any], plan: PlanFile, me: Registration, new_id: Callable[[], UUID]
) -> Applied:
    with connection.transaction():
        # two contents seen first at one instant must not get one generation
        connection.execute("LOCK TABLE soloist.config IN EXCLUSIVE MODE")
        _run(
            connection,
            "register_config",
            {"config_hash": plan.config_hash, "content": plan.content, "retention": json.dumps(plan.retention)},
        )
        generation, newest, now = _run(
            connection, "read_generation", {"config_hash": plan.config_hash, "me": me.id, "silence": SILENCE}
        )[0]
        done = Applied(generation, in_force=False)
        if generation >= newest:
            done = _put_in_force(connection, plan.jobs, generation, now, new_id)
        me.write(connection, generation)
    return done


def _put_in_force(
    connection: psycopg.Connection[Any],
    specs: tuple[JobSpec, ...],
    generation: int,
    now: datetime,
    new_id: Callable[[], UUID],
) -> Applied:
    known = {row[1]: row for row in _run(connection, "lock_jobs", {})}
    wanted = {spec.name: spec for spec in specs}
    added = tuple(spec for spec in specs if spec.name not in known)
    # also those that a generation newer than ours removed or changed: nothing of it is in force any more
    gone = [row for name, row in known.items() if name not in wanted and (not row[6] or row[4] > generation)]
    kept = [(known[spec.name], spec) for spec in specs if spec.name in known]
    changed = [(row, spec) for row, spec in kept if row[3] != spec.hash or row[6]]
    _settle_accounts(connection, [row for row in [*(row for row, _ in changed), *gone] if not row[6]], now, new_id)
    _change(connection, kept, generation, now)
    if gone:
        _run(connection, "remove_jobs", {"id": [row[0] for row in gone], "generation": generation})
    if added:
        _run(
            connection,
            "add_jobs",
            {
                "name": [s.name for s in added],
                "spec": [json.dumps(s.to_dict()) for s in added],
                "spec_hash": [s.hash for s in added],
                "watermark": [first_watermark(s, now) for s in added],
                "generation": generation,
            },
        )
    return Applied(
        generation,
        in_force=True,
        added=tuple(s.name for s in added),
        changed=tuple(s.name for _, s in changed),
        removed=tuple(row[1] for row in gone if not row[6]),
    )


def _settle_accounts(
    connection: psycopg.Connection[Any], rows: list[Row], now: datetime, new_id: Callable[[], UUID]
) -> None:
    """Give every tick that the old specs owe its row. They are born queued: whoever holds the new spec runs them."""
    wants = []
    for id_, _, old, spec_hash, _, watermark, _, paused in rows:
        spec = spec_from_dict(old)
        births = decide_tick(spec, watermark, now)
        if not births or paused:
            continue
        queued = (replace(b, status=Status.QUEUED) if b.status is Status.RUNNING else b for b in births)
        wants.append(Want(id_, spec, spec_hash, watermark, tuple((new_id(), birth) for birth in queued)))
    if wants:
        nobody = Owner(UUID(int=0), "", 1.0)  # nothing is born running, so nobody owns anything
        claim(_Inside(connection), nobody, wants)


def _change(
    connection: psycopg.Connection[Any], kept: list[tuple[Row, JobSpec]], generation: int, now: datetime
) -> None:
    """Write the specs that differ in anything; only a changed hash makes a new generation and a new start."""
    stale = [(r, s) for r, s in kept if r[3] != s.hash or r[6] or r[4] > generation or r[2] != _plain(s)]
    if not stale:
        return
    fresh = [row[3] != spec.hash or row[6] for row, spec in stale]
    _run(
        connection,
        "change_jobs",
        {
            "id": [row[0] for row, _ in stale],
            "spec": [json.dumps(spec.to_dict()) for _, spec in stale],
            "spec_hash": [spec.hash for _, spec in stale],
            "generation": [
                generation if new else min(row[4], generation) for (row, _), new in zip(stale, fresh, strict=True)
            ],
            "watermark": [now if new else row[5] for (row, _), new in zip(stale, fresh, strict=True)],
        },
    )


def _plain(spec: JobSpec) -> Any:
    return json.loads(json.dumps(spec.to_dict()))


class _Inside(Session):
    """The apply's own transaction, where a statement expects a session."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._inside = connection

    def run(self, name: str, params: dict[str, Any], *, deadline: float = 0) -> list[Row]:  # noqa: ARG002
        return _run(self._inside, name, params)


def _run(connection: psycopg.Connection[Any], name: str, params: dict[str, Any]) -> list[Row]:
    cursor = connection.execute(load(name), params or None)
    return cursor.fetchall() if cursor.description else []
