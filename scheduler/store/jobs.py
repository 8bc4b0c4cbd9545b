"""The jobs as the database has them, to tick by and to speak of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from scheduler.core.model import Status
from scheduler.store.engine import Session


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

    @property
    def at_rest(self) -> bool:
        """It does not tick."""
        return self.paused or self.removed


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
