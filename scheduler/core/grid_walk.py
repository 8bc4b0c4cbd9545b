"""The ticks of an interval: points of a grid in elapsed time, forwards and backwards, days off stepped over at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from scheduler.core.bounds import DaysOff
from scheduler.core.zones import local_day

_MICROSECOND = timedelta(microseconds=1)


class Grid(NamedTuple):
    """`anchor` (UTC) and every `period` before and after it, less the `days_off` of `zone`."""

    anchor: datetime
    period: timedelta
    zone: str
    days_off: DaysOff

    def upto(self, instant: datetime) -> datetime:
        """The last point at or before `instant`."""
        return self.anchor + (instant - self.anchor) // self.period * self.period


def grid_after(grid: Grid, after: datetime, last: datetime) -> datetime | None:
    """The first tick in (after, last], UTC, or None."""
    tick = grid.upto(after) + grid.period
    while grid.days_off and tick <= last:
        off = _day_off(grid, tick)
        if off is None:
            break
        tick = grid.upto(off[1] - _MICROSECOND) + grid.period
    return tick if tick <= last else None


def grid_upto(grid: Grid, last: datetime, after: datetime) -> Iterator[datetime]:
    """Ticks in (after, last], descending, UTC."""
    if last <= after:
        return
    tick = grid.upto(last)
    while tick > after:
        off = _day_off(grid, tick) if grid.days_off else None
        if off is None:
            yield tick
            tick -= grid.period
        else:
            tick = grid.upto(off[0] - _MICROSECOND)


def _day_off(grid: Grid, tick: datetime) -> tuple[datetime, datetime] | None:
    """Begin (in) and end (out) of the day off that the tick falls on; None: it falls on none."""
    day, begin, end = local_day(grid.zone, tick.replace(tzinfo=None))
    return (begin.replace(tzinfo=UTC), end.replace(tzinfo=UTC)) if day in grid.days_off else None
