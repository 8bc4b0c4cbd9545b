"""Names that were mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import TYPE_CHECKING

from scheduler.core.errors import NotFound

if TYPE_CHECKING:
    from scheduler.store.engine import Session
    from scheduler.store.jobs import FullJob


def unknown_job(name: str, known: Collection[str], where: str) -> NotFound:
    """The error for a job that is not there; with the name that was probably meant. `where`: "in jobs.yaml"."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return NotFound(f'no job "{name}" {where} (did you mean "{near[0]}"?)')
    some = ", ".join(sorted(known)[:10]) + (", …" if len(known) > 10 else "")
    return NotFound(f'no job "{name}" {where} ({f"there are: {some}" if known else "there is none"})')


def known_job(session: Session, name: str) -> FullJob:
    """The job of that name as the database has it, also a removed one. Raises NotFound."""
    from scheduler.store.jobs import read_job, read_jobs

    job = read_job(session, name)
    if job is None:
        raise unknown_job(name, [one.name for one in read_jobs(session) if not one.removed], "in the plan in force")
    return job


def present_job(session: Session, name: str) -> FullJob:
    """The job of that name in the plan in force. Raises NotFound, also for a job that was removed."""
    from scheduler.cli.output import second

    job = known_job(session, name)
    if job.removed_at is not None:
        raise NotFound(f'job "{name}" was removed from the plan on {second(job.removed_at)}: it has no ticks any more')
    return job
