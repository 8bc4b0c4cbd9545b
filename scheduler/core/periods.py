"""`once_per`: which of a job's ticks run, where a day, a week or a month has one run. Pure; time is an argument.

The run's key is the period's (`schedule.run_key`), so the first tick of a period makes its run and the others find it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from scheduler.core.cron_walk import LAST
from scheduler.core.model import JobSpec, Period
from scheduler.core.schedule import latest_upto, next_after, run_key
from scheduler.core.zones import day_begins, load_zone

_DAY = timedelta(days=1)
_MICROSECOND = timedelta(microseconds=1)


class Cover(StrEnum):
    """A tick whose period's run is an earlier tick's. `perhaps`: if that one, which is past, made it."""

    COVERED = "covered"
    PERHAPS = "perhaps"


def period_key(spec: JobSpec, tick: datetime) -> str | None:
    """The key of the period that holds the tick; None without `once_per`."""
    if spec.schedule is None or spec.once_per is None:
        return None
    return run_key(spec.schedule, tick, spec.once_per, spec.timezone)


def latest_period(spec: JobSpec, upto: datetime) -> str | None:
    """The key of the period whose tick is the newest one up to that instant: as far as a file tells, it has its run."""
    if spec.schedule is None or spec.once_per is None:
        return None
    tick = latest_upto(spec.schedule, upto)
    return None if tick is None else period_key(spec, tick)


def runs_after(spec: JobSpec, after: datetime, had: str | None = None) -> Iterator[datetime]:
    """The ticks after that instant that run, ascending: each, or with `once_per` the first one of each period.

    `had`: the key of a period that has its run. The rest of a period is stepped over at once.
    """
    if spec.schedule is None:
        return
    tick, last = next_after(spec.schedule, after), had
    while tick is not None:
        key = period_key(spec, tick)
        if key is None or key != last:
            yield tick
        last = key
        tick = next_after(spec.schedule, tick if spec.once_per is None else max(tick, _period_ends(spec, tick)))


def ticks_after(spec: JobSpec, after: datetime) -> Iterator[tuple[datetime, Cover | None]]:
    """Every tick after that instant, ascending, and whether its period's run is an earlier one's."""
    if spec.schedule is None:
        return
    covers = {latest_period(spec, after): Cover.PERHAPS}
    tick = next_after(spec.schedule, after)
    while tick is not None:
        key = period_key(spec, tick)
        yield tick, None if key is None else covers.get(key)
        covers[key] = Cover.COVERED  # of a period that goes on the first tick is in doubt, those after it are not
        tick = next_after(spec.schedule, tick)


def _period_ends(spec: JobSpec, tick: datetime) -> datetime:
    """The last instant before the next period begins in the job's zone."""
    day = tick.astimezone(load_zone(spec.timezone)).date()
    match spec.once_per:
        case Period.WEEK:
            following = day + (7 - day.weekday()) * _DAY
        case Period.MONTH:
            following = (day.replace(day=1) + 32 * _DAY).replace(day=1)
        case _:
            following = day + _DAY
    try:
        return day_begins(spec.timezone, following).replace(tzinfo=UTC) - _MICROSECOND
    except ValueError:  # it begins when there are no ticks any more
        return LAST
