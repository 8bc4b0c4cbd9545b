"""Every list that a person or a starting replica asks for, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.ground import Ground
from scheduler.core.model import Status
from scheduler.runner.service import Parts
from scheduler.store import history, jobs, runs
from scheduler.store.engine import Session
from scheduler.store.history import RunQuery
from scheduler.store.visit import visit


def lists(place: Ground, session: Session, parts: Parts, rows: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """(name, query) of each. Those that need a run take one from the middle of the history."""
    job = min(parts.plan.jobs())
    middle = place.sql("SELECT id FROM soloist.run ORDER BY id OFFSET %s LIMIT 1", rows // 2)[0][0]
    with visit(place.url, "bench") as connection:

        def page(**words: Any) -> Callable[[], object]:
            return lambda: history.list_runs(connection, RunQuery(**words))

        yield "newest_20", page()
        yield "newest_1000", page(limit=1000)
        yield "page_in_the_middle", page(before=middle)
        yield "of_one_job", page(job=job)
        yield "failed", page(statuses=[Status.FAILED])
        yield "failed_of_one_job", page(job=job, statuses=[Status.FAILED])
        yield "running", page(statuses=[Status.RUNNING])
        yield "queued_or_waiting", page(statuses=[Status.QUEUED, Status.WAITING])
        yield "lost_of_which_there_is_none", page(statuses=[Status.LOST])
        yield "lost_of_one_job", page(job=job, statuses=[Status.LOST])
        yield "last_of_each_job", lambda: history.list_last_runs(connection)
        yield "find_by_prefix", lambda: history.find_run(connection, middle.hex[:32])
        yield "show", lambda: history.read_run(connection, middle)
        yield "attempts", lambda: history.read_attempts(connection, middle)
        yield "output", lambda: history.read_output(connection, middle)
        yield "replicas", lambda: history.list_replicas(connection)
        yield "job_names", lambda: history.read_jobs_by_name(connection)
        yield "look", lambda: runs.look(session, parts.room.owner, parts.plan.generation)
        yield "last_runs_at_start", lambda: jobs.last_runs(session, list(parts.plan.jobs()))
