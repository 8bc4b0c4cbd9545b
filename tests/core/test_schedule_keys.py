"""Keys, intervals, single instants, and the way to JSON and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.core.model import Period
from scheduler.core.schedule import (
    At,
    Cron,
    Due,
    Every,
    ScheduleError,
    due,
    latest_upto,
    next_after,
    parse_at,
    parse_every,
    run_key,
    schedule_from_dict,
    tick_key,
)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_cron_key_is_the_wall_time_and_the_zone() -> None:
    cron = Cron("0 3 * * *", "Europe/London")
    assert tick_key(cron, utc("2026-11-29T03:00")) == "2026-11-29T03:00:00[Europe/London]"
    assert tick_key(cron, utc("2026-06-29T02:00")) == "2026-06-29T03:00:00[Europe/London]"


def test_the_second_pass_of_a_repeated_hour_has_a_key_of_its_own() -> None:
    cron = Cron("*/30 * * * *", "America/New_York")
    ticks = due(cron, utc("2026-11-01T05:15"), utc("2026-11-01T07:00"), 10).ticks
    assert [tick_key(cron, tick) for tick in ticks] == [
        "2026-11-01T01:30:00[America/New_York]",
        "2026-11-01T01:00:00[America/New_York]#2",
        "2026-11-01T01:30:00[America/New_York]#2",
        "2026-11-01T02:00:00[America/New_York]",
    ]


def test_an_interval_key_is_the_instant_with_its_fraction_if_any() -> None:
    assert tick_key(Every(15.0), utc("2026-11-29T03:00:15")) == "2026-11-29T03:00:15Z"
    assert tick_key(Every(0.5), utc("2026-11-29T03:00:15.5")) == "2026-11-29T03:00:15.500000Z"
    tokyo = At(datetime.fromisoformat("2026-11-29T12:00:00+09:00"))
    assert tick_key(tokyo, tokyo.instant) == "2026-11-29T03:00:00Z"


@pytest.mark.parametrize(
    ("period", "zone", "tick", "key"),
    [
        (Period.DAY, "UTC", "2026-11-29T23:30", "2026-11-29"),
        (Period.DAY, "Asia/Tokyo", "2026-11-29T23:30", "2026-11-30"),
        (Period.WEEK, "UTC", "2026-11-29T03:00", "2026-W48"),
        (Period.WEEK, "UTC", "2027-01-01T03:00", "2026-W53"),
        (Period.WEEK, "UTC", "2024-12-30T03:00", "2025-W01"),
        (Period.MONTH, "UTC", "2026-11-30T23:30", "2026-11"),
        (Period.MONTH, "Pacific/Kiritimati", "2026-11-30T23:30", "2026-12"),
    ],
)
def test_once_per_takes_the_period_in_the_jobs_zone(period: Period, zone: str, tick: str, key: str) -> None:
    assert run_key(Cron("0 3 * * *", zone), utc(tick), period, zone) == key


def test_without_a_period_the_run_key_is_the_ticks() -> None:
    cron = Cron("0 3 * * *", "UTC")
    assert run_key(cron, utc("2026-11-29T03:00"), None, "UTC") == "2026-11-29T03:00:00[UTC]"


def test_intervals_are_aligned_to_the_epoch_not_to_a_start() -> None:
    every = parse_every("15m")
    assert next_after(every, utc("2026-11-29T03:07:11.5")) == utc("2026-11-29T03:15")
    assert next_after(every, utc("2026-11-29T03:15")) == utc("2026-11-29T03:30")
    assert latest_upto(every, utc("2026-11-29T03:15")) == utc("2026-11-29T03:15")


def test_a_24_hour_interval_is_elapsed_time_across_a_clock_change() -> None:
    anchor = datetime.fromisoformat("2026-10-31T09:00:00-04:00")
    every = Every(86400.0, anchor)
    assert next_after(every, utc("2026-10-31T13:00")) == utc("2026-11-01T13:00")


def test_a_daily_wall_time_keeps_its_hour_across_a_clock_change() -> None:
    cron = Cron("0 17 * * *", "America/New_York")
    assert next_after(cron, utc("2026-10-31T21:00")) == utc("2026-11-01T22:00")
    assert due(cron, utc("2026-10-31T21:00"), utc("2026-11-01T21:30"), 10) == Due()


@pytest.mark.parametrize("text", ["99ms", "0s", "4000d", "10", "-5s", "5 minutes", ""])
def test_intervals_refused(text: str) -> None:
    with pytest.raises(ScheduleError):
        parse_every(text)


def test_one_instant() -> None:
    once = parse_at("2026-11-29T03:00:00+01:00", "UTC")
    assert once == At(utc("2026-11-29T02:00"))
    assert next_after(once, utc("2026-11-29T01:59:59")) == utc("2026-11-29T02:00")
    assert next_after(once, utc("2026-11-29T02:00")) is None
    assert latest_upto(once, utc("2026-11-29T01:59:59")) is None
    assert due(once, utc("2026-11-29T01:00"), utc("2026-11-29T02:00"), 1) == Due((utc("2026-11-29T02:00"),))
    assert due(once, utc("2026-11-29T02:00"), utc("2026-11-29T03:00"), 1) == Due()


def test_an_instant_without_offset_is_wall_time_of_the_job() -> None:
    assert parse_at("2026-11-29T03:00", "Asia/Tokyo") == At(utc("2026-11-28T18:00"))
    with pytest.raises(ScheduleError, match="does not exist in Europe/London"):
        parse_at("2026-03-29T01:30", "Europe/London")
    with pytest.raises(ScheduleError, match=r"happens twice in Europe/London.*01:30:00\+01:00 or .*01:30:00\+00:00"):
        parse_at("2026-10-25T01:30", "Europe/London")
    with pytest.raises(ScheduleError, match="not an ISO date and time"):
        parse_at("tomorrow", "UTC")
    with pytest.raises(ScheduleError, match="unknown timezone"):
        parse_at("2026-11-29T03:00", "Mars/Base")


@pytest.mark.parametrize(
    "schedule",
    [
        Cron("0 3 * * 1-5", "Europe/London"),
        Every(0.25),
        Every(900.0, utc("2026-01-01T00:00:07")),
        At(utc("2026-11-29T03:00")),
    ],
)
def test_to_json_and_back(schedule: Cron | Every | At) -> None:
    assert schedule_from_dict(schedule.to_dict()) == schedule


def test_the_form_in_json() -> None:
    assert Cron("@daily", "UTC").to_dict() == {"cron": "0 0 * * *", "timezone": "UTC"}
    assert Every(90.0).to_dict() == {"every": 90.0, "anchor": "1970-01-01T00:00:00+00:00"}
    assert At(utc("2026-11-29T03:00")).to_dict() == {"at": "2026-11-29T03:00:00+00:00"}
    assert schedule_from_dict(None) is None


@pytest.mark.parametrize(
    "plain",
    [
        {},
        {"cron": "0 0 30 2 *", "timezone": "UTC"},
        {"cron": 5, "timezone": "UTC"},
        {"every": "5", "anchor": "x"},
        {"at": "x"},
    ],
)
def test_a_damaged_spec_is_refused(plain: dict[str, object]) -> None:
    with pytest.raises(ScheduleError):
        schedule_from_dict(plain)


def test_naive_instants_are_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        next_after(Every(60.0), datetime(2026, 1, 1))
    with pytest.raises(ValueError, match="negative"):
        due(Every(60.0), utc("2026-01-01"), utc("2026-01-02"), -1)


@pytest.mark.parametrize("schedule", [Cron("* * * * *", "Europe/London"), Every(60.0)])
def test_the_ends_of_time_are_quiet(schedule: Cron | Every) -> None:
    last = datetime.max.replace(tzinfo=UTC)
    first = datetime.min.replace(tzinfo=UTC)
    assert next_after(schedule, last - timedelta(days=1)) is None
    assert latest_upto(schedule, first + timedelta(days=1)) is None
    assert next_after(schedule, first + timedelta(days=1)) is not None
    assert due(schedule, utc("2026-01-02"), utc("2026-01-01"), 10) == Due()
