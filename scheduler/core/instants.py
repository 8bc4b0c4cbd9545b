"""Instants as people write them: ISO dates and times, with an offset or as wall time in a zone."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from scheduler.core.zones import FIRST_YEAR, LAST_YEAR, day_begins, load_zone

DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TICK_OF_TIME = timedelta(microseconds=1)


def utc(instant: datetime) -> datetime:
    """The same instant in UTC. Raises ValueError where it has no zone."""
    if instant.tzinfo is None:
        raise ValueError("an instant must be aware (have a zone or an offset)")
    return instant.astimezone(UTC)


def near(instant: datetime) -> datetime:
    """The same instant in UTC, where its year there is one in which ticks are looked for: so no arithmetic overflows.

    Raises ValueError; also where it has no zone.
    """
    # first as it is written, as the move to UTC overflows at the ends of what Python can hold
    if FIRST_YEAR - 1 <= instant.year <= LAST_YEAR + 1 and FIRST_YEAR <= (moved := utc(instant)).year <= LAST_YEAR:
        return moved
    raise ValueError(_too_far(instant.isoformat()))


def read_from(text: str, timezone: str) -> datetime:
    """A date is its first instant in the zone; else as `read_instant`. Raises ValueError."""
    return _day_begins(text, timezone, 0) if DATE.fullmatch(text) else read_instant(text, timezone)


def read_until(text: str, timezone: str) -> datetime:
    """A date is its last instant in the zone, the day itself included; else as `read_instant`. Raises ValueError."""
    return _day_begins(text, timezone, 1) - _TICK_OF_TIME if DATE.fullmatch(text) else read_instant(text, timezone)


def _day_begins(text: str, timezone: str, later: int) -> datetime:
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text} is not a day: {error}") from None
    _refuse_far(text, day.year)
    return day_begins(timezone, day + timedelta(days=later)).replace(tzinfo=UTC)


def read_instant(text: str, timezone: str) -> datetime:
    """An ISO instant, UTC. Without an offset it is wall time in `timezone`, and there it must happen exactly once.

    Raises ValueError.
    """
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        why = f"{text[:60]!r} is not an ISO date and time, e.g. 2026-11-29T03:00:00+00:00"
        raise ValueError(why) from None
    _refuse_far(text, instant.year)
    if instant.tzinfo is not None:
        return instant.astimezone(UTC)
    zone = load_zone(timezone)
    first, second = (instant.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return first.astimezone(UTC)
    if first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == instant:
        raise ValueError(
            f"{text} happens twice in {timezone}: add an offset, {first.isoformat()} or {second.isoformat()}"
        )
    raise ValueError(f"{text} does not exist in {timezone}: the clocks jump over it; add an offset or move it")


def _refuse_far(text: str, year: int) -> None:
    if not FIRST_YEAR < year < LAST_YEAR:
        raise ValueError(_too_far(text))


def _too_far(text: str) -> str:
    return f"{text[:60]}: the year must lie between {FIRST_YEAR} and {LAST_YEAR}"
