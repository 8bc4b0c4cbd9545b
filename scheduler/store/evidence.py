"""What the database knows about one tick of one job: rows, files of that time, who lives. Reads for `soloist explain`.

Rows come as plain dicts; instants are aware, UTC. Each read is bounded: by keys, or by a number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, and_, case, select

from scheduler.store.history import list_replicas
from scheduler.store.tables import attempt, config, plan_job, replica, run

Row = dict[str, Any]
CLOCKS_DIFFER = timedelta(minutes=10)  # an id's time is its maker's, who claims nothing with a clock that is far off
ROWS = 200
FILES = 50


def runs_by_key(connection: Connection, job_id: int, keys: Iterable[str]) -> list[Row]:
    """The runs of a job that have one of these keys, oldest first."""
    return _rows(connection, _runs().where(run.c.job == job_id, run.c.run_key.in_(sorted(set(keys)))))


def rows_of_ticks_from(connection: Connection, job_id: int, at: datetime) -> list[Row]:
    """The first rows that were made of the job's ticks at and after `at`: among them what stands for that tick, if any.

    Ticks are accounted for in their order, so however long the history is, few rows are looked at.
    """
    first = UUID(int=max(int((at - CLOCKS_DIFFER).timestamp() * 1000), 0) << 80)
    wanted = _runs().where(
        run.c.job == job_id,
        run.c.id >= first,
        run.c.scheduled_at >= at,
        run.c.trigger.in_(["schedule", "catch_up", "cronjob"]),
    )
    return _rows(connection, wanted.limit(ROWS))


def read_attempts_of(connection: Connection, run_id: UUID) -> list[Row]:
    """Number, outcome and replica of each attempt that has ended."""
    wanted = select(attempt.c.number, attempt.c.outcome, attempt.c.replica_name, attempt.c.error_text)
    return _rows(connection, wanted.where(attempt.c.run == run_id).order_by(attempt.c.number).limit(ROWS))


def read_blocker(connection: Connection, run_id: UUID) -> Row | None:
    """The run that was in another's way; None: it was purged."""
    found = _rows(connection, _runs().where(run.c.id == run_id))
    return found[0] if found else None


def file_at(connection: Connection, at: datetime) -> Row | None:
    """The jobs file that was the newest at that instant: `generation`, `content`, `registered_at`."""
    newest = _files().where(config.c.registered_at <= at).order_by(config.c.registered_at.desc())
    found = _rows(connection, newest.limit(1))
    return found[0] if found else None


def files_after(connection: Connection, at: datetime, name: str) -> list[Row]:
    """The first files after that instant that speak of this name."""
    speak = _files().where(config.c.registered_at > at, config.c.content.contains(name, autoescape=True))
    return _rows(connection, speak.order_by(config.c.registered_at).limit(FILES))


def shortest_retention(connection: Connection) -> float | None:
    """Seconds after which the newest file lets the first kind of finished runs go; None: it keeps them all."""
    newest = select(config.c.retention).order_by(config.c.generation.desc()).limit(1)
    found = connection.execute(newest).scalar_one_or_none() or {}
    return min((seconds for seconds in found.values() if seconds is not None), default=None)


def who_may_claim(connection: Connection, job_id: int, spec_hash: str) -> list[Row]:
    """The live replicas: name, generation, clock_offset, and `holds`: this spec, another one, or no such job."""
    live = [row["id"] for row in list_replicas(connection) if row["state"] == "live"]
    held = and_(plan_job.c.generation == replica.c.generation, plan_job.c.job == job_id)
    holds = case(
        (plan_job.c.spec_hash.is_(None), "no such job"),
        (plan_job.c.spec_hash == spec_hash, "this spec"),
        else_="another spec",
    )
    wanted = (
        select(replica.c.name, replica.c.generation, replica.c.clock_offset, holds.label("holds"))
        .select_from(replica.outerjoin(plan_job, held))
        .where(replica.c.id.in_(live), replica.c.serves)
    )
    return _rows(connection, wanted.order_by(replica.c.name))


def _files() -> Select[Any]:
    return select(config.c.generation, config.c.content, config.c.registered_at)


def _runs() -> Select[Any]:
    columns = (
        "id", "run_key", "scheduled_at", "created_at", "trigger", "triggered_by", "status", "skip_reason", "attempt",
        "ready_at", "started_at", "finished_at", "last_error", "result", "retry_of",
    )  # fmt: skip
    return (
        select(*(run.c[name] for name in columns), replica.c.name.label("replica"))
        .select_from(run.outerjoin(replica, replica.c.id == run.c.claimed_by))
        .order_by(run.c.id)
    )


def _rows(connection: Connection, wanted: Select[Any]) -> list[Row]:
    return [dict(row) for row in connection.execute(wanted).mappings()]
