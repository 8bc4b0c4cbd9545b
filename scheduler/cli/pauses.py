"""`soloist pause` and `soloist resume`: stop a job's ticks, and let them go on."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scheduler.cli.options import Format, Output, parse_instant, parse_reason, parse_seconds, person

if TYPE_CHECKING:
    from scheduler.cli.output import Column
    from scheduler.store.pauses import Paused, Resumed

Job = Annotated[str, typer.Argument(help="The job's name.", metavar="JOB")]
Reason = Annotated[str, typer.Option("--reason", parser=parse_reason, help="Why, for the others.", metavar="TEXT")]
Why = Annotated[str | None, typer.Option("--reason", parser=parse_reason, help="Why.", metavar="TEXT")]
Until = Annotated[
    datetime | None, typer.Option("--until", parser=parse_instant, help="It goes on by itself then.", metavar="T")
]
For = Annotated[
    float | None, typer.Option("--for", parser=parse_seconds, help="It goes on after so long.", metavar="DURATION")
]


def pause(job: Job, reason: Reason, until: Until = None, lasting: For = None, output: Output = Format.TABLE) -> None:
    """Stop a job's ticks until it is resumed. What runs or is queued goes on, and `trigger` still works.

    Of a job that is paused, the end and the reason are changed. At resume one row says how many ticks the pause took.
    """
    from scheduler.cli.database import opened
    from scheduler.cli.failures import say
    from scheduler.cli.names import present_job
    from scheduler.cli.output import emit
    from scheduler.config.settings import load_settings
    from scheduler.runner.clock import SystemClock
    from scheduler.store.pauses import Wish, pause_job
    from scheduler.store.visit import patiently, visit_session

    if until is not None and lasting is not None:
        raise typer.BadParameter("give one of --until and --for", param_hint="--until")
    if lasting == 0:
        raise typer.BadParameter("a pause of no length pauses nothing", param_hint="--for")
    wish = Wish(job, person(), reason, until, lasting)
    with opened(load_settings()) as database, visit_session(database.url, "pause", SystemClock()) as session:
        done = patiently(lambda: pause_job(session, wish))
        if done is None:
            present_job(session, job)
    assert done is not None
    _refuse_past(until, done)
    row = {
        "job": job,
        "status": "paused" if done.before is None else "changed",
        "paused_at": done.at,
        "paused_until": done.until,
        "paused_by": wish.who,
        "paused_reason": reason,
    }
    emit([row], _columns("paused_until", "until"), output)
    if done.before is not None:
        say(_was_paused(done))


def _refuse_past(until: datetime | None, done: Paused) -> None:
    from scheduler.cli.output import instant

    if done.at is None and until is not None:
        now = instant(done.database_now.replace(microsecond=0))
        raise typer.BadParameter(f"{instant(until)} is past: by the database's clock it is {now}", param_hint="--until")


def _was_paused(done: Paused) -> str:
    from scheduler.cli.output import second

    assert done.before is not None
    end = f" until {second(done.before.until)}" if done.before.until else ""
    since = f"it was paused already, since {second(done.before.at)}{end} by {done.before.by}"
    return f"{since} ({done.before.reason}); its end and reason are now the ones above"


def resume(job: Job, reason: Why = None, output: Output = Format.TABLE) -> None:
    """Let a paused job tick again, from now on: none of the ticks that its pause took will run (see `backfill`)."""
    from scheduler.cli.database import opened
    from scheduler.cli.failures import say
    from scheduler.cli.names import present_job
    from scheduler.cli.output import emit
    from scheduler.config.settings import load_settings
    from scheduler.runner.clock import SystemClock, new_id
    from scheduler.store.pauses import resume_job
    from scheduler.store.visit import patiently, visit_session

    with opened(load_settings()) as database, visit_session(database.url, "resume", SystemClock()) as session:
        done = patiently(lambda: resume_job(session, job, person(), reason, new_id))
        if done is None:
            present_job(session, job)
    emit([_resumed(job, done)], _columns("missed", "ticks not run"), output)
    if done is None:
        say(f"{job} was not paused: nothing was done")


def _resumed(job: str, done: Resumed | None) -> dict[str, Any]:
    return {
        "job": job,
        "status": "not_paused" if done is None else "resumed",
        "missed": 0 if done is None else done.missed,
        "or_more": done is not None and done.capped,
        "since": None if done is None else done.since,
        "last": None if done is None else done.last,
    }


def _columns(name: str, title: str) -> list[Column]:
    from scheduler.cli.output import field, second

    plain = [field("job"), field("status")]
    return [*plain, field(name, title, second if name.endswith("until") else str)]
