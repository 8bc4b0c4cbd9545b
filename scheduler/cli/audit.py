"""`soloist audit`: what was done by hand, by whom and why."""

from __future__ import annotations

from typing import Annotated

import typer

from scheduler.cli.options import Format, Output

JobName = Annotated[str | None, typer.Option("--job", help="Of this job only.", metavar="JOB")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.", metavar="N")]


def audit(job: JobName = None, limit: Limit = 50, output: Output = Format.TABLE) -> None:
    """List what was done by hand (pause, resume, trigger, retry, backfill, purge), newest first."""
    from scheduler.cli.database import opened
    from scheduler.cli.names import unknown_job
    from scheduler.cli.output import emit, field, second
    from scheduler.config.settings import load_settings
    from scheduler.store.audit import list_audit
    from scheduler.store.history import read_jobs_by_name
    from scheduler.store.visit import visit

    with opened(load_settings()) as database, visit(database.url, "audit") as connection:
        rows = list_audit(connection, job, limit)
        if job is not None and not rows and job not in (known := read_jobs_by_name(connection)):
            raise unknown_job(job, known, "in this database")
    columns = [
        field("at", write=second),
        field("who"),
        field("action"),
        field("job"),
        field("until", write=second),
        field("run", write=lambda id_: str(id_)[:18]),
        field("why"),
    ]
    emit(rows, columns, output)
