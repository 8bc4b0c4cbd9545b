"""Which day a run of the registry is for: its argument's, its payload's, or the one before its tick."""

from __future__ import annotations

import difflib
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import text

from jobs.local_day import LocalDay
from scheduler import Fatal, RunContext

_PAYLOAD = ("day",)
_NOW = text("SELECT clock_timestamp()")


def wanted_day(ctx: RunContext, zone: str, day: date | str | None) -> LocalDay:
    """The day in `zone` (an IANA name) that `day` or the payload's `day` names, else the one before the tick.

    Raises Fatal: no such zone or day, a payload with anything else in it, or a day that is not over yet, whose
    registry would lack what is still to be paid.
    """
    payload = _checked_payload(ctx)
    wanted = day if day is not None else payload.get("day")
    try:
        info = ZoneInfo(zone)
        if "day" not in payload and day is None:
            return LocalDay.before(ctx.scheduled_at, info)
        local = LocalDay(date.fromisoformat(str(wanted)), info)
        end = local.end
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError, OverflowError) as error:
        raise Fatal(f"zone must be an IANA name and day a date (2026-11-28): {error}") from None
    # The tick has come, so it is a clock that needs no question; a day that was over at the tick is so now.
    if end > ctx.scheduled_at and end > _now(ctx):
        raise Fatal(f"{local.local_date} is not over yet in {zone}: it is at {end.isoformat()}; ask for it after that")
    return local


def _checked_payload(ctx: RunContext) -> dict[str, Any]:
    payload = ctx.payload or {}
    for key in payload:
        if key not in _PAYLOAD:
            near = difflib.get_close_matches(key, _PAYLOAD, n=1, cutoff=0.5)
            hint = f'did you mean "{near[0]}"?' if near else f"known here: {', '.join(_PAYLOAD)}"
            raise Fatal(f'payload: unknown key "{key}" ({hint})')
    return payload


def _now(ctx: RunContext) -> datetime:
    """By the database's clock, which all replicas share."""
    with ctx.connect() as connection:
        now: datetime = connection.execute(_NOW).scalar_one()
    return now.astimezone(UTC)
