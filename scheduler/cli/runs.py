"""`soloist runs …`: the history, and a retry by hand."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scheduler.cli.options import Format, Output, person
from scheduler.core.model import TERMINAL, Status

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scheduler.cli.output import Column

runs = typer.Typer(no_args_is_help=True, help="The history of runs: list, show, logs, retry.")

RunId = Annotated[
    str, typer.Argument(help="A run's id, or enough of its beginning (8 hex digits or more).", metavar="RUN_ID")
]
JobName = Annotated[str | None, typer.Option("--job", help="Of this job only.", metavar="JOB")]
Statuses = Annotated[list[Status] | None, typer.Option("--status", help="In this state only; may be repeated.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.", metavar="N")]
Before = Annotated[
    str | None, typer.Option("--before", help="Only runs older than this one: the next page.", metavar="RUN_ID")
]
Last = Annotated[bool, typer.Option("--last", help="The newest run of each job instead of a page.")]
Number = Annotated[int | None, typer.Option("--attempt", min=1, help="Of this attempt. Default: the last.")]
Force = Annotated[bool, typer.Option("--force", help="Also a run that succeeded.")]


@runs.command("list")
def list_(
    job: JobName = None,
    status: Statuses = None,
    limit: Limit = 20,
    before: Before = None,
    last: Last = False,
    output: Output = Format.TABLE,
) -> None:
    """List runs, newest first."""
    from scheduler.cli.names import unknown_job
    from scheduler.cli.output import emit, short_ids
    from scheduler.store import history

    if last and (job or status or before):
        raise typer.BadParameter("shows every job's newest run: it goes with no other filter", param_hint="--last")
    with _history() as connection:
        if last:
            rows = history.list_last_runs(connection)
        else:
            ids = history.read_jobs_by_name(connection) if job else {}
            if job and job not in ids:
                raise unknown_job(job, ids, "in this database")
            query = history.RunQuery(
                job=ids[job] if job else None,
                statuses=[str(one) for one in status or ()],
                before=history.find_run(connection, before) if before else None,
                limit=limit,
            )
            rows = history.list_runs(connection, query)
    emit(rows, _columns(short_ids([row["id"] for row in rows])), output)


@runs.command()
def show(run_id: RunId, output: Output = Format.TABLE) -> None:
    """Show every field of a run, and its attempts."""
    from scheduler.cli.output import emit, emit_json, field, first_line, printable, second, span
    from scheduler.store import history

    with _history() as connection:
        run = history.read_run(connection, history.find_run(connection, run_id))
        attempts = history.read_attempts(connection, run["id"])
    if output is Format.JSON:
        emit_json([run | {"attempts": attempts}])
        return
    width = max(map(len, run))
    for name, value in run.items():
        if value is not None:
            print(f"{name:<{width}}  {printable(_written(name, value))}")
    if attempts:
        print("\nattempts")
    columns = [
        field("number", "no.", right=True),
        field("outcome"),
        field("replica_name", "replica"),
        field("started_at", "started", second),
        field("duration", write=span, right=True),
        field("exit_code", "exit", right=True),
        field("cpu", write=span, right=True),
        field("peak_rss", "peak rss", lambda size: f"{size / 2**20:.0f} MiB", right=True),
        field("error_text", "error", first_line),
    ]
    emit(attempts, columns, output)


@runs.command()
def logs(run_id: RunId, attempt: Number = None) -> None:
    """Print what an attempt wrote: the last 64 KiB of its stdout, stderr and logging."""
    from scheduler.cli.failures import say
    from scheduler.store import history

    with _history() as connection:
        found = history.read_output(connection, history.find_run(connection, run_id), attempt)
    text = found["output_tail"] or ""
    sys.stdout.write(text if text.endswith("\n") or not text else f"{text}\n")
    sys.stdout.flush()
    missing = (found["output_bytes"] or 0) - len(text.encode(errors="replace"))
    if not text:
        say(f"attempt {found['number']} wrote nothing")
    elif missing > 0:
        say(f"the first {missing} bytes of attempt {found['number']} were not kept")


@runs.command()
def retry(run_id: RunId, force: Force = False, output: Output = Format.TABLE) -> None:
    """Run an ended run once more, as a new run with the same tick and payload; prints the new id."""
    from scheduler.cli.database import opened
    from scheduler.cli.output import emit, field
    from scheduler.config.settings import load_settings
    from scheduler.runner.clock import SystemClock, new_id
    from scheduler.store import history
    from scheduler.store.retry import retry_run
    from scheduler.store.visit import patiently, visit, visit_session

    with opened(load_settings()) as database:
        with visit(database.url, "runs") as connection:
            run = history.read_run(connection, history.find_run(connection, run_id))
        _refuse(run, force)
        with visit_session(database.url, "runs", SystemClock()) as session:
            made = patiently(lambda: retry_run(session, run, person(), new_id))
    row = {"id": made.id, "job": run["job"], "retry_of": run["id"], "status": str(made.status)}
    emit([row], [field("id"), field("status")], output)


def _refuse(run: dict[str, Any], force: bool) -> None:
    from scheduler.core.errors import AlreadyRunning

    if run["status"] not in TERMINAL:
        raise AlreadyRunning(f"run {run['id']} is {run['status']}: only a run that has ended can be retried")
    if run["status"] == Status.SUCCEEDED and not force:
        raise typer.BadParameter(f"run {run['id']} succeeded: add --force to run it again", param_hint="RUN_ID")


@contextmanager
def _history() -> Iterator[Connection]:
    from scheduler.cli.database import opened
    from scheduler.config.settings import load_settings
    from scheduler.store.visit import visit

    with opened(load_settings()) as database, visit(database.url, "runs") as connection:
        yield connection


def _columns(short: dict[Any, str]) -> list[Column]:
    from scheduler.cli.output import Column, field, first_line, second, span

    return [
        Column("run", lambda row: short[row["id"]]),
        field("job"),
        field("run_key", "run key"),
        Column("status", _status),
        field("attempt", right=True),
        field("replica"),
        field("started_at", "started", second),
        field("duration", write=span, right=True),
        Column("error", lambda row: first_line(_error(row))),
    ]


def _status(row: Mapping[str, Any]) -> str:
    """With why it was skipped, and for how many ticks it stands: `skipped (missed, 2,339 ticks)`."""
    if row["skip_reason"] is None:
        return str(row["status"])
    more = " or more" if row["or_more"] else ""
    many = f", {row['missed']:,}{more} ticks" if (row["missed"] or 0) > 1 else ""
    return f"{row['status']} ({row['skip_reason']}{many})"


def _error(row: Mapping[str, Any]) -> str:
    """The error that belongs to what the row says: of a queued run that of its last attempt, of a running one none."""
    if row["last_error"] is None or row["status"] == Status.RUNNING:
        return ""
    return str(row["last_error"]) if row["status"] in TERMINAL else f"last: {row['last_error']}"


def _written(name: str, value: Any) -> str:
    import json
    from datetime import datetime

    from scheduler.cli.output import instant, span

    if isinstance(value, datetime):
        return instant(value)
    if name == "duration":
        return span(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
