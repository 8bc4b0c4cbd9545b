"""`soloist next`: which ticks come? No database."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scheduler.cli.options import Format, Jobs, Output, parse_instant

if TYPE_CHECKING:
    from scheduler.core.model import JobSpec

Job = Annotated[str | None, typer.Argument(help="One job; without it, all of them in the order of time.")]
After = Annotated[
    datetime | None,
    typer.Option("--after", parser=parse_instant, help="Ticks strictly after this instant. Default: now.", metavar="T"),
]
Count = Annotated[
    int | None, typer.Option("-n", min=1, max=10_000, help="How many. Default: 5 of one job, 10 of all.", metavar="N")
]


def next_ticks(
    job: Job = None, after: After = None, count: Count = None, jobs: Jobs = None, output: Output = Format.TABLE
) -> None:
    """Show the next ticks of a job, or of all jobs."""
    from scheduler.cli.failures import say
    from scheduler.cli.output import emit, field
    from scheduler.cli.plan import find_job
    from scheduler.config.jobs_file import load
    from scheduler.config.settings import load_settings
    from scheduler.runner.clock import SystemClock

    settings = load_settings(jobs=jobs)
    plan = load(settings.jobs)
    chosen = plan.jobs if job is None else (find_job(plan, job),)
    since = SystemClock(settings.clock_offset).now() if after is None else after
    ticks = heapq.merge(*(_ticks(spec, since) for spec in chosen), key=lambda tick: tick[0])
    rows = [_row(spec, tick) for tick, spec in islice(ticks, count or (10 if job is None else 5))]
    emit(rows, [field(name) for name in ("job", "scheduled_at", "local", "run_key")], output)
    if not rows:
        by_hand = job is not None and chosen[0].schedule is None
        say(f"{job} has no schedule: it runs when it is triggered" if by_hand else "no tick comes after that")


def _ticks(spec: JobSpec, after: datetime) -> Iterator[tuple[datetime, JobSpec]]:
    from scheduler.core.schedule import next_after

    tick = None if spec.schedule is None else next_after(spec.schedule, after)
    while spec.schedule is not None and tick is not None:
        yield tick, spec
        tick = next_after(spec.schedule, tick)


def _row(spec: JobSpec, tick: datetime) -> dict[str, Any]:
    from zoneinfo import ZoneInfo

    from scheduler.cli.output import instant
    from scheduler.core.schedule import run_key

    assert spec.schedule is not None
    return {
        "job": spec.name,
        "scheduled_at": instant(tick),
        "local": tick.astimezone(ZoneInfo(spec.timezone)).isoformat(),
        "run_key": run_key(spec.schedule, tick, spec.once_per, spec.timezone),
    }
