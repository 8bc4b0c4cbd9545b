"""The jobs as they stand, for people: what each is to do, whether it may, and how its last run went.

Rows come as plain dicts; instants are aware, UTC.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, lateral, select, true

from scheduler.store.tables import job, replica, run

Row = dict[str, Any]


def list_jobs(connection: Connection) -> list[Row]:
    """Every job, also removed ones, by name: its `spec` (JSON), its pause, and the newest run that was not skipped.

    A lateral join: one probe of an index for each job. `now`: the database's.
    """
    last = lateral(
        select(run.c.run_key, run.c.status, run.c.started_at, run.c.finished_at, run.c.claimed_by)
        .where(run.c.job == job.c.id, run.c.status != "skipped")
        .order_by(run.c.id.desc())
        .limit(1)
        .correlate(job),
        name="last",
    )
    wanted = (
        select(
            job.c.name.label("job"),
            job.c.spec,
            job.c.watermark,
            job.c.paused_at,
            job.c.paused_until,
            job.c.paused_by,
            job.c.paused_reason,
            job.c.removed_at,
            last.c.run_key.label("last_run_key"),
            last.c.status.label("last_status"),
            last.c.started_at.label("last_started_at"),
            last.c.finished_at.label("last_finished_at"),
            replica.c.name.label("last_replica"),
            func.clock_timestamp().label("now"),
        )
        .select_from(job.outerjoin(last, true()).outerjoin(replica, replica.c.id == last.c.claimed_by))
        .order_by(job.c.name)
    )
    return [dict(row) for row in connection.execute(wanted).mappings()]
