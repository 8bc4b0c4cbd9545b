"""Schedules and their ticks: the calendar of the house. Pure: time is an argument, and it is always aware.

    Cron("0 3 * * *", "Europe/London")    Debian cron's rules, five fields
    Every(900.0)                          aligned to the epoch (or an anchor), never to a process's start
    At(instant)                           once

The first two may have bounds: from when, until when, and dates without ticks.

A tick is a nominal instant, UTC. `tick_key` names it so that replicas with other zone data still agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from scheduler.core.bounds import UNBOUNDED, Bounds, bounds_from_dict
from scheduler.core.cron_walk import FIRST, LAST, Calendar, ticks_after, ticks_upto
from scheduler.core.crontab import read_crontab
from scheduler.core.dst import DEBIAN, Dst, dst_from_dict
from scheduler.core.duration import LONGEST, parse_duration
from scheduler.core.grid_walk import Grid, grid_after, grid_upto
from scheduler.core.hashed_fields import resolve_hashed
from scheduler.core.instants import read_instant, utc
from scheduler.core.model import Period
from scheduler.core.zones import load_zone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SHORTEST_EVERY = 0.1
_MICROSECOND = timedelta(microseconds=1)
COUNTED_AT_MOST = 10_000
"""How many older ticks `due` counts before it says `capped`."""
_LONGEST_SEARCH = timedelta(days=100 * 366)
"""A line that has not ticked by then, never will: only days off can make one so (the rarest date comes in 40 years)."""


class ScheduleError(ValueError):
    """A schedule that cannot be; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A crontab line in a zone. Macros become their five fields. Raises ScheduleError when it is made."""

    expression: str
    timezone: str
    dst: Dst = DEBIAN
    bounds: Bounds = UNBOUNDED

    def __post_init__(self) -> None:
        try:
            load_zone(self.timezone)
            object.__setattr__(self, "expression", read_crontab(self.expression).text)
        except ValueError as error:
            raise ScheduleError(str(error)) from None

    def to_dict(self) -> dict[str, Any]:
        """{"cron": …, "timezone": …}; "dst" with what differs from the default; the bounds' keys."""
        dst = self.dst.to_dict()
        return {
            "cron": self.expression,
            "timezone": self.timezone,
            **({"dst": dst} if dst else {}),
            **self.bounds.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Every:
    """Each `seconds` (at least 0.1, to the microsecond), counted in elapsed time from `anchor`, both ways.

    `timezone`: whose dates the days off are; without any it is UTC.
    """

    seconds: float
    anchor: datetime = EPOCH
    bounds: Bounds = UNBOUNDED
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        if not SHORTEST_EVERY <= self.seconds <= LONGEST:
            raise ScheduleError(f"every: {self.seconds:g}s is not between {SHORTEST_EVERY * 1000:g}ms and ten years")
        object.__setattr__(self, "anchor", utc(self.anchor))
        object.__setattr__(self, "timezone", self.timezone if self.bounds.except_ else "UTC")
        try:
            load_zone(self.timezone)
        except ValueError as error:
            raise ScheduleError(str(error)) from None

    def to_dict(self) -> dict[str, Any]:
        """{"every": seconds, "anchor": ISO instant}; the bounds' keys, with days off also "timezone"."""
        zone = {"timezone": self.timezone} if self.bounds.except_ else {}
        return {"every": self.seconds, "anchor": self.anchor.isoformat(), **self.bounds.to_dict(), **zone}


@dataclass(frozen=True, slots=True)
class At:
    """One instant."""

    instant: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "instant", utc(self.instant))

    def to_dict(self) -> dict[str, Any]:
        """{"at": ISO instant}"""
        return {"at": self.instant.isoformat()}


Schedule = Cron | Every | At


@dataclass(frozen=True, slots=True)
class Due:
    """The ticks of a stretch of time. `ticks`: the newest, ascending. `older`: how many came before them.

    `older_first`, `older_last`: the oldest and the newest of those. `capped`: there are more than `older`; the counting
    stopped, and `older_first` is where.
    """

    ticks: tuple[datetime, ...] = ()
    older: int = 0
    older_first: datetime | None = None
    older_last: datetime | None = None
    capped: bool = False


def schedule_from_dict(plain: dict[str, Any] | None) -> Schedule | None:
    """The reverse of `to_dict`; None (a job run only by hand) stays None. Raises ScheduleError."""
    try:
        match plain:
            case None:
                return None
            case {"cron": str(expression), "timezone": str(timezone)}:
                return Cron(expression, timezone, dst_from_dict(plain.get("dst")), bounds_from_dict(plain))
            case {"every": int() | float() as seconds, "anchor": str(anchor)}:
                zone = plain.get("timezone", "UTC")
                return Every(float(seconds), datetime.fromisoformat(anchor), bounds_from_dict(plain), zone)
            case {"at": str(instant)}:
                return At(datetime.fromisoformat(instant))
    except (ValueError, TypeError) as error:
        raise ScheduleError(f"not a schedule: {plain!r} ({error})") from None
    raise ScheduleError(f"not a schedule: {plain!r}")


