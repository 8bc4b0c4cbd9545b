"""What daylight saving does to a schedule: a mark for one tick, and the next changes that touch a crontab line."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from scheduler.core.crontab import Crontab, read_crontab
from scheduler.core.schedule import Cron, Schedule, next_after
from scheduler.core.zones import Span, load_zone, spans

_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_LARGEST = timedelta(hours=3)
"""A larger jump is a correction of the calendar, not daylight saving."""


class Mark(StrEnum):
    """What is odd about a tick's wall time.

    `gap`: the schedule's own time does not exist on that day, the tick was moved out of the gap. `first`, `second`:
    the pass of an hour that happens twice. `forward`, `back`: the clocks were put so since the tick before.
    """

    GAP = "gap"
    FIRST = "first"
    SECOND = "second"
    FORWARD = "forward"
    BACK = "back"


def mark_of(schedule: Schedule, tick: datetime, before: datetime, timezone: str) -> Mark | None:
    """The mark of a tick in its job's zone; `before`: the tick before it, or where one began to look."""
    zone = load_zone(timezone)
    local = tick.astimezone(zone)
    if isinstance(schedule, Cron) and not _is_wall_of(read_crontab(schedule.expression), local):
        return Mark.GAP
    if local.fold:
        return Mark.SECOND
    offset, earlier = local.utcoffset(), before.astimezone(zone).utcoffset()
    assert offset is not None
    assert earlier is not None
    if local.replace(fold=1).utcoffset() != offset:
        return Mark.FIRST
    if offset == earlier:
        return None
    return Mark.FORWARD if offset > earlier else Mark.BACK


def _is_wall_of(line: Crontab, local: datetime) -> bool:
    minute = local.hour * 60 + local.minute
    return minute in line.minutes and local.month in line.months and line.has_day(local.date())


def changes_that_touch(schedule: Cron, after: datetime, until: datetime) -> Iterator[str]:
    """A sentence for the next gap and the next repeated hour in (after, until] that hold one of the line's times.

    None where the hours are a star: such a line follows the clock, and nobody is surprised.
    """
    line = read_crontab(schedule.expression)
    if schedule.expression.split()[1].startswith("*"):
        return
    told: set[bool] = set()
    for span in spans(schedule.timezone, _naive(after)):
        if span.start > _naive(until) or len(told) == 2:
            return
        is_gap = span.jump > timedelta(0)
        if span.start <= _naive(after) or not span.jump or abs(span.jump) > _LARGEST or is_gap in told:
            continue
        low = span.start + span.offset - max(span.jump, timedelta(0))
        wall = _first_wall(line, low, low + abs(span.jump))
        if wall is not None:
            told.add(is_gap)
            yield _gap(schedule, span, wall) if is_gap else _repeated(schedule, span, wall)


def _first_wall(line: Crontab, low: datetime, high: datetime) -> datetime | None:
    """The line's first wall time in [low, high), a stretch of a few hours."""
    for day in sorted({low.date(), high.date()}):
        if day.month in line.months and line.has_day(day):
            midnight = datetime.combine(day, datetime.min.time())
            for minute in line.minutes:
                if low <= midnight + minute * _MINUTE < high:
                    return midnight + minute * _MINUTE
    return None


def _gap(schedule: Cron, span: Span, wall: datetime) -> str:
    start = span.start.replace(tzinfo=UTC)
    tick = next_after(schedule, start - _SECOND)
    jump = f"the clocks jump to {span.start + span.offset:%H:%M}"
    if tick is not None and tick - start <= _MINUTE:
        then = f"it runs at {tick.astimezone(load_zone(schedule.timezone)):%H:%M} instead"
    else:
        then = "it does not run then"
    return f"{wall:%H:%M} does not exist on {wall:%Y-%m-%d} in {schedule.timezone} ({jump}): {then}"


def _repeated(schedule: Cron, span: Span, wall: datetime) -> str:
    start = span.start.replace(tzinfo=UTC)
    passes = []
    for name, begin in (("first", start + span.jump), ("second", start)):
        tick = next_after(schedule, begin - _SECOND)
        if tick is not None and tick < begin - span.jump:
            passes.append(name)
    then = "it runs both times" if len(passes) == 2 else f"it runs the {passes[0]} time only" if passes else "no run"
    return f"{wall:%H:%M} happens twice on {wall:%Y-%m-%d} in {schedule.timezone}: {then}"


def _naive(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None)
