"""Schedules and their ticks: the calendar of the house. Pure: time is an argument, and it is always aware.

    Cron("0 3 * * *", "Europe/London")    Debian cron's rules, five fields
    Every(900.0)                          aligned to the epoch (or an anchor), never to a process's start
    At(instant)                           once

A tick is a nominal instant, UTC. `tick_key` names it so that replicas with other zone data still agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from scheduler.core.cron_walk import FIRST, LAST, ticks_after, ticks_upto
from scheduler.core.crontab import read_crontab
from scheduler.core.duration import LONGEST, parse_duration
from scheduler.core.model import Period
from scheduler.core.zones import load_zone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SHORTEST_EVERY = 0.1
COUNTED_AT_MOST = 10_000
"""How many older ticks `due` counts before it says `capped`."""


class ScheduleError(ValueError):
    """A schedule that cannot be; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A crontab line in a zone. Macros become their five fields. Raises ScheduleError when it is made."""

    expression: str
    timezone: str

    def __post_init__(self) -> None:
        try:
            load_zone(self.timezone)
            object.__setattr__(self, "expression", read_crontab(self.expression).text)
        except ValueError as error:
            raise ScheduleError(str(error)) from None

    def to_dict(self) -> dict[str, Any]:
        """{"cron": …, "timezone": …}"""
        return {"cron": self.expression, "timezone": self.timezone}


@dataclass(frozen=True, slots=True)
class Every:
    """Each `seconds` (at least 0.1, to the microsecond), counted in elapsed time from `anchor`, both ways."""

    seconds: float
    anchor: datetime = EPOCH

    def __post_init__(self) -> None:
        if not SHORTEST_EVERY <= self.seconds <= LONGEST:
            raise ScheduleError(f"every: {self.seconds:g}s is not between {SHORTEST_EVERY * 1000:g}ms and ten years")
        object.__setattr__(self, "anchor", _utc(self.anchor))

    def to_dict(self) -> dict[str, Any]:
        """{"every": seconds, "anchor": ISO instant}"""
        return {"every": self.seconds, "anchor": self.anchor.isoformat()}


@dataclass(frozen=True, slots=True)
class At:
    """One instant."""

    instant: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "instant", _utc(self.instant))

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
    match plain:
        case None:
            return None
        case {"cron": str(expression), "timezone": str(timezone)}:
            return Cron(expression, timezone)
        case {"every": int() | float() as seconds, "anchor": str(anchor)}:
            return Every(float(seconds), _from_iso(anchor))
        case {"at": str(instant)}:
            return At(_from_iso(instant))
    raise ScheduleError(f"not a schedule: {plain!r}")


def parse_cron(expression: str, timezone: str) -> Cron:
    """A five-field line or a macro such as @daily, in an IANA zone. Raises ScheduleError."""
    return Cron(expression, timezone)


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
    instant = _from_iso(text)
    if instant.tzinfo is not None:
        return At(instant)
    try:
        zone = load_zone(timezone)
    except ValueError as error:
        raise ScheduleError(str(error)) from None
    first, second = (instant.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return At(first)
    if first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == instant:
        raise ScheduleError(
            f"{text} happens twice in {timezone}: add an offset, {first.isoformat()} or {second.isoformat()}"
        )
    raise ScheduleError(f"{text} does not exist in {timezone}: the clocks jump over it; add an offset or move it")


def next_after(schedule: Schedule, after: datetime) -> datetime | None:
    """The first tick strictly after `after`; None when there is none (`At`, or after the year 2999)."""
    since = _utc(after)
    match schedule:
        case Cron():
            return next(ticks_after(read_crontab(schedule.expression), schedule.timezone, since), None)
        case Every():
            return _every_upto(schedule, max(since, FIRST)) + _period(schedule) if since < LAST else None
        case At():
            return schedule.instant if schedule.instant > since else None


def latest_upto(schedule: Schedule, now: datetime) -> datetime | None:
    """The last tick at or before `now`; None when there is none."""
    return next(_backwards(schedule, _utc(now), FIRST), None)


def due(schedule: Schedule, after: datetime, now: datetime, limit: int) -> Due:
    """The ticks in (after, now]. Walks backwards from `now`, so its cost does not grow with a long absence."""
    if limit < 0:
        raise ValueError("limit must not be negative")
    since = _utc(after)
    backwards = _backwards(schedule, _utc(now), max(since, FIRST))
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
    instant = _utc(tick)
    if not isinstance(schedule, Cron):
        return instant.replace(tzinfo=None).isoformat() + "Z"
    local = instant.astimezone(load_zone(schedule.timezone))
    again = "#2" if local.fold else ""
    return f"{local.replace(tzinfo=None, fold=0).isoformat()}[{schedule.timezone}]{again}"


def run_key(schedule: Schedule, tick: datetime, once_per: Period | None, timezone: str) -> str:
    """What makes the tick's run unique: its `tick_key`, or the period in `timezone` that holds the tick."""
    if once_per is None:
        return tick_key(schedule, tick)
    day = _utc(tick).astimezone(load_zone(timezone)).date()
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
    if upto <= after:
        return
    match schedule:
        case Cron():
            yield from ticks_upto(read_crontab(schedule.expression), schedule.timezone, upto, after)
        case Every():
            tick, period = _every_upto(schedule, upto), _period(schedule)
            while tick > after:
                yield tick
                tick -= period
        case At():
            if after < schedule.instant <= upto:
                yield schedule.instant


def _every_upto(schedule: Every, upto: datetime) -> datetime:
    period = _period(schedule)
    return schedule.anchor + (upto - schedule.anchor) // period * period


def _period(schedule: Every) -> timedelta:
    return timedelta(microseconds=round(schedule.seconds * 1_000_000))


def _utc(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise ValueError("an instant must be aware (have a zone or an offset)")
    return instant.astimezone(UTC)


def _from_iso(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ScheduleError(f"{text!r} is not an ISO date and time, e.g. 2026-11-29T03:00:00+00:00") from None
