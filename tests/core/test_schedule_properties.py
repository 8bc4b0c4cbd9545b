"""Laws of the calendar, against a slow walker that knows nothing of spans: it looks at every minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.crontab import read_crontab
from scheduler.core.schedule import (
    COUNTED_AT_MOST,
    Cron,
    Every,
    due,
    latest_upto,
    next_after,
    parse_cron,
    tick_key,
)
from scheduler.core.zones import load_zone

MINUTE = timedelta(minutes=1)

# Days on which clocks change: an hour, half an hour, two hours, at midnight, and a calendar day left out.
CHANGES = [
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Europe/London", "2026-10-25"),
    ("Europe/Dublin", "2026-03-29"),
    ("Australia/Lord_Howe", "2026-10-03"),
    ("Australia/Lord_Howe", "2026-04-04"),
    ("Antarctica/Troll", "2026-03-29"),
    ("Antarctica/Troll", "2026-10-25"),
    ("Africa/Cairo", "2026-04-23"),
    ("Africa/Cairo", "2026-10-29"),
    ("America/Havana", "2026-03-08"),
    ("Pacific/Apia", "2011-12-30"),
    ("Antarctica/Casey", "2009-10-17"),
    ("Antarctica/Casey", "2010-03-04"),
    ("Asia/Kolkata", "2026-06-01"),
    ("UTC", "2026-12-31"),
]


@st.composite
def fields(draw: st.DrawFn, low: int, high: int) -> str:
    kind = draw(st.sampled_from(["*", "*/n", "a", "a-b", "a-b/n", "list"]))
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    step = draw(st.integers(1, high))
    if kind == "list":
        return ",".join(str(draw(st.integers(low, high))) for _ in range(draw(st.integers(2, 4))))
    shapes = {
        "*": "*",
        "*/n": f"*/{step}",
        "a": f"{first}",
        "a-b": f"{first}-{last}",
        "a-b/n": f"{first}-{last}/{step}",
    }
    return shapes[kind]


LINES = st.builds(
    lambda minute, hour, days: f"{minute} {hour} {days}",
    fields(0, 59),
    fields(0, 23),
    st.sampled_from(["* * *", "* * *", "*/2 * *", "1-15 * *", "* * 0,3,5", "8 * 1-5"]),
)


def walk(cron: Cron, after: datetime, upto: datetime) -> list[datetime]:
    """Every tick in (after, upto], by looking at each minute's wall clock and at the minute before it."""
    line, zone = read_crontab(cron.expression), load_zone(cron.timezone)

    def matches(wall: datetime) -> bool:
        return wall.month in line.months and line.has_day(wall.date()) and wall.hour * 60 + wall.minute in line.minutes

    found = []
    at = after.replace(second=0, microsecond=0) + MINUTE
    while at <= upto:
        local, before = at.astimezone(zone), (at - MINUTE).astimezone(zone)
        wall, last = local.replace(tzinfo=None), before.replace(tzinfo=None)
        jump = wall - last - MINUTE
        ticks = matches(wall)
        if line.fixed and timedelta(0) < jump <= timedelta(hours=3):
            missed = int(jump / MINUTE)
            ticks = ticks or any(matches(last + MINUTE * n) for n in range(1, missed + 1))
        if line.fixed and local.fold:
            first_pass = local.replace(fold=0).utcoffset()
            assert first_pass is not None
            assert local.utcoffset() is not None
            if first_pass - (local.utcoffset() or timedelta(0)) <= timedelta(hours=3):
                ticks = False
        if ticks:
            found.append(at)
        at += MINUTE
    return found


def forward(cron: Cron, after: datetime, upto: datetime) -> list[datetime]:
    found = []
    tick = next_after(cron, after)
    while tick is not None and tick <= upto:
        found.append(tick)
        tick = next_after(cron, tick)
    return found


