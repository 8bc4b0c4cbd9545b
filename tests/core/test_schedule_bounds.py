"""`from`, `until` and `except`: which ticks are left, at midnights that do not exist, and over long absences."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest

from scheduler.core.bounds import Bounds, read_days_off
from scheduler.core.instants import read_from, read_until
from scheduler.core.schedule import Cron, Every, Schedule, due, latest_upto, next_after
from scheduler.core.zones import load_zone


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ticks(schedule: Schedule, after: str, upto: str) -> list[str]:
    found = due(schedule, utc(after), utc(upto), 10_000).ticks
    forwards, at = [], utc(after)
    while (tick := next_after(schedule, at)) is not None and tick <= utc(upto):
        forwards.append(tick)
        at = tick
    assert list(found) == forwards
    return [tick.isoformat()[:16] for tick in found]


NIGHTLY = Cron("0 3 * * *", "UTC")


def test_both_ends_are_inclusive() -> None:
    bounded = replace(NIGHTLY, bounds=Bounds(utc("2026-03-02T03:00"), utc("2026-03-04T03:00")))
    assert ticks(bounded, "2026-01-01", "2026-12-31") == ["2026-03-02T03:00", "2026-03-03T03:00", "2026-03-04T03:00"]
    a_moment_less = Bounds(utc("2026-03-02T03:00:00.000001"), utc("2026-03-04T02:59:59.999999"))
    assert ticks(replace(NIGHTLY, bounds=a_moment_less), "2026-01-01", "2026-12-31") == ["2026-03-03T03:00"]
    assert latest_upto(bounded, utc("2027-01-01")) == utc("2026-03-04T03:00")
    assert latest_upto(bounded, utc("2026-03-02T02:59")) is None
    assert next_after(bounded, utc("2026-03-04T03:00")) is None


def test_a_date_is_its_first_and_its_last_instant_in_the_zone() -> None:
    assert read_from("2026-03-02", "Asia/Tokyo") == utc("2026-03-01T15:00")
    assert read_until("2026-03-02", "Asia/Tokyo") == utc("2026-03-02T14:59:59.999999")
    one_day = Bounds(read_from("2026-03-29", "Europe/London"), read_until("2026-03-29", "Europe/London"))
    hourly = replace(Cron("0 * * * *", "Europe/London"), bounds=one_day)
    assert len(ticks(hourly, "2026-01-01", "2026-12-31")) == 23


@pytest.mark.parametrize(
    ("zone", "day", "begins"),
    [
        ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00"),  # there is no midnight: 00:00 becomes 01:00
        ("America/Havana", "2026-11-01", "2026-11-01T04:00"),  # there are two
        ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00"),  # there is no such day
        ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00"),
        ("America/Sao_Paulo", "2018-02-18", "2018-02-18T03:00"),  # at midnight it became 23:00 again
        ("America/Toronto", "1919-03-31", "1919-03-31T04:30"),  # from 23:30 to 00:30
        ("Pacific/Kiritimati", "2026-01-01", "2025-12-31T10:00"),
    ],
)
def test_days_without_a_plain_midnight(zone: str, day: str, begins: str) -> None:
    found = read_from(day, zone)
    assert found == utc(begins)
    local, before = (at.astimezone(load_zone(zone)).date() for at in (found, found - timedelta(seconds=1)))
    assert before < date.fromisoformat(day) <= local
    yesterday = date.fromisoformat(day) - timedelta(days=1)
    assert read_until(yesterday.isoformat(), zone) == found - timedelta(microseconds=1)


def test_days_off_are_local_dates() -> None:
    christmas = Bounds(except_=("12-25", "2026-12-28"))
    tokyo = replace(Cron("0 6 * * *", "Asia/Tokyo"), bounds=christmas)
    assert ticks(tokyo, "2026-12-22T22:00", "2026-12-29T00:00") == [
        "2026-12-23T21:00",  # the 24th, in Tokyo
        "2026-12-25T21:00",
        "2026-12-26T21:00",
        "2026-12-28T21:00",
    ]
    every = Every(6 * 3600.0, bounds=christmas, timezone="Asia/Tokyo")
    assert ticks(every, "2026-12-24T10:00", "2026-12-25T20:00") == ["2026-12-24T12:00", "2026-12-25T18:00"]


def test_an_interval_keeps_its_grid_over_bounds_and_days_off() -> None:
    anchor = utc("2026-01-01T00:07")
    every = Every(5 * 3600.0, anchor, Bounds(utc("2026-01-02"), utc("2026-02-01"), ("2026-01-10", "01-11")))
    found = [utc(tick) for tick in ticks(every, "2025-01-01", "2027-01-01")]
    assert all((tick - anchor) % timedelta(hours=5) == timedelta(0) for tick in found)
    assert {(later - earlier) for earlier, later in pairwise(found)} == {timedelta(hours=5), timedelta(hours=50)}
    assert not [tick for tick in found if tick.day in (10, 11)]


def test_a_time_that_a_gap_would_move_onto_a_day_off_is_off_too() -> None:
    # 23:45 of the 30th was swallowed by a jump from 23:30 to 00:30
    line = Cron("45 23 * * *", "America/Toronto")
    assert ticks(line, "1919-03-31T00:00", "1919-04-01T00:00") == ["1919-03-31T04:30"]
    for day in ("1919-03-30", "1919-03-31"):
        off = replace(line, bounds=Bounds(except_=(day,)))
        assert ticks(off, "1919-03-31T00:00", "1919-04-01T00:00") == []


def test_bounds_in_a_gap_and_in_a_repeated_hour() -> None:
    shifted = Cron("30 1 * * *", "Europe/London", bounds=Bounds(from_=utc("2026-03-29T01:00")))
    assert next_after(shifted, utc("2026-01-01")) == utc("2026-03-29T01:00")
    later = replace(shifted, bounds=Bounds(from_=utc("2026-03-29T01:00:01")))
    assert next_after(later, utc("2026-01-01")) == utc("2026-03-30T00:30")


@pytest.mark.parametrize(
    "schedule",
    [
        Cron("* * * * *", "Europe/London"),
        Cron("0 3 * * 1-5", "America/New_York"),
        Cron("0 0 29 2 *", "UTC"),
        Every(0.1),
        Every(3600.0, timezone="Europe/London"),
    ],
)
@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(from_=utc("2026-01-01")),
        Bounds(until=utc("2001-06-01T12:00")),
        Bounds(except_=tuple(f"{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 29))),
        Bounds(except_=tuple((date(2000, 1, 1) + timedelta(days=n)).isoformat() for n in range(9600))),
        Bounds(except_=("02-29",)),
        Bounds(utc("2500-01-01"), utc("2500-01-01")),
    ],
    ids=["from", "until", "yearly", "26 years off", "29 February", "one instant"],
)
def test_no_absence_and_no_bound_makes_a_search_long(schedule: Cron | Every, bounds: Bounds) -> None:
    bounded = replace(schedule, bounds=bounds)
    now = utc("2026-11-29T03:00")
    next_after(bounded, now)  # the zone's years are read once
    began = time.process_time()
    next_after(bounded, now)
    latest_upto(bounded, now)
    due(bounded, utc("1996-01-01"), now, 100)
    assert time.process_time() - began < 3, "each takes milliseconds"


def test_a_line_that_never_fires_says_so() -> None:
    never = Cron("0 3 25 12 *", "UTC", bounds=Bounds(except_=("12-25",)))
    assert next_after(never, utc("2026-01-01")) is None
    assert latest_upto(never, utc("2026-01-01")) is None
    assert due(never, utc("2000-01-01"), utc("2026-01-01"), 5).ticks == ()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="until comes before from"):
        Bounds(utc("2026-01-02"), utc("2026-01-01"))
    all_days = tuple((date(2000, 1, 1) + timedelta(days=n)).isoformat()[5:] for n in range(366))
    with pytest.raises(ValueError, match="every day of the year"):
        Bounds(except_=all_days)
    assert Bounds(except_=all_days[:-1])
    for text in ("2026-02-30", "02-30", "25-12", "2026-1-5", "1-5", "20261225", "christmas", "", "２０２６-12-25"):
        with pytest.raises(ValueError, match="not a da"):
            read_days_off((text,))
    assert date(2028, 2, 29) in read_days_off(("02-29",))
