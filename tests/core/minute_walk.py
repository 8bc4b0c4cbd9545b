"""A slow calendar, written from the rules in words and sharing nothing with `scheduler`: it looks at every minute.

The rules. A line has five fields; a time matches when minute, hour and month match and the day does: if neither day
field begins with `*`, day of month OR weekday; else both. Then, going from one UTC minute to the next, the wall clock

* goes on by a minute: the tick is where the wall time matches;
* jumps ahead, by three hours at the most: a *fixed* line (neither minute nor hour begins with `*`) that had a time in
  the gap ticks in the first minute after it (`shift`), or does not (`skip`);
* goes back, by three hours at the most: a fixed line does not tick again until the clock is where it was (`first`),
  or does (`both`).

On days off (local dates) nothing matches and nothing ticks. `from` and `until` are inclusive.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib import resources
from itertools import pairwise
from zoneinfo import ZoneInfo

NAMES = {
    name: number
    for names, first in (("jan feb mar apr may jun jul aug sep oct nov dec", 1), ("sun mon tue wed thu fri sat", 0))
    for number, name in enumerate(names.split(), first)
}
LIMITS = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]
MINUTE = timedelta(minutes=1)
DAY = 24 * 60


@dataclass(frozen=True)
class Rules:
    """What may be said beside the line. `days_off`: "2026-12-25" or "12-25". `first`, `last`: UTC, inclusive."""

    gap: str = "shift"
    overlap: str = "first"
    days_off: tuple[str, ...] = ()
    first: datetime | None = None
    last: datetime | None = None


class WallClock:
    """The wall clock of a zone at each UTC minute in [start, end), in minutes of the local calendar; where it jumps."""

    def __init__(self, name: str, start: datetime, end: datetime) -> None:
        zone = zone_of(name)
        self.start = start
        self.walls = []
        at = start.replace(tzinfo=None)
        for _ in range(int((end - start) / MINUTE)):
            local = zone.fromutc(at.replace(tzinfo=zone)).replace(tzinfo=None, fold=0)
            self.walls.append(local.toordinal() * DAY + local.hour * 60 + local.minute)
            at += MINUTE
        self.first_pass, self.second_pass = {}, {}
        for index, wall in enumerate(self.walls):
            (self.second_pass if wall in self.first_pass else self.first_pass)[wall] = index
        self.days = range(min(self.walls) // DAY - 2, max(self.walls) // DAY + 3)
        self.jumps = [
            (index, later - earlier - 1)
            for index, (earlier, later) in enumerate(pairwise(self.walls), 1)
            if later - earlier != 1
        ]

    def ticks(self, line: str, rules: Rules = Rules()) -> list[datetime]:
        """Every tick in the stretch, but for those that a jump at its very beginning would have made."""
        fields = line.split()
        times = self._times(fields, rules.days_off)
        found = {shown[wall] for shown in (self.first_pass, self.second_pass) for wall in times & shown.keys()}
        if not fields[0].startswith("*") and not fields[1].startswith("*"):
            for index, jump in self.jumps:
                self._jump(found, times, index, jump, rules)
        instants = (self.start + index * MINUTE for index in sorted(found) if not self._is_off(index, rules))
        first, last = rules.first or self.start, rules.last or self.start + len(self.walls) * MINUTE
        return [tick for tick in instants if first <= tick <= last]

    def _jump(self, found: set[int], times: set[int], index: int, jump: int, rules: Rules) -> None:
        """Change what was found at one jump of the clock, for a fixed line."""
        if 0 < jump <= 180 and rules.gap == "shift":
            if any(wall in times for wall in range(self.walls[index] - jump, self.walls[index])):
                found.add(index)
        elif -180 <= jump < 0 and rules.overlap == "first":
            found.difference_update(range(index, index - jump))

    def _is_off(self, index: int, rules: Rules) -> bool:
        return bool(rules.days_off) and is_off(date.fromordinal(self.walls[index] // DAY), rules.days_off)

    def _times(self, fields: list[str], days_off: tuple[str, ...]) -> set[int]:
        """The matching wall times, as local minutes, around the whole stretch."""
        minutes, hours, month_days, months, week_days = (
            values(field, *limits) for field, limits in zip(fields, LIMITS, strict=True)
        )
        of_day = [hour * 60 + minute for hour in hours for minute in minutes]
        both = fields[2].startswith("*") or fields[4].startswith("*")
        times: set[int] = set()
        for ordinal in self.days:
            day = date.fromordinal(ordinal)
            of_month, of_week = day.day in month_days, day.isoweekday() % 7 in week_days
            fits = (of_month and of_week) if both else (of_month or of_week)
            if fits and day.month in months and not is_off(day, days_off):
                times.update(ordinal * DAY + minute for minute in of_day)
        return times


def values(field: str, low: int, high: int) -> set[int]:
    """The numbers of one field; 7 is Sunday as 0 is."""
    found: set[int] = set()
    for item in field.lower().split(","):
        span, _, step = item.partition("/")
        if span == "*":
            first, last = low, high
        else:
            ends = [NAMES[word] if word in NAMES else int(word) for word in span.split("-")]
            first, last = ends[0], ends[-1]
        found.update(range(first, last + 1, int(step or 1)))
    return {0 if high == 7 and number == 7 else number for number in found}


def is_off(day: date, days_off: tuple[str, ...]) -> bool:
    return day.isoformat() in days_off or day.isoformat()[5:] in days_off


def zone_of(name: str) -> ZoneInfo:
    """From the tzdata package, whatever the host has."""
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def changes(name: str, start: datetime, end: datetime) -> list[datetime]:
    """Quarters of a day at whose end the zone's offset is another than at their begin."""
    zone, found = zone_of(name), []
    at, offset = start, start.astimezone(zone).utcoffset()
    while at < end:
        later = (at + timedelta(hours=6)).astimezone(zone).utcoffset()
        if offset != later:
            found.append(at)
        at, offset = at + timedelta(hours=6), later
    return found


def two_years(year: int) -> tuple[datetime, datetime]:
    return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 2, 1, 1, tzinfo=UTC)