@settings(max_examples=120, deadline=None)
@given(LINES, st.sampled_from(CHANGES), st.integers(-20 * 60, 0), st.integers(1, 26 * 60))
def test_both_directions_agree_with_the_walker(line: str, change: tuple[str, str], start: int, length: int) -> None:
    zone, day = change
    cron = parse_cron(line, zone)
    after = datetime.fromisoformat(f"{day}T12:00:00+00:00") + start * MINUTE
    upto = after + length * MINUTE
    wanted = walk(cron, after, upto)
    assert forward(cron, after, upto) == wanted
    assert list(due(cron, after, upto, 10_000).ticks) == wanted
    if wanted:
        assert latest_upto(cron, upto) == wanted[-1]


@settings(max_examples=60, deadline=None)
@given(LINES, st.sampled_from(CHANGES), st.integers(0, 40))
def test_due_is_the_newest_and_a_count_of_the_rest(line: str, change: tuple[str, str], limit: int) -> None:
    zone, day = change
    cron = parse_cron(line, zone)
    after = datetime.fromisoformat(f"{day}T00:00:00+00:00")
    upto = after + timedelta(days=1)
    wanted = walk(cron, after, upto)
    found = due(cron, after, upto, limit)
    cut = max(0, len(wanted) - limit)
    assert list(found.ticks) == wanted[cut:]
    assert found.older == cut
    assert found.older_last == (wanted[cut - 1] if cut else None)
    assert found.capped is False


@settings(max_examples=100, deadline=None)
@given(LINES, st.sampled_from(CHANGES))
def test_ticks_rise_and_each_has_its_own_key(line: str, change: tuple[str, str]) -> None:
    zone, day = change
    cron = parse_cron(line, zone)
    middle = datetime.fromisoformat(f"{day}T12:00:00+00:00")
    ticks = due(cron, middle - timedelta(days=1), middle + timedelta(days=1), 10_000).ticks
    assert all(earlier < later for earlier, later in pairwise(ticks))
    assert len({tick_key(cron, tick) for tick in ticks}) == len(ticks)
    assert all(tick.tzinfo is UTC for tick in ticks)


@settings(max_examples=100, deadline=None)
@given(LINES, st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1)))
def test_in_utc_cronsim_agrees(line: str, start: datetime) -> None:
    cron = parse_cron(line, "UTC")
    after = start.replace(tzinfo=UTC)
    oracle = CronSim(read_crontab(line).plain, after)
    at = after
    for _ in range(5):
        tick = next_after(cron, at)
        assert tick == next(oracle)
        assert tick is not None
        at = tick


@settings(max_examples=100, deadline=None)
@given(
    st.integers(100_000, 10**12),
    st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1)),
    st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1)),
)
def test_every_is_a_grid_around_its_anchor(period: int, anchor: datetime, start: datetime) -> None:
    every = Every(min(period / 1_000_000, 3650 * 86400.0), anchor.replace(tzinfo=UTC))
    step = timedelta(microseconds=round(every.seconds * 1_000_000))
    now = start.replace(tzinfo=UTC)
    latest = latest_upto(every, now)
    following = next_after(every, now)
    assert latest is not None
    assert following is not None
    assert latest <= now < following
    assert following - latest == step
    assert (latest - every.anchor) % step == timedelta(0)
    assert due(every, latest - 3 * step, now, 2).ticks == (latest - step, latest)


@pytest.mark.parametrize("line", ["* * * * *", "*/2 1-22 * * *", "0 0 29 2 0-7"])
def test_25_years_of_absence_are_counted_up_to_a_bound(line: str) -> None:
    cron = parse_cron(line, "Europe/London")
    now = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)
    found = due(cron, now.replace(year=2001), now, 100)
    assert len(found.ticks) == 100
    if found.capped:
        assert found.older == COUNTED_AT_MOST
    assert found.older_last is not None
    assert found.older_last < found.ticks[0]
    assert next_after(cron, found.older_last) == found.ticks[0]


def test_exactly_the_bound_is_not_capped() -> None:
    every = Every(60.0)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert due(every, now - MINUTE * (COUNTED_AT_MOST + 5), now, 5).capped is False
    more = due(every, now - MINUTE * (COUNTED_AT_MOST + 6), now, 5)
    assert (more.older, more.capped) == (COUNTED_AT_MOST, True)
