"""What broke other schedulers' calendars, each as a test of its whole kind: parsing, zones, missed ticks."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from scheduler.config.jobs_file import parse
from scheduler.core.errors import ConfigInvalid
from scheduler.core.model import FirstSight, JobSpec, Misfire, MisfirePolicy, SkipReason, Status, Trigger
from scheduler.core.policy import decide_tick, first_watermark
from scheduler.core.schedule import Cron, Every, due, next_after, parse_at, parse_cron

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)  # a Thursday
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def ticks(line: str, count: int, after: datetime = NEW_YEAR, zone: str = "UTC") -> list[datetime]:
    found, cron = [], parse_cron(line, zone)
    for _ in range(count):
        tick = next_after(cron, after)
        assert tick is not None
        found.append(tick)
        after = tick
    return found


def shown(line: str, count: int, after: datetime = NEW_YEAR) -> list[str]:
    return [f"{tick:%m-%dT%H:%M}" for tick in ticks(line, count, after)]


def weekdays(line: str) -> list[str]:
    return sorted({DAYS[tick.weekday()] for tick in ticks(line, 40)}, key=DAYS.index)


def refusal(line: str) -> str:
    """What the file's reader says, with its place."""
    with pytest.raises(ConfigInvalid) as caught:
        parse(f'version: 1\njobs:\n  j:\n    call: m:f\n    schedule: "{line}"\n'.encode())
    (problem,) = caught.value.problems
    assert str(problem).startswith("jobs.yaml:5:5: jobs.j.schedule: ")
    return problem.message


@pytest.mark.case("C001")
def test_weekday_numbers_start_at_sunday() -> None:
    assert shown("30 7 * * 4", 3, NEW_YEAR + timedelta(hours=8)) == ["01-08T07:30", "01-15T07:30", "01-22T07:30"]
    for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat")):
        assert weekdays(f"0 0 * * {number}") == weekdays(f"0 0 * * {name}") == [name]
    assert weekdays("0 0 * * 1-5") == list(DAYS[:5])
    assert weekdays("0 0 * * */2") == ["tue", "thu", "sat", "sun"]


@pytest.mark.case("C002")
def test_seven_is_sunday_also_at_the_end_of_a_range() -> None:
    assert shown("15 10,12 * * 1,7", 4) == ["01-04T10:15", "01-04T12:15", "01-05T10:15", "01-05T12:15"]
    assert weekdays("0 6 * * 7") == weekdays("0 6 * * 0") == ["sun"]
    assert weekdays("0 6 * * 5-7") == ["fri", "sat", "sun"]
    assert weekdays("0 6 * * 0-7") == list(DAYS)
    assert weekdays("0 6 * * 1-7/3") == ["mon", "thu", "sun"]


@pytest.mark.case("C003")
def test_both_day_fields_mean_either() -> None:
    after = datetime(2021, 1, 9, 17, 48, 39, tzinfo=UTC)
    found = shown("0 5 2-8 * 4", 5, after)
    assert found == ["01-14T05:00", "01-21T05:00", "01-28T05:00", "02-02T05:00", "02-03T05:00"]
    for day, weekday in (("13", "5"), ("1,15", "mon"), ("1-7", "0"), ("31", "1-5")):
        days = {tick.date() for tick in ticks(f"0 0 {day} * {weekday}", 60)}
        apart = {tick.date() for one in (f"0 0 {day} * *", f"0 0 * * {weekday}") for tick in ticks(one, 60)}
        assert days <= apart
        assert days == {one for one in apart if one <= max(days)}


@pytest.mark.case("C004")
def test_a_field_that_begins_with_a_star_is_a_star_with_any_step() -> None:
    assert shown("0 0 */2 * 1", 4) == ["01-05T00:00", "01-19T00:00", "02-09T00:00", "02-23T00:00"]
    assert shown("0 0 */1 * 1", 2) == shown("0 0 * * 1", 2)
    assert shown("0 0 13 * */2", 2) == ["01-13T00:00", "06-13T00:00"]
    assert shown("0 0 1-31/2 * 1", 4) == ["01-03T00:00", "01-05T00:00", "01-07T00:00", "01-09T00:00"], "no star: either"


@pytest.mark.case("C005")
@pytest.mark.parametrize(
    ("line", "better"), [("0 6 1/5 * *", "1-31/5"), ("5/15 * * * *", "5-59/15"), ("0 0 * * 1/2", "1-7/2")]
)
def test_a_step_on_one_number_is_refused(line: str, better: str) -> None:
    assert f"a step needs a range: {better} or */" in refusal(line)
    wanted = next(number for number, field in enumerate(line.split()) if "/" in field)
    ticks(" ".join(better if number == wanted else field for number, field in enumerate(line.split())), 3)


