"""The jobs as the database has them, to tick by and to speak of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from scheduler.core.model import JobSpec, Status
from scheduler.core.spec import spec_from_dict
from scheduler.store.arrays import instants, plain
from scheduler.store.engine import Row, Session, Statements


@dataclass(frozen=True, slots=True)
class KnownJob:
    """A job as the database has it."""

    id: int
    name: str
    spec_hash: str
    generation: int
    watermark: datetime
    paused: bool
    removed: bool
    paused_until: datetime | None = None
    paused_by: str | None = None
    paused_reason: str | None = None

    @property
    def pause(self) -> tuple[datetime | None, str | None, str | None]:
        """Until when it is paused, by whom and why."""
        return self.paused_until, self.paused_by, self.paused_reason

    @property
    def at_rest(self) -> bool:
        """It does not tick."""
        return self.paused or self.removed


def read_jobs(session: Session, names: Sequence[str] | None = None) -> tuple[KnownJob, ...]:
    """The jobs as they stand (None: all)."""
    return tuple(KnownJob(*row) for row in session.run("read_jobs", {"name": None if names is None else list(names)}))


@dataclass(frozen=True, slots=True)
class FullJob:
    """A job with all that its row says. `spec`: the one in force. `database_now`: when it was read."""

    id: int
    name: str
    spec: JobSpec
    spec_hash: str
    watermark: datetime
    paused_at: datetime | None
    paused_until: datetime | None
    paused_by: str | None
    paused_reason: str | None
    resumed_at: datetime | None
    removed_at: datetime | None
    database_now: datetime

    @classmethod
    def of(cls, row: Row) -> FullJob:
        """From the columns of `read_job`."""
        id_, name, spec, *rest = row
        return cls(id_, name, spec_from_dict(spec), *rest)


def read_job(session: Statements, name: str) -> FullJob | None:
    """The job of that name, also a removed one; None: the database has never had it."""
    rows = session.run("read_job", {"job": name})
    return FullJob.of(rows[0]) if rows else None


class Moved(NamedTuple):
    """A job that is not as it was seen. `at_rest`: it is not ours to tick: paused, removed, or of another spec."""

    job_id: int
    watermark: datetime
    at_rest: bool


def read_moved(session: Session, seen: Sequence[tuple[int, datetime, str]]) -> tuple[Moved, ...]:
    """Which of these jobs have changed. `seen`: (job id, watermark, spec hash)."""
    asked = {
        "job": plain(job for job, _, _ in seen),
        "seen": instants(watermark for _, watermark, _ in seen),
        "spec_hash": plain(spec_hash for _, _, spec_hash in seen),
    }
    columns = session.run("read_moved", asked)[0]
    return tuple(Moved(*row) for row in zip(*(column or () for column in columns), strict=True))


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
