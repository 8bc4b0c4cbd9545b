"""`soloist exec`: one tick's run in this process, under the same guard as everywhere."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from scheduler.cli.options import Jobs, Root, parse_instant

if TYPE_CHECKING:
    from scheduler.core.model import JobSpec

Job = Annotated[str, typer.Argument(help="The job's name.", metavar="JOB")]
ScheduledAt = Annotated[
    datetime | None,
    typer.Option("--scheduled-at", parser=parse_instant, help="The tick. Default: the latest.", metavar="T"),
]


Force = Annotated[bool, typer.Option("--force", help="Also while the job is paused.")]


def execute(
    job: Job, scheduled_at: ScheduledAt = None, force: Force = False, jobs: Jobs = None, root: Root = None
) -> None:
    """Run one tick of a job here and exit with its outcome; 5 if another replica has it, 0 if the job is paused."""
    import os
    import socket

    from scheduler.app import execute_one
    from scheduler.cli.database import opened
    from scheduler.cli.plan import find_job, load_checked
    from scheduler.config.settings import load_settings
    from scheduler.runner.clock import SystemClock
    from scheduler.runner.single import tick_of

    settings = load_settings(default_replica=f"{socket.gethostname()}-{os.getpid()}", jobs=jobs, root=root)
    plan = load_checked(settings.jobs, settings.root, only=job)
    spec = find_job(plan, job)
    tick = tick_of(spec, _tick(spec, scheduled_at, SystemClock(settings.clock_offset).now()), force)
    with opened(settings, create=True) as database:
        code = execute_one(settings, plan, database.url, tick)
    raise typer.Exit(code)


CLOCKS_DIFFER = timedelta(minutes=1)


def _tick(spec: JobSpec, scheduled_at: datetime | None, now: datetime) -> datetime:
    """The tick that is meant: only one of the schedule has a run key; anything else is asked for by `trigger`."""
    from scheduler.cli.output import instant
    from scheduler.core.schedule import latest_upto, next_after

    if spec.schedule is None:
        raise typer.BadParameter(
            f"{spec.name} has no schedule, so no tick: use `soloist trigger {spec.name}`", param_hint="JOB"
        )
    # a pod's clock may be slow; what is nearer than this the database's own clock decides
    if scheduled_at is not None and scheduled_at > now + CLOCKS_DIFFER:
        clock = f"by this host's clock it is {instant(now.replace(microsecond=0))}"
        raise typer.BadParameter(f"{instant(scheduled_at)} is still to come: {clock}", param_hint="--scheduled-at")
    before = latest_upto(spec.schedule, now if scheduled_at is None else scheduled_at)
    if scheduled_at is None:
        if before is None:
            raise typer.BadParameter(f"{spec.name} has no tick up to now", param_hint="JOB")
        return before
    if before == scheduled_at:
        return scheduled_at
    near = [instant(tick) for tick in (before, next_after(spec.schedule, scheduled_at)) if tick is not None]
    raise typer.BadParameter(
        f"{instant(scheduled_at)} is not a tick of {spec.name}; the nearest: {', '.join(near) or 'it has none'}",
        param_hint="--scheduled-at",
    )