@pytest.mark.case("C006")
@pytest.mark.parametrize(
    ("line", "better"),
    [
        ("0 8 * * FRI-MON", "FRI,SAT,SUN,MON"),
        ("0 8 * * 5-1", "5,6,0,1"),
        ("0 22-2 * * *", "22,23,0,1,2"),
        ("10-5 * * * *", "10-59,0-5"),
        ("0 0 * nov-feb *", "NOV,DEC,JAN,FEB"),
        ("0 0 28-3 * *", "28,29,30,31,1,2,3"),
    ],
)
def test_a_reversed_range_is_refused_with_what_was_meant(line: str, better: str) -> None:
    assert refusal(line).endswith(f"runs backwards and does not wrap; write {better}")
    wanted = next(number for number, field in enumerate(line.split()) if "-" in field)
    ticks(" ".join(better if number == wanted else field for number, field in enumerate(line.split())), 3)


@pytest.mark.case("C007")
def test_dates_that_never_come_are_refused_and_rare_ones_are_found_at_once() -> None:
    for line in ("0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 feb,apr *", "0 0 30,31 2 */2"):
        assert refusal(line).startswith("never fires: ")
    began = time.process_time()
    assert shown("0 0 29 2 *", 1) == ["02-29T00:00"]
    assert ticks("0 0 29 2 */7", 1)[0].year == 2032  # the next 29 February that is a Sunday
    assert ticks("0 0 29 2 */7", 1, datetime(2088, 3, 1, tzinfo=UTC))[0].year == 2128, "40 years, over 2100"
    assert time.process_time() - began < 10


@pytest.mark.case("C009")
@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("0 0 3 * * *", 6),
        ("0 3 * * * 2027", 6),
        ("* * * * * *", 6),
        ("0 0 3 ? * MON 2027", 7),
        ("0 3 * *", 4),
        ("5", 1),
    ],
)
def test_any_other_number_of_fields_is_refused(line: str, count: int) -> None:
    assert f"expected 5 fields (minute hour day month weekday), got {count}" in refusal(line)


@pytest.mark.case("C011")
def test_steps_start_anew_at_each_hour() -> None:
    assert [one[6:] for one in shown("*/40 * * * *", 4)] == ["00:40", "01:00", "01:40", "02:00"]
    assert [one[6:] for one in shown("*/61 * * * *", 2)] == ["01:00", "02:00"]
    assert [one[6:] for one in shown("7-59/25 * * * *", 4)] == ["00:07", "00:32", "00:57", "01:07"]
    every = Every(40 * 60.0)
    assert [f"{tick:%H:%M}" for tick in due(every, NEW_YEAR, NEW_YEAR + timedelta(hours=2), 9).ticks] == [
        "00:40", "01:20", "02:00"
    ]  # fmt: skip


@pytest.mark.case("C012")
@pytest.mark.parametrize("line", ["5, * * * *", ",5 * * * *", ", * * * *", "5,,6 * * * *", "0 0 * * mon,"])
def test_empty_items_are_refused(line: str) -> None:
    assert refusal(line).endswith("a list has an empty item; take out the extra comma")


@pytest.mark.case("C015")
def test_nicknames() -> None:
    assert shown("@weekly", 1) == ["01-04T00:00"]
    assert ticks("@weekly", 1, zone="Asia/Tokyo") == [datetime(2026, 1, 3, 15, tzinfo=UTC)]
    assert [shown(name, 1)[0] for name in ("@hourly", "@daily", "@midnight", "@monthly")] == [
        "01-01T01:00", "01-02T00:00", "01-02T00:00", "02-01T00:00"
    ]  # fmt: skip
    assert [tick.year for name in ("@yearly", "@annually") for tick in ticks(name, 1)] == [2027, 2027]
    for name, said in (
        ("@reboot", "no meaning among replicas"),
        ("@every 5m", "every: 5m"),
        ("@DAILY", "lower case, @daily"),
        ("@fortnightly", "is not known"),
        ("@dayly", 'did you mean "@daily"?'),
        ("@", "is not known"),
    ):
        assert said in refusal(name)


@pytest.mark.case("C017")
@pytest.mark.parametrize("prefix", ["CRON_TZ=Europe/Berlin", "TZ=UTC", "cron_tz=UTC", "TZ=Nowhere/At_all"])
def test_a_zone_inside_the_line_is_refused(prefix: str) -> None:
    assert refusal(f"{prefix} 0 3 * * *") == "a zone inside the expression is not allowed: use the `timezone:` key"


@pytest.mark.case("C028")
def test_intervals_are_elapsed_time_and_never_anchored_anew() -> None:
    anchor = parse_at("2026-10-31T09:00", "America/New_York").instant
    daily = Every(86400.0, anchor)
    found = due(daily, anchor - timedelta(seconds=1), anchor + timedelta(days=3), 9).ticks
    assert {tick.hour for tick in found} == {13}, "09:00 in summer, 08:00 in winter"
    spring = Every(86400.0, parse_at("2026-03-07T02:30", "America/New_York").instant)
    following = due(spring, spring.anchor, spring.anchor + timedelta(days=400), 999).ticks
    assert {(tick - spring.anchor) % timedelta(days=1) for tick in following} == {timedelta(0)}
    # whenever somebody asks, the grid is the same
    for minutes in range(0, 3000, 7):
        at = anchor + timedelta(minutes=minutes)
        tick = next_after(daily, at)
        assert tick is not None
        assert (tick - anchor) % timedelta(days=1) == timedelta(0)


