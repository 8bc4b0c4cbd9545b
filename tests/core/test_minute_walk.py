"""The calendar against a slow walk over every minute: zones of every kind, lines of every kind, both directions.

A sample around each clock change runs always; all of it, two whole years of each zone with each line, under `full`.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from minute_walk import Rules, WallClock, changes, two_years

from scheduler.core.bounds import Bounds
from scheduler.core.cron_walk import Calendar, ticks_after
from scheduler.core.crontab import read_crontab
from scheduler.core.dst import Dst, DstGap, DstOverlap
from scheduler.core.schedule import Cron, due, latest_upto, next_after, parse_cron

ZONES = """
UTC Etc/GMT+12 Etc/GMT-14 EST Asia/Kolkata Asia/Kathmandu Asia/Yangon Asia/Tokyo Asia/Shanghai Asia/Singapore
Pacific/Kiritimati Pacific/Marquesas Pacific/Pago_Pago Pacific/Honolulu Pacific/Chatham Pacific/Norfolk
Pacific/Auckland Pacific/Easter Australia/Lord_Howe Australia/Adelaide Australia/Sydney Australia/Eucla
Australia/Darwin Antarctica/Troll Antarctica/Macquarie Antarctica/McMurdo Africa/Cairo Africa/Casablanca
Africa/El_Aaiun Africa/Lagos Africa/Johannesburg America/New_York America/Chicago America/Denver America/Phoenix
America/Los_Angeles America/Anchorage America/Adak America/St_Johns America/Halifax America/Havana America/Nuuk
America/Scoresbysund America/Miquelon America/Santiago America/Asuncion America/Sao_Paulo America/Caracas
America/Port-au-Prince Atlantic/Azores Europe/London Europe/Dublin Europe/Lisbon Europe/Berlin Europe/Chisinau
Europe/Kyiv Europe/Istanbul Asia/Beirut Asia/Jerusalem Asia/Gaza Asia/Tehran
"""
FORMER = {
    "Pacific/Apia": 2010,  # a calendar day left out
    "Pacific/Fakaofo": 2010,
    "Antarctica/Casey": 2009,  # jumps of three hours, both ways
    "Asia/Pyongyang": 2015,  # half an hour back at midnight, and forth
    "America/Sao_Paulo": 2017,  # gaps at midnight
    "Asia/Amman": 2021,
    "Europe/Volgograd": 2018,
    "America/Caracas": 2015,
    "Europe/Samara": 2010,
    "Asia/Tehran": 2021,
}
STRETCHES = [*((zone, 2026) for zone in ZONES.split()), *FORMER.items()]
LINES = """
* 0-4 * * *
*/7 * * * *
*/30 1-3 * * *
0 * * * *
0 */2 * * *
*/15 * * * 0
17 * 1 * *
0 0 * * *
1 0 * * *
30 0 * * *
59 23 * * *
0 1 * * *
30 1 * * *
15,45 1 * * *
0 2 * * *
5 2 * * *
30 2 * * *
45 2 * * *
0 3 * * *
0 0,1,2,3 * * *
0-59 2 * * *
10-20/3,40 1-3 * * *
*/20 0 * * *
0 0-23 * * *
30 23,0-2 * * 0
0 9 * * 1-5
0 2 * * sun
15 2 8 3 *
0 3 29 2 *
0 0 31 * *
30 2 1-7 * 0
0 2 */2 * 0
0 1 13 * 5
0 4 1,15 * */2
0 0 1 jan,jul *
30 1 25-31 oct *
30 1 25-31 3,10 7
0 6 * * 5-7
5 0-4/2 * 3,4,9-11 *
0 12 28-31 * *
""".strip().splitlines()


def cron_of(line: str, zone: str, rules: Rules) -> Cron:
    cron = parse_cron(line, zone)
    bounds = Bounds(rules.first, rules.last, rules.days_off)
    return replace(cron, dst=Dst(DstGap(rules.gap), DstOverlap(rules.overlap)), bounds=bounds)


def some_rules(chance: random.Random, start: datetime, end: datetime) -> Rules:
    """Words for clock changes, bounds and days off, none of them always."""
    stretch = end - start
    middle = start + stretch / 2
    days = [(start + chance.random() * stretch).date().isoformat() for _ in range(chance.randint(0, 30))]
    yearly = [(start + chance.random() * stretch).date().isoformat()[5:] for _ in range(chance.randint(0, 3))]
    return Rules(
        gap=chance.choice(["shift", "skip"]),
        overlap=chance.choice(["first", "both"]),
        days_off=tuple(sorted({*days, *yearly, middle.date().isoformat()})) if chance.random() < 0.7 else (),
        first=start + chance.random() * stretch / 4 if chance.random() < 0.5 else None,
        last=end - chance.random() * stretch / 4 if chance.random() < 0.5 else None,
    )


def differences(clock: WallClock, zone: str, line: str, rules: Rules, chance: random.Random) -> list[str]:
    """Where the calendar and the walk differ, over the whole stretch and from a few instants in it."""
    start = clock.start - timedelta(seconds=1)
    end = clock.start + timedelta(minutes=len(clock.walls) - 1, seconds=59)
    wanted, cron = clock.ticks(line, rules), cron_of(line, zone, rules)
    calendar = Calendar(read_crontab(line), zone, cron.dst, cron.bounds.days_off)
    forwards = list(ticks_after(calendar, cron.bounds.after(start), cron.bounds.upto(end)))
    backwards = list(due(cron, start, end, 10_000_000).ticks)
    wrong = []
    for way, got in (("forwards", forwards), ("backwards", backwards)):
        if got != wanted:
            odd = sorted(set(got) ^ set(wanted))[:3]
            wrong.append(f"{line} in {zone} {way} with {rules}: {[str(tick) for tick in odd]}")
    for _ in range(10):
        at = start + chance.random() * (end - start)
        here = bisect_right(wanted, at)
        following, latest = next_after(cron, at), latest_upto(cron, at)
        if here < len(wanted) and following != wanted[here]:
            wrong.append(f"{line} in {zone} with {rules}: after {at} comes {wanted[here]}, not {following}")
        if here > 0 and latest != wanted[here - 1]:
            wrong.append(f"{line} in {zone} with {rules}: before {at} came {wanted[here - 1]}, not {latest}")
    return wrong


def test_the_table_is_as_large_as_it_says() -> None:
    assert len(STRETCHES) >= 60
    assert len(LINES) == 40
    assert len(set(LINES)) == 40


def test_a_sample_around_each_clock_change() -> None:
    chance, wrong, looked = random.Random(7), [], 0
    for zone, year in STRETCHES:
        start, end = two_years(year)
        changed = changes(zone, start, end)
        for middle in chance.sample(changed, min(1, len(changed))) or [start + timedelta(days=59)]:
            clock = WallClock(zone, middle - timedelta(days=1), middle + timedelta(days=2))
            for line in ["* * * * *", *chance.sample(LINES, 4)]:
                looked += 1
                wrong += differences(clock, zone, line, Rules(), chance)
                wrong += differences(clock, zone, line, some_rules(chance, middle, middle + timedelta(days=1)), chance)
    assert looked > 300
    assert wrong == []


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("zone", "year"), STRETCHES)
def test_two_years_of_each_line(zone: str, year: int) -> None:
    start, end = two_years(year)
    clock, chance, wrong = WallClock(zone, start, end), random.Random(f"{zone} {year}"), []
    for line in LINES:
        wrong += differences(clock, zone, line, Rules(), chance)
        if chance.random() < 0.5:
            wrong += differences(clock, zone, line, some_rules(chance, start, end), chance)
    assert wrong == []


def test_the_walk_finds_what_everybody_knows() -> None:
    clock = WallClock("America/New_York", datetime(2026, 3, 8, tzinfo=UTC), datetime(2026, 3, 9, tzinfo=UTC))
    assert clock.ticks("30 2 * * *") == [datetime(2026, 3, 8, 7, tzinfo=UTC)]
    assert clock.ticks("30 2 * * *", Rules(gap="skip")) == []
    assert clock.ticks("30 2 * * *", Rules(days_off=("03-08",))) == []
    clock = WallClock("America/New_York", datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC))
    assert clock.ticks("30 1 * * *") == [datetime(2026, 11, 1, 5, 30, tzinfo=UTC)]
    assert len(clock.ticks("30 1 * * *", Rules(overlap="both"))) == 2
