"""`soloist backfill`: runs for ticks of the past that have none."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scheduler.cli.options import Format, Output, parse_instant, person

if TYPE_CHECKING:
    from scheduler.store.backfill import Filled, Stretch
    from scheduler.store.engine import Session
    from scheduler.store.jobs import FullJob

Job = Annotated[str, typer.Argument(help="The job's name.", metavar="JOB")]
From = Annotated[
    datetime,
    typer.Option("--from", parser=parse_instant, help="The first tick, or any instant before it.", metavar="T"),
]
To = Annotated[datetime, typer.Option("--to", parser=parse_instant, help="The last tick; it is included.", metavar="T")]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, max=100_000, help="Only the oldest N that have no run.", metavar="N")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be made.")]
MOST = 1000  # runs without --limit: a slip of the year must not fill the queue


def backfill(
    job: Job, first: From, last: To, limit: Limit = None, dry_run: DryRun = False, output: Output = Format.TABLE
) -> None:
    """Make a run for each tick from T to T, by the schedule in force, that has none or was skipped.

    They come after regular runs; those of a job that may not overlap follow each other, oldest first. Asked again it
    makes only what lacks. A tick whose run was purged has none.
    """
    from scheduler.cli.database import opened
    from scheduler.cli.names import present_job
    from scheduler.cli.output import emit, field
    from scheduler.config.settings import load_settings
    from scheduler.runner.clock import SystemClock
    from scheduler.store.backfill import Stretch
    from scheduler.store.visit import visit_session

    if first > last:
        raise typer.BadParameter("is after --to", param_hint="--from")
    with opened(load_settings()) as database, visit_session(database.url, "backfill", SystemClock()) as session:
        known = present_job(session, job)
        stretch = Stretch(first, min(last, known.database_now), limit)
        _refuse(known, stretch)
        done = _fill(session, known, stretch, dry_run=dry_run)
    emit(
        [_row(job, one) for one in done],
        [field(n) for n in ("scheduled_at", "run_key", "status", "run_status")],
        output,
    )
    _summary(known, done, cut=last > stretch.last)


def _refuse(job: FullJob, stretch: Stretch) -> None:
    from scheduler.cli.output import instant
    from scheduler.store.backfill import count_runs

    if job.spec.schedule is None:
        raise typer.BadParameter(f"{job.name} has no schedule, so no ticks: use `soloist trigger`", param_hint="JOB")
    if stretch.first > job.database_now:
        now = instant(job.database_now.replace(microsecond=0))
        raise typer.BadParameter(f"is still to come: by the database's clock it is {now}", param_hint="--from")
    if stretch.limit is None:
        count, more = count_runs(job.spec, stretch)
        if count > MOST:
            what = "ticks there" if job.spec.once_per is None else f"runs to make there, one a {job.spec.once_per}"
            raise typer.BadParameter(
                f"{job.name} has {count}{' or more' if more else ''} {what}, and {MOST} are taken at once: "
                "add --limit N for the oldest N that have no run",
                param_hint="--from",
            )


def _fill(session: Session, job: FullJob, stretch: Stretch, *, dry_run: bool) -> list[Filled]:
    from scheduler.runner.clock import new_id
    from scheduler.store.backfill import Backfill

    return list(Backfill(session, job, person(), new_id, dry_run).fill(stretch))


def _row(job: str, one: Filled) -> dict[str, Any]:
    from scheduler.cli.output import instant

    return {
        "job": job,
        "scheduled_at": instant(one.scheduled_at),
        "run_key": one.run_key,
        "status": one.what,
        "id": one.id,
        "run_status": one.run_status,
    }


def _summary(job: FullJob, done: list[Filled], *, cut: bool) -> None:
    from scheduler.cli.failures import say
    from scheduler.cli.output import instant

    if cut:
        say(f"ticks after {instant(job.database_now.replace(microsecond=0))}, which is now, are still to come")
    counts = {word: sum(one.what == word for one in done) for word in ("created", "would_create", "exists")}
    said = [f"{count} {word.replace('_', ' ')}" for word, count in counts.items() if count]
    say(f"{job.name}: {', '.join(said)}" if said else f"{job.name} has no tick there")
