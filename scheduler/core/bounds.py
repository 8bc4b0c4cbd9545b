"""`from`, `until` and `except`: where a schedule begins and ends, and the local dates on which it rests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

from scheduler.core.instants import DATE, utc

_YEARLY = re.compile(r"[0-9]{2}-[0-9]{2}")
_LEAP_YEAR = 2000
_TICK_OF_TIME = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class DaysOff:
    """Local dates without ticks: single ones, and (month, day) of those that come back each year."""

    dates: frozenset[date] = frozenset()
    yearly: frozenset[tuple[int, int]] = frozenset()

    def __contains__(self, day: date) -> bool:
        return day in self.dates or (day.month, day.day) in self.yearly

    def __bool__(self) -> bool:
        return bool(self.dates or self.yearly)


NO_DAYS_OFF = DaysOff()


@lru_cache(maxsize=1024)
def read_days_off(texts: Sequence[str]) -> DaysOff:
    """Dates `2026-12-25` and yearly ones `12-25`. Raises ValueError that names the one that is neither."""
    dates, yearly = set(), set()
    for text in texts:
        day = read_day_off(text)
        if DATE.fullmatch(text):
            dates.add(day)
        else:
            yearly.add((day.month, day.day))
    if len(yearly) == 366:
        raise ValueError("every day of the year is taken out: leave one, or pause the job")
    return DaysOff(frozenset(dates), frozenset(yearly))


def read_day_off(text: str) -> date:
    """One of them; a yearly one in a leap year. Raises ValueError."""
    try:
        if DATE.fullmatch(text):
            return date.fromisoformat(text)
        if _YEARLY.fullmatch(text):
            return date.fromisoformat(f"{_LEAP_YEAR}-{text}")
    except ValueError as error:
        raise ValueError(f"{text} is not a day: {error}") from None
    raise ValueError(f"{text[:40]!r} is not a date, e.g. 2026-12-25, or 12-25 for each year")


@dataclass(frozen=True, slots=True)
class Bounds:
    """`from_`, `until`: the first and the last instant at which a tick may be, both inclusive; None: no bound.

    `except_`: dates `2026-12-25` and yearly ones `12-25`, sorted. Raises ValueError when it is made.
    """

    from_: datetime | None = None
    until: datetime | None = None
    except_: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("from_", "until"):
            instant = getattr(self, name)
            if instant is not None:
                object.__setattr__(self, name, utc(instant))
        object.__setattr__(self, "except_", tuple(sorted(set(self.except_))))
        read_days_off(self.except_)
        if self.from_ is not None and self.until is not None and self.until < self.from_:
            raise ValueError("until comes before from: there is no time between them")

    @property
    def days_off(self) -> DaysOff:
        """`except_`, for looking days up."""
        return read_days_off(self.except_) if self.except_ else NO_DAYS_OFF

    def after(self, instant: datetime) -> datetime:
        """The later of `instant` and the moment before `from_`: what ticks must come after."""
        return instant if self.from_ is None else max(instant, self.from_ - _TICK_OF_TIME)

    def upto(self, instant: datetime) -> datetime:
        """The earlier of `instant` and `until`."""
        return instant if self.until is None else min(instant, self.until)

    def to_dict(self) -> dict[str, Any]:
        """{"from": ISO instant, "until": ISO instant, "except": [dates]}; what is not there has no key."""
        plain: dict[str, Any] = {}
        if self.from_ is not None:
            plain["from"] = self.from_.isoformat()
        if self.until is not None:
            plain["until"] = self.until.isoformat()
        if self.except_:
            plain["except"] = list(self.except_)
        return plain


UNBOUNDED = Bounds()


def bounds_from_dict(plain: dict[str, Any]) -> Bounds:
    """The reverse of `to_dict`; other keys are passed over. Raises ValueError."""
    instants = {"from_": plain.get("from"), "until": plain.get("until")}
    ends = {name: datetime.fromisoformat(text) for name, text in instants.items() if isinstance(text, str)}
    days = plain.get("except", [])
    return Bounds(**ends, except_=tuple(days)) if ends or days else UNBOUNDED
