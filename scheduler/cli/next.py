"""`soloist next`: which ticks come? No database."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scheduler.cli.options import Format, Jobs, Output, parse_instant

if TYPE_CHECKING:
    from scheduler.cli.output import Column
    from scheduler.core.model import JobSpec
    from scheduler.core.periods import Cover

MOST = 10_000
Names = Annotated[
    list[str] | None,
    typer.Argument(help="These jobs; without one, all of them, in the order of time.", metavar="JOB"),
]
After = Annotated[
    datetime | None,
    typer.Option("--after", parser=parse_instant, help="Ticks strictly after this instant. Default: now.", metavar="T"),
]
Until = Annotated[
    datetime | None,
    typer.Option("--until", parser=parse_instant, help="Ticks up to this instant, and it included.", metavar="T"),
]
Count = Annotated[
    int | None,
    typer.Option(
        "-n", min=1, max=MOST, help="How many. Default: 5 of one job, 10 of several; with --until all.", metavar="N"
    ),
]


@dataclass(frozen=True, slots=True)
class _Tick:
    """A tick of a job; `before`: the one before it, or where the search began. `cover`: another has its period's."""

    at: datetime
    spec: JobSpec
    before: datetime
    cover: Cover | None


def next_ticks(
    names: Names = None,
    after: After = None,
    until: Until = None,
    count: Count = None,
    jobs: Jobs = None,
    output: Output = Format.TABLE,
) -> None:
    """Show the next ticks of some jobs, or of all, and what daylight saving and `once_per` do to them."""
    from scheduler.cli.output import emit
    from scheduler.cli.plan import find_jobs
    from scheduler.config.jobs_file import load
    from scheduler.config.settings import load_settings
    from scheduler.runner.clock import SystemClock

    settings = load_settings(jobs=jobs)
    chosen = find_jobs(load(settings.jobs), names or [])
    since = SystemClock(settings.clock_offset).now() if after is None else after
    ticks: Iterable[_Tick] = heapq.merge(*(_ticks(spec, since) for spec in chosen), key=lambda tick: tick.at)
    if until is not None:
        ticks = takewhile(lambda tick: tick.at <= until, ticks)
    usual = MOST if until is not None else 5 if len(names or []) == 1 else 10
    rows = [_row(tick) for tick in islice(ticks, count or usual)]
    emit(rows, _columns(any(row["once_per"] for row in rows)), output)
    _explain(rows, chosen, until, full=count is None and len(rows) == MOST)


def _explain(rows: list[dict[str, Any]], chosen: tuple[JobSpec, ...], until: datetime | None, *, full: bool) -> None:
    """Why there are none, or no more."""
    from scheduler.cli.failures import say
    from scheduler.cli.output import instant

    if full:
        say(f"there may be more: only the first {MOST:,} are shown (see --after)")
    elif not rows and len(chosen) == 1 and chosen[0].schedule is None:
        say(f"{chosen[0].name} has no schedule: it runs when it is triggered")
    elif not rows:
        say("no tick comes after that" if until is None else f"no tick comes up to {instant(until)}")


def _ticks(spec: JobSpec, after: datetime) -> Iterator[_Tick]:
    from scheduler.core.periods import ticks_after

    for tick, cover in ticks_after(spec, after):
        yield _Tick(tick, spec, after, cover)
        after = tick


def _columns(some_covered: bool) -> list[Column]:
    from scheduler.cli.output import field

    plain = [field(name) for name in ("job", "scheduled_at", "local", "dst", "run_key")]
    return [*plain, field("once_per", write=lambda word: COVERED[word])] if some_covered else plain


COVERED = {"covered": "not run: its key's run is an earlier tick's", "perhaps": "not run if an earlier tick was"}


def _row(tick: _Tick) -> dict[str, Any]:
    from scheduler.cli.output import instant
    from scheduler.core.clock_changes import mark_of
    from scheduler.core.schedule import run_key
    from scheduler.core.zones import load_zone

    spec = tick.spec
    assert spec.schedule is not None
    mark = mark_of(spec.schedule, tick.at, tick.before, spec.timezone)
    return {
        "job": spec.name,
        "scheduled_at": instant(tick.at),
        "local": tick.at.astimezone(load_zone(spec.timezone)).isoformat(),
        "run_key": run_key(spec.schedule, tick.at, spec.once_per, spec.timezone),
        "dst": None if mark is None else mark.value,
        "once_per": None if tick.cover is None else tick.cover.value,
    }
