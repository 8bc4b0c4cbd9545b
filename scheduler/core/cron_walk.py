"""The ticks of a crontab line in a zone, forwards and backwards, by Debian cron's rules about clock changes.

Time is cut into spans of constant offset (`zones.spans`). Inside one of them wall clock and UTC differ by a constant,
so both directions yield the same instants by construction (cronsim's own walks do not at clock changes, and they take
ten times as long). At the cuts:

* a line with a star in minute or hour follows the minutes that happen: none in a gap, twice in a repeated hour;
* a fixed line is moved to the first minute after a gap that swallowed it (several of them are one instant), and is not
  repeated in a repeated hour; `dst: {gap: skip}` and `{overlap: both}` say otherwise;
* a jump of more than three hours is a correction of the calendar, not daylight saving: nothing is moved or suppressed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from scheduler.core.bounds import NO_DAYS_OFF, DaysOff
from scheduler.core.crontab import Crontab
from scheduler.core.dst import DEBIAN, Dst, DstGap, DstOverlap
from scheduler.core.zones import FIRST_YEAR, LAST_YEAR, Span, spans

FIRST = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
LAST = datetime(LAST_YEAR, 12, 31, 23, 59, 59, tzinfo=UTC)

_ZERO = timedelta(0)
_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_MIDNIGHT = time()
_LARGEST_CLOCK_CHANGE = timedelta(hours=3)


class Calendar(NamedTuple):
    """A line, the zone it is read in, what clock changes do to it, and the local dates on which it rests."""

    line: Crontab
    zone: str
    dst: Dst = DEBIAN
    days_off: DaysOff = NO_DAYS_OFF


def ticks_after(calendar: Calendar, after: datetime, upto: datetime = LAST) -> Iterator[datetime]:
    """Ticks in (after, upto] (aware), ascending, UTC. `upto` bounds the search, also when nothing is found."""
    low, high = _stretch(after, upto)
    if high < low:
        return
    for span in spans(calendar.zone, low):
        if span.start > high:
            return
        for tick in _ticks_in(calendar, span, max(low, span.start), min(high, span.end - _SECOND), reverse=False):
            yield tick.replace(tzinfo=UTC)


def ticks_upto(calendar: Calendar, upto: datetime, after: datetime = FIRST) -> Iterator[datetime]:
    """Ticks in (after, upto] (aware), descending, UTC. `after` bounds the search, also when nothing is found."""
    low, high = _stretch(after, upto)
    if high < low:
        return
    for span in spans(calendar.zone, high, reverse=True):
        if span.end <= low:
            return
        for tick in _ticks_in(calendar, span, max(low, span.start), min(high, span.end - _SECOND), reverse=True):
            yield tick.replace(tzinfo=UTC)


def _stretch(after: datetime, upto: datetime) -> tuple[datetime, datetime]:
    """(after, upto] as the first and the last whole second in it, naive UTC, within the years we know."""
    return _naive(max(after, FIRST - _SECOND)) + _SECOND, _naive(min(upto, LAST))


def _ticks_in(calendar: Calendar, span: Span, low: datetime, high: datetime, *, reverse: bool) -> Iterator[datetime]:
    """Ticks in [low, high], whole seconds of one span; naive UTC in and out."""
    moved = _moved(calendar, span)
    floor = span.start + span.offset
    if moved is not None:
        # The moved tick and one that is due at that very minute are one instant.
        floor = moved + span.offset + _SECOND
    elif _is_second_pass(calendar, span):
        floor -= span.jump
    extra = [moved] if moved is not None and low <= moved <= high else []
    if not reverse:
        yield from extra
    for wall in _walls(calendar, max(floor, low + span.offset), high + span.offset, reverse=reverse):
        yield wall - span.offset
    if reverse:
        yield from extra


def _is_second_pass(calendar: Calendar, span: Span) -> bool:
    """Whether the span begins with an hour that was there before, and in which fixed times do not run again."""
    once = calendar.line.fixed and calendar.dst.overlap is DstOverlap.FIRST
    return once and -_LARGEST_CLOCK_CHANGE <= span.jump < _ZERO


def _moved(calendar: Calendar, span: Span) -> datetime | None:
    """The tick of the fixed times that fell into the gap before this span: its first whole minute, or None."""
    moves = calendar.line.fixed and calendar.dst.gap is DstGap.SHIFT
    if not (moves and _ZERO < span.jump <= _LARGEST_CLOCK_CHANGE):
        return None
    first = span.start + span.offset
    missed = _walls(calendar, first - span.jump, first - _SECOND, reverse=False)
    if next(missed, None) is None:
        return None
    to = first + (first.replace(second=0) - first) % _MINUTE
    return None if to.date() in calendar.days_off else to - span.offset


def _walls(calendar: Calendar, low: datetime, high: datetime, *, reverse: bool) -> Iterator[datetime]:
    """The line's wall minutes in [low, high], those of days off left out."""
    line = calendar.line
    for day in _days(calendar, low.date(), high.date(), reverse=reverse):
        midnight = datetime.combine(day, _MIDNIGHT)
        first, last = 0, len(line.minutes)
        if day == low.date():
            first = bisect_left(line.minutes, (low - midnight) / _MINUTE)
        if day == high.date():
            last = bisect_right(line.minutes, (high - midnight) / _MINUTE)
        for minute in reversed(line.minutes[first:last]) if reverse else line.minutes[first:last]:
            yield midnight + minute * _MINUTE


def _days(calendar: Calendar, low: date, high: date, *, reverse: bool) -> Iterator[date]:
    """The line's days in [low, high]; months that are not its own are stepped over at once."""
    line, off = calendar.line, calendar.days_off
    day = high if reverse else low
    while low <= day <= high:
        if day.month not in line.months:
            day = day.replace(day=1) - _DAY if reverse else (day.replace(day=1) + 32 * _DAY).replace(day=1)
            continue
        if line.has_day(day) and day not in off:
            yield day
        day = day - _DAY if reverse else day + _DAY


def _naive(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None, microsecond=0)
