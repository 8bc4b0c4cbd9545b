"""Laws of the calendar, against a slow walker that knows nothing of spans: it looks at every minute."""

from __future__ import annotations

import json
import time
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from cronsim import CronSim
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler.core.bounds import Bounds, read_days_off
from scheduler.core.crontab import read_crontab
from scheduler.core.dst import Dst, DstGap, DstOverlap
from scheduler.core.instants import read_from, read_until
from scheduler.core.schedule import (
    COUNTED_AT_MOST,
    Cron,
    Every,
    due,
    latest_upto,
    next_after,
    parse_at,
    parse_cron,
    parse_every,
    schedule_from_dict,
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


INSTANTS = st.datetimes(datetime(2009, 1, 1), datetime(2028, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))
DAYS = st.dates(date(2009, 1, 1), date(2028, 1, 1)).map(date.isoformat)
EXCEPT = st.lists(DAYS | DAYS.map(lambda day: day[5:]), max_size=8)
BOUNDS = st.builds(
    lambda ends, days: Bounds(*(sorted(ends) if None not in ends else ends), except_=tuple(days)),
    st.tuples(st.none() | INSTANTS, st.none() | INSTANTS),
    EXCEPT,
)
DST = st.builds(Dst, st.sampled_from(DstGap), st.sampled_from(DstOverlap))
ZONES = st.sampled_from(sorted({zone for zone, _ in CHANGES}))
SCHEDULES = st.builds(Cron, LINES, ZONES, DST, BOUNDS) | st.builds(
    Every, st.integers(600, 10**6).map(float), INSTANTS, BOUNDS, ZONES
)


@settings(max_examples=80, deadline=None)
@given(SCHEDULES, st.lists(INSTANTS, min_size=3, max_size=3, unique=True))
def test_a_stretch_is_the_sum_of_its_parts(schedule: Cron | Every, instants: list[datetime]) -> None:
    start, middle, end = sorted(instants)
    end = min(end, start + timedelta(days=20))
    middle = min(middle, end)
    whole, first, second = (due(schedule, a, b, 10**6).ticks for a, b in ((start, end), (start, middle), (middle, end)))
    assert whole == first + second
    assert len({tick_key(schedule, tick) for tick in whole}) == len(whole)
    assert latest_upto(schedule, end) == (whole[-1] if whole else latest_upto(schedule, start))


@settings(max_examples=80, deadline=None)
@given(SCHEDULES, INSTANTS)
def test_going_forth_and_back_ends_where_it_began(schedule: Cron | Every, at: datetime) -> None:
    for _ in range(4):
        tick = next_after(schedule, at)
        before = latest_upto(schedule, at)
        if before is not None:
            assert before <= at
        if tick is None:
            return
        assert tick > at
        assert latest_upto(schedule, tick) == tick
        assert latest_upto(schedule, tick - timedelta(microseconds=1)) == before
        assert due(schedule, at, tick, 1).ticks == (tick,)
        at = tick


@settings(max_examples=80, deadline=None)
@given(SCHEDULES, INSTANTS)
def test_no_tick_leaves_its_bounds(schedule: Cron | Every, at: datetime) -> None:
    tick, bounds = next_after(schedule, at), schedule.bounds
    if tick is None:
        return
    assert bounds.from_ is None or tick >= bounds.from_
    assert bounds.until is None or tick <= bounds.until
    day = tick.astimezone(load_zone(schedule.timezone)).date().isoformat()
    assert day not in bounds.except_
    assert day[5:] not in bounds.except_


@settings(max_examples=100, deadline=None)
@given(SCHEDULES)
def test_every_schedule_comes_back_from_json(schedule: Cron | Every) -> None:
    assert schedule_from_dict(json.loads(json.dumps(schedule.to_dict()))) == schedule


@settings(max_examples=60, deadline=None)
@given(
    LINES,
    st.sampled_from([("Europe/London", "Etc/UTC"), ("America/New_York", "Etc/GMT+5")]),
    st.dates(date(2025, 1, 1), date(2027, 1, 1)),
)
def test_run_keys_survive_other_zone_data(line: str, zones: tuple[str, str], day: date) -> None:
    """Data that know of no summer time stand for older ones: a day without a change of clocks has the same keys."""
    zone = load_zone(zones[0])
    hours = [datetime(day.year, day.month, day.day, hour, tzinfo=zone) for hour in range(24)]
    if len({hour.utcoffset() for hour in [*hours, hours[0] - timedelta(hours=4), hours[-1] + timedelta(hours=4)]}) > 1:
        return
    there, here = (_keys(parse_cron(line, name), hours[0]) for name in zones)
    of_day = day.isoformat()
    assert {key for key in there if key.startswith(of_day)} == {key for key in here if key.startswith(of_day)}


def _keys(cron: Cron, midnight: datetime) -> set[str]:
    """Of the day and its neighbours, without the zone's name."""
    found = due(cron, midnight - timedelta(days=1), midnight + timedelta(days=2), 10**5).ticks
    return {tick_key(cron, tick).partition("[")[0] for tick in found}


TEXTS = st.text(max_size=60) | st.text("HhLW*/-,()0123456789 ?#@monfrijadely:TZ+.\u0661\uff11\t", max_size=60)


@settings(max_examples=500, deadline=None)
@given(TEXTS, st.sampled_from(["UTC", "Europe/London", "Pacific/Apia"]))
@example("H(" * 5000, "UTC")
@example("0-59/1," * 5000 + "0 * * * *", "UTC")
@example("9" * 100_000, "UTC")
@example("0001-01-01T00:00:00-23:59", "UTC")
@example("9999-12-31T23:59:59+23:59", "UTC")
@example("9999-12-31", "Pacific/Apia")
@example("2011-12-30", "Pacific/Apia")
def test_any_text_is_a_schedule_or_is_refused(text: str, zone: str) -> None:
    began = time.process_time()
    for parse in (
        lambda: parse_cron(text, zone),
        lambda: parse_cron(text, zone, name="any"),
        lambda: parse_every(text),
        lambda: parse_at(text, zone),
        lambda: read_from(text, zone),
        lambda: read_until(text, zone),
        lambda: read_days_off((text,)),
        lambda: parse_cron("0 3 * * *", text),
        lambda: parse_at("2026-01-01", text),
    ):
        said = "taken"
        try:
            parse()
        except ValueError as error:
            said = str(error)
        assert said
        assert "\n" not in said
        assert len(said) < 500
    assert time.process_time() - began < 1
