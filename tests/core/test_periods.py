"""Of the ticks of a period the first one runs: held against a walk over every tick and a set of keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

import pytest

from scheduler.core.model import JobSpec, Period
from scheduler.core.periods import Cover, latest_period, period_key, runs_after, ticks_after
from scheduler.core.schedule import At, Cron, Every, Schedule, next_after, run_key

AFTER = datetime(2026, 10, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def job(schedule: Schedule | None, once_per: Period | None = Period.DAY, timezone: str = "UTC") -> JobSpec:
    return JobSpec("j", schedule, "m:f", timezone=timezone, once_per=once_per)


def walked(spec: JobSpec, after: datetime, until: datetime) -> list[datetime]:
    keys, found = set(), []
    assert spec.schedule is not None
    tick = next_after(spec.schedule, after)
    while tick is not None and tick <= until:
        key = run_key(spec.schedule, tick, spec.once_per, spec.timezone)
        if key not in keys:
            found.append(tick)
        keys.add(key)
        tick = next_after(spec.schedule, tick)
    return found


@pytest.mark.parametrize("zone", ["UTC", "Europe/London", "Asia/Tokyo", "America/St_Johns", "Pacific/Apia"])
@pytest.mark.parametrize("once_per", [None, *Period])
@pytest.mark.parametrize("line", ["*/30 * * * *", "0 1,2 * * *", "30 22 * * 1,5", "0 0 1 * *"])
def test_the_first_tick_of_each_period(zone: str, once_per: Period | None, line: str) -> None:
    """Among these are a midnight that came twice (St. John's, 2006) and a day that a zone left out (Apia, 2011)."""
    spec = job(Cron(line, zone), once_per, zone)
    for after in (AFTER, datetime(2006, 10, 27, 3, tzinfo=UTC), datetime(2011, 12, 28, 3, tzinfo=UTC)):
        until = after + 40 * DAY
        assert list(takewhile(until.__ge__, runs_after(spec, after))) == walked(spec, after, until)


def test_a_year_of_minutes_is_stepped_through_by_its_months() -> None:
    spec = job(Every(0.1), Period.MONTH)
    found = list(islice(runs_after(spec, AFTER), 1200))
    assert found[1:] == [datetime(2026 + n // 12, n % 12 + 1, 1, tzinfo=UTC) for n in range(10, 10 + 1199)]


def test_a_period_that_has_its_run() -> None:
    spec = job(Cron("0 1,14 * * *", "UTC"))
    assert next(runs_after(spec, AFTER)) == AFTER + timedelta(hours=2)
    had = latest_period(spec, AFTER)
    assert had == "2026-10-20"
    assert next(runs_after(spec, AFTER, had)) == AFTER + timedelta(hours=13)
    assert latest_period(job(At(AFTER + DAY)), AFTER) is None


def test_it_ends_with_the_calendar() -> None:
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        for once_per in Period:
            spec = job(Every(3600.0), once_per, zone)
            assert len(list(runs_after(spec, datetime(2999, 12, 31, 12, tzinfo=UTC)))) in (1, 2)


def test_nothing_is_covered_without_once_per() -> None:
    spec = job(Every(3600.0), None)
    assert {cover for _, cover in islice(ticks_after(spec, AFTER), 50)} == {None}
    assert list(ticks_after(job(None), AFTER)) == list(runs_after(job(None), AFTER)) == []
    assert period_key(spec, AFTER) is latest_period(spec, AFTER) is None


def test_what_is_covered_and_what_is_in_doubt() -> None:
    spec = job(Cron("0 1,14,15 * * *", "UTC"))
    covers = [cover for _, cover in islice(ticks_after(spec, AFTER), 5)]
    assert covers == [Cover.PERHAPS, Cover.COVERED, None, Cover.COVERED, Cover.COVERED]
