"""What an edit does to keys and ticks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.core.diff import MOST_TICKS, changed_keys, changed_ticks
from scheduler.core.model import JobSpec, Period
from scheduler.core.schedule import At, Cron, Every, Schedule

AFTER = datetime(2026, 11, 29, 12, tzinfo=UTC)
WEEK = AFTER + timedelta(days=7)


def job(schedule: Schedule | None, timezone: str = "UTC") -> JobSpec:
    return JobSpec("j", schedule, "m:f", timezone=timezone)


def changes(old: JobSpec | None, new: JobSpec | None, until: datetime = WEEK) -> list[str]:
    def shown(tick: datetime | None) -> str:
        return "-" if tick is None else f"{tick:%d.%H:%M}"

    return [f"{one.change} {shown(one.old)} {shown(one.new)}" for one in changed_ticks(old, new, AFTER, until).changes]


def test_a_tick_that_moved_within_its_day() -> None:
    found = changes(job(Cron("0 3 * * *", "UTC")), job(Cron("0 4 * * *", "UTC")), AFTER + timedelta(days=2))
    assert found == ["moved 30.03:00 30.04:00", "moved 01.03:00 01.04:00"]


def test_the_day_is_that_of_the_jobs_zone() -> None:
    tokyo = [job(Cron(line, "Asia/Tokyo"), "Asia/Tokyo") for line in ("0 1 * * *", "0 23 * * *")]
    found = changes(*tokyo, until=AFTER + timedelta(hours=27))
    assert found == ["added - 29.14:00", "moved 29.16:00 30.14:00"]


def test_ticks_that_both_have_are_none() -> None:
    assert changes(job(Every(3600.0)), job(Cron("0 * * * *", "UTC"))) == []
    found = changes(job(Cron("0 3 * * *", "UTC")), job(Cron("0 3,15 * * *", "UTC")), AFTER + timedelta(days=1))
    assert found == ["added - 29.15:00"]


def test_more_or_fewer_on_a_day_come_and_go() -> None:
    found = changes(job(Cron("0 2,3,5 * * *", "UTC")), job(Cron("0 5,7 * * *", "UTC")), AFTER + timedelta(days=1))
    assert found == ["removed 30.02:00 -", "removed 30.03:00 -", "added - 30.07:00"]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (None, job(At(AFTER + timedelta(hours=1))), ["added - 29.13:00"]),
        (job(At(AFTER + timedelta(hours=1))), None, ["removed 29.13:00 -"]),
        (job(At(AFTER + timedelta(hours=1))), job(None), ["removed 29.13:00 -"]),
        (job(At(AFTER)), job(None), []),
        (None, job(None), []),
        (job(Every(1.0)), job(Every(1.0)), []),
    ],
)
def test_jobs_that_come_and_go(old: JobSpec | None, new: JobSpec | None, found: list[str]) -> None:
    assert changes(old, new) == found


def test_very_many_ticks_are_compared_up_to_a_point() -> None:
    found = changed_ticks(job(Every(1.0)), job(Every(2.0)), AFTER, WEEK)
    assert found.until == AFTER + timedelta(seconds=MOST_TICKS)
    assert len(found.changes) == MOST_TICKS // 2
    assert {one.change.value for one in found.changes} == {"removed"}


def test_keys() -> None:
    old, new = {"a": 1, "b": 2, "c": [3]}, {"b": 2, "c": [4], "d": False}
    assert [(one.change.value, one.key, one.old, one.new) for one in changed_keys(old, new)] == [
        ("changed", "c", [3], [4]),
        ("added", "d", None, False),
        ("removed", "a", 1, None),
    ]


def test_with_once_per_the_ticks_that_run() -> None:
    def daily(line: str, once_per: Period | None = Period.DAY) -> JobSpec:
        return JobSpec("j", Cron(line, "UTC"), "m:f", once_per=once_per)

    tomorrow = AFTER + timedelta(days=1)
    assert changes(daily("0 1,2 * * *"), daily("0 1,3 * * *")) == []
    assert changes(daily("0 1 * * *"), daily("0 1,14 * * *")) == [], "today has run at 01:00"
    assert changes(daily("0 14 * * *"), daily("0 1,15 * * *"), tomorrow) == [
        "moved 29.14:00 29.15:00",
        "added - 30.01:00",
    ]
    assert changes(daily("0 1,14 * * *", None), daily("0 1,14 * * *"), tomorrow + timedelta(hours=6)) == [
        "removed 30.14:00 -"
    ], "its runs of before have keys of their own"