def parse_cron(expression: str, timezone: str, name: str | None = None) -> Cron:
    """A five-field line or a macro such as @daily, in an IANA zone. Raises ScheduleError.

    `name`: the job's, from which each `H` gets its number; without it there may be none.
    """
    try:
        return Cron(expression if name is None else resolve_hashed(expression, name), timezone)
    except ValueError as error:
        raise ScheduleError(str(error)) from None


def parse_every(text: str) -> Every:
    """A duration such as `15m`, aligned to the epoch. Raises ScheduleError."""
    try:
        return Every(parse_duration(text))
    except ValueError as error:
        raise ScheduleError(str(error)) from None


def parse_at(text: str, timezone: str) -> At:
    """An ISO instant. Without an offset it is wall time in `timezone`; there it must happen exactly once.

    Raises ScheduleError.
    """
    try:
        return At(read_instant(text, timezone))
    except ValueError as error:
        raise ScheduleError(str(error)) from None


def next_after(schedule: Schedule, after: datetime) -> datetime | None:
    """The first tick strictly after `after`; None when there is none (`At`, `until`, or after the year 2999)."""
    since = utc(after)
    if isinstance(schedule, At):
        return schedule.instant if schedule.instant > since else None
    since = max(schedule.bounds.after(since), FIRST - _MICROSECOND)
    if since >= LAST:
        return None
    last = schedule.bounds.upto(LAST)
    if isinstance(schedule, Every):
        return grid_after(_grid(schedule), since, last)
    if schedule.bounds.except_ and last - since > _LONGEST_SEARCH:
        last = since + _LONGEST_SEARCH
    return next(ticks_after(_calendar(schedule), since, last), None)


def latest_upto(schedule: Schedule, now: datetime) -> datetime | None:
    """The last tick at or before `now`; None when there is none."""
    return next(_backwards(schedule, utc(now), FIRST), None)


def due(schedule: Schedule, after: datetime, now: datetime, limit: int) -> Due:
    """The ticks in (after, now]. Walks backwards from `now`, so its cost does not grow with a long absence."""
    if limit < 0:
        raise ValueError("limit must not be negative")
    since = utc(after)
    backwards = _backwards(schedule, utc(now), max(since, FIRST))
    newest = tuple(islice(backwards, limit))[::-1]
    older_last = next(backwards, None)
    if older_last is None:
        return Due(newest)
    older, older_first = 1, older_last
    for older_first in islice(backwards, COUNTED_AT_MOST - 1):  # noqa: B007 - the last one is kept
        older += 1
    return Due(newest, older, older_first, older_last, capped=next(backwards, None) is not None)


def tick_key(schedule: Schedule, tick: datetime) -> str:
    """The tick's own name. Cron: wall time and zone, `#2` on the second pass of a repeated hour; else the instant.

    Wall time, because replicas whose zone data differ would compute two instants for one tick.
    """
    instant = utc(tick)
    if not isinstance(schedule, Cron):
        return instant.replace(tzinfo=None).isoformat() + "Z"
    local = instant.astimezone(load_zone(schedule.timezone))
    again = "#2" if local.fold else ""
    return f"{local.replace(tzinfo=None, fold=0).isoformat()}[{schedule.timezone}]{again}"


def run_key(schedule: Schedule, tick: datetime, once_per: Period | None, timezone: str) -> str:
    """What makes the tick's run unique: its `tick_key`, or the period in `timezone` that holds the tick."""
    if once_per is None:
        return tick_key(schedule, tick)
    day = utc(tick).astimezone(load_zone(timezone)).date()
    match once_per:
        case Period.DAY:
            return day.isoformat()
        case Period.WEEK:
            year, week, _ = day.isocalendar()
            return f"{year:04}-W{week:02}"
        case Period.MONTH:
            return f"{day.year:04}-{day.month:02}"


def _backwards(schedule: Schedule, upto: datetime, after: datetime) -> Iterator[datetime]:
    """Ticks in (after, upto], the newest first."""
    if isinstance(schedule, At):
        return iter((schedule.instant,) if after < schedule.instant <= upto else ())
    since, last = schedule.bounds.after(after), schedule.bounds.upto(upto)
    if isinstance(schedule, Every):
        return grid_upto(_grid(schedule), last, since)
    if schedule.bounds.except_ and last - since > _LONGEST_SEARCH:
        since = last - _LONGEST_SEARCH
    return ticks_upto(_calendar(schedule), last, since)


def _calendar(schedule: Cron) -> Calendar:
    line = read_crontab(schedule.expression)
    return Calendar(line, schedule.timezone, schedule.dst, schedule.bounds.days_off)


def _grid(schedule: Every) -> Grid:
    period = timedelta(microseconds=round(schedule.seconds * 1_000_000))
    return Grid(schedule.anchor, period, schedule.timezone, schedule.bounds.days_off)