def spec(**changes: object) -> JobSpec:
    return JobSpec(**{"name": "j", "schedule": Cron("0 3 * * *", "UTC"), "call": "m:f", **changes})  # type: ignore[arg-type]


@pytest.mark.case("C065")
@pytest.mark.parametrize("policy", list(MisfirePolicy))
@pytest.mark.parametrize("schedule", [Cron("* * * * *", "Europe/London"), Every(1.0)])
@pytest.mark.parametrize("away", [timedelta(days=3), timedelta(days=25 * 365)])
def test_any_number_of_missed_ticks_is_decided_in_bounded_time_and_rows(
    policy: MisfirePolicy, schedule: Cron | Every, away: timedelta
) -> None:
    minutely = spec(schedule=schedule, misfire=Misfire(policy=policy, grace=0.5, limit=20))
    now = datetime(2026, 11, 29, 12, 0, 0, 900_000, tzinfo=UTC)
    began = time.process_time()
    births = decide_tick(minutely, now - away, now)
    assert time.process_time() - began < 2
    assert len(births) == 21
    assert births[0].missed is not None
    runs = [birth for birth in births if birth.status is Status.RUNNING]
    assert len(runs) == {"latest": 1, "all": 20, "skip": 0}[policy]
    if policy is MisfirePolicy.LATEST:
        assert runs == [births[-1]]
    assert next_after(schedule, births[-1].scheduled_at) == next_after(schedule, now), "and it goes on from here"


@pytest.mark.case("C066")
def test_however_late_a_tick_is_it_runs_or_leaves_a_row() -> None:
    three = datetime(2026, 11, 29, 3, tzinfo=UTC)
    for policy in MisfirePolicy:
        for late in (0.0, 0.9, 1.1, 59.9, 60.0, 60.1, 3600.0, 86399.0, 86401.0):
            job = spec(misfire=Misfire(policy=policy))
            births = decide_tick(job, three - timedelta(minutes=1), three + timedelta(seconds=late))
            (birth,) = (one for one in births if one.scheduled_at == three)
            if late <= 60.0:
                assert (birth.status, birth.trigger) == (Status.RUNNING, Trigger.SCHEDULE), "late is not missed"
            elif policy is MisfirePolicy.SKIP or late > 86400.0:
                assert (birth.status, birth.skip_reason) == (Status.SKIPPED, SkipReason.MISSED)
            elif late < 86400.0:
                assert (birth.status, birth.trigger) == (Status.RUNNING, Trigger.CATCH_UP)


@pytest.mark.case("C070")
@pytest.mark.parametrize("hour", [0, 3, 14, 23])
@pytest.mark.parametrize("policy", list(MisfirePolicy))
def test_a_job_seen_first_owes_nothing(hour: int, policy: MisfirePolicy) -> None:
    job = spec(misfire=Misfire(policy=policy))
    seen = datetime(2026, 11, 29, hour, 0, 1, tzinfo=UTC)
    mark = first_watermark(job, seen)
    assert decide_tick(job, mark, seen) == ()
    following = next_after(Cron("0 3 * * *", "UTC"), seen)
    assert following is not None
    assert decide_tick(job, mark, following - timedelta(microseconds=1)) == ()
    (birth,) = decide_tick(job, mark, following)
    assert (birth.scheduled_at, birth.status) == (following, Status.RUNNING)
    eager = replace(job, misfire=Misfire(policy=policy, first_sight=FirstSight.RUN))
    assert len(decide_tick(eager, first_watermark(eager, seen), seen)) == 1


@pytest.mark.case("C029")
@pytest.mark.parametrize(
    ("zone", "said"),
    [
        ("Europe/Berlln", 'did you mean "Europe/Berlin"?'),
        ("'\"Europe/Berlin\"'", "without the quotes"),
        ("europe/berlin", 'did you mean "Europe/Berlin"?'),
        ("Local", "differs from host to host"),
        ("../../etc/passwd", "unknown timezone"),
        ("/usr/share/zoneinfo/UTC", "unknown timezone"),
        ("''", "unknown timezone"),
        ("CEST", "unknown timezone"),
        ("+01:00", "unknown timezone"),
        ("", "is empty; write e.g. Europe/London"),
    ],
)
def test_zones_that_are_none_are_refused_wherever_they_stand(zone: str, said: str) -> None:
    for text, place in (
        (f"version: 1\ntimezone: {zone}\njobs: {{}}\n", "jobs.yaml:2:1: timezone: "),
        (f"version: 1\njobs:\n  j:\n    call: m:f\n    timezone: {zone}\n", "jobs.yaml:5:5: jobs.j.timezone: "),
    ):
        with pytest.raises(ConfigInvalid) as caught:
            parse(text.encode())
        (problem,) = caught.value.problems
        assert str(problem).startswith(place)
        assert said in problem.message
