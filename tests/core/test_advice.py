"""What valid jobs do that their writers may not expect, one line at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.config.jobs_file import parse
from scheduler.core.advice import about_herds, advise
from scheduler.core.clock_changes import Mark, mark_of
from scheduler.core.model import JobSpec
from scheduler.core.schedule import At, Cron, Every, Schedule, next_after

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
GAP = "02:30 does not exist on 2027-03-28 in Europe/Berlin (the clocks jump to 03:00): "
TWICE = "02:30 happens twice on 2027-10-31 in Europe/Berlin: "


def said(lines: str) -> list[str]:
    """`key: message` of all advice about a file with one job of these lines."""
    body = "".join(f"    {line}\n" for line in lines.splitlines())
    plan = parse(f"version: 1\njobs:\n  j:\n    call: m:f\n{body}".encode())
    return [f"{one.path.removeprefix('jobs.j.')}: {one.message}" for one in advise(plan.jobs, NOW, plan.places)]


SILENT = [
    "schedule: 0 3 * * *\ntimeout: 1h",
    "schedule: 0 3 1,15 * *\ntimeout: 1h",
    "schedule: 0 3 25-31 * *\ntimeout: 1h",
    "schedule: 0 3 */2 * *\ntimeout: 1h",
    "schedule: 0 3 31 1,3,5 *\ntimeout: 1h",
    "schedule: 0 3 * * 1-5\ntimeout: 1h",
    "schedule: '*/15 */6 * * *'\ntimeout: 1m",
    "schedule: 30 2 * * *\ntimezone: Asia/Tokyo\ntimeout: 1h",
    "schedule: 0 3 * * *\ntimezone: Europe/Berlin\ntimeout: 1h",
    "schedule: 30 2 1 6 *\ntimezone: Europe/Berlin\ntimeout: 1h",
    "schedule: '*/15 * * * *'\ntimezone: Europe/Berlin\ntimeout: 1m",
    "every: 15m\ntimeout: 15m",
    "every: 15m\ntimeout: none",
    "every: 15m\noverlap: allow",
    "every: 15m\ntimeout: 2m\nretry: {attempts: 3, backoff: 1m}\njitter: 14m",
    "at: 2026-11-29T12:00:01Z\ntimeout: 1h",
    "timeout: 1h",
    "timezone: Etc/GMT+5\nschedule: 0 3 * * *\ntimeout: 1h",
][:-1]


@pytest.mark.parametrize("lines", SILENT)
def test_nothing_is_said_of_what_is_as_it_looks(lines: str) -> None:
    assert said(lines) == []


def step(item: str, at: str, every: str, name: str = "minute", whole: str = "hour") -> str:
    number = every[:-1]
    return (
        f"schedule: {name} {item} begins anew each {whole}: it fires at {at}; "
        f"for one tick each {number} {name}s write every: {every}"
    )


LINES = [
    ("schedule: '*/7 * * * *'\ntimeout: 1m", [step("*/7", "minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56", "7m")]),
    pytest.param(
        "schedule: '*/40 * * * *'\ntimeout: 1m",
        [step("*/40", "minutes 0 and 40", "40m")],
        marks=pytest.mark.case("C011")
    ),
    pytest.param(
        "schedule: '*/61 * * * *'\ntimeout: 1m", [step("*/61", "minute 0", "61m")], marks=pytest.mark.case("C011")
    ),
    ("schedule: 5,0-59/25 * * * *\ntimeout: 1m", [step("0-59/25", "minutes 0, 25 and 50", "25m")]),
    ("schedule: 0 */5 * * *\ntimeout: 1m", [step("*/5", "hours 0, 5, 10, 15 and 20", "5h", "hour", "day")]),
    pytest.param(
        "schedule: 0 5 2-8 * 4\ntimeout: 1m",
        ["schedule: both day fields are set, and crontab takes either: it fires on day of month 2-8 and also on each "
         "day of week 4; write * in one of them to mean the other"],
        marks=pytest.mark.case("C003"),
    ),
    (
        "schedule: 0 3 31 * *\ntimeout: 1h",
        ["schedule: there is no day 31 in February, April, June, September and November: it does not fire then (day 28 "
         "is in every month)"],
    ),
    ("schedule: 0 3 15,30 * *\ntimeout: 1h",
     ["schedule: there is no day 30 in February: it does not fire then (day 28 is in every month)"]),
    ("schedule: 0 3 29 * *\ntimeout: 1h", ["schedule: February has a day 29 in leap years only"]),
    ("schedule: 0 3 29 2 *\ntimeout: 1h", ["schedule: 29 February comes in leap years only"]),
    # clock changes
    ("schedule: 30 2 * * *\ntimezone: Europe/Berlin\ntimeout: 1h",
     [f"schedule: {GAP}it runs at 03:00 instead", f"schedule: {TWICE}it runs the first time only"]),
    ("schedule: 30 2 * 3 *\ntimezone: Europe/Berlin\ntimeout: 1h", [f"schedule: {GAP}it runs at 03:00 instead"]),
    ("schedule: '*/30 2 * * *'\ntimezone: Europe/Berlin\ntimeout: 10m",
     [f"schedule: {GAP.replace('02:30', '02:00')}it does not run then",
      f"schedule: {TWICE.replace('02:30', '02:00')}it runs both times"]),
    ("schedule: 30 2 * * *\ntimezone: Europe/Berlin\ntimeout: 1h\ndst: {gap: skip, overlap: both}",
     [f"schedule: {GAP}it does not run then", f"schedule: {TWICE}it runs both times"]),
    ("schedule: '@daily'\ntimezone: Africa/Cairo\ntimeout: 1h",
     ["schedule: 00:00 does not exist on 2027-04-30 in Africa/Cairo (the clocks jump to 01:00): "
      "it runs at 01:00 instead"]),
    # lengths
    ("every: 15m", [": no timeout: a run that hangs keeps every later tick from running "
                    "(timeout: none says it is meant so)"]),
    ("every: 5m\ntimeout: 10m",
     ["timeout: 10m is longer than the 5m between two ticks: meanwhile ticks in between are skipped"]),
    ("every: 5m\ntimeout: 10m\noverlap: replace",
     ["timeout: 10m is longer than the 5m between two ticks: meanwhile each tick cancels the run before it"]),
    ("schedule: 0 9,10 * * *\ntimeout: 61m",
     ["timeout: 1h1m is longer than the 1h between two ticks: meanwhile ticks in between are skipped"]),
    pytest.param(
        "schedule: '*/5 * * * *'\ntimeout: 10m\nretry: {attempts: 4, backoff: 3m}\njitter: 6m",
        ["timeout: 10m is longer than the 5m between two ticks: meanwhile ticks in between are skipped",
         "retry: 4 tries of 10m and the waits between them may take 1h5m12s, longer than the 5m between two ticks: "
         "meanwhile ticks in between are skipped",
         "jitter: 6m is not shorter than the 5m between two ticks: a run may begin after the next tick"],
        marks=pytest.mark.case("C096"),
    ),
    ("every: 15m\ntimeout: 4m\nretry: {attempts: 3, backoff: 2m, max: 2m}",
     ["retry: 3 tries of 4m and the waits between them may take 16m48s, longer than the 15m between two ticks: "
      "meanwhile ticks in between are skipped"]),
    # ticks of which there are none
    ("timeout: 1h\nmisfire: {policy: all}\njitter: 1m\noverlap: queue",
     ["misfire: misfire is about ticks, and this job has no schedule: take it out",
      "jitter: jitter puts ticks off and no run by hand, and this job has no schedule: take it out",
      "overlap: overlap: queue is about ticks, and this job has no schedule: take it out "
      "(a run by hand waits its turn, but for allow)"]),
    ("overlap: replace", ["overlap: overlap: replace is about ticks, and this job has no schedule: take it out "
                          "(a run by hand waits its turn, but for allow)"]),
    ("overlap: allow", []),
    ("overlap: skip\njitter: 0s\nmisfire: {policy: latest, grace: 1m, within: 1d, limit: 100, first_sight: wait}", []),
    ("at: 2026-12-24T18:00:00Z\njitter: 1m\nmisfire: {policy: all}\noverlap: queue\ntimeout: 1h", []),
    # never again
    ("at: 2026-11-29T11:00:00Z\ntimeout: 1h",
     ["at: this instant is past (it is 2026-11-29T12:00Z): the job does not run by itself any more"]),
    ("schedule: 0 3 * * *\ntimeout: 1h\nuntil: 2026-11-28",
     ["until: no tick comes any more: the job does not run by itself"]),
    # zones
    ("timezone: EST\nschedule: 0 3 * * *\ntimeout: 1h",
     ["timezone: EST has no daylight saving; a place has: America/New_York"]),
    ("timezone: Etc/GMT+5\nschedule: 0 3 * * *\ntimeout: 1h",
     ["timezone: Etc/GMT+5 is 5 hours behind UTC: the sign is the other way round in these names"]),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), LINES)
def test_what_is_said_of_one_job(lines: str, expected: list[str]) -> None:
    assert [one.replace("jobs.j: ", ": ") for one in said(lines)] == expected


def test_a_zone_of_the_file_is_said_once() -> None:
    text = "version: 1\ntimezone: MST\ndefaults: {timeout: 1h}\njobs:\n" + "".join(
        f"  j{n}: {{call: m:f, schedule: {n} 3 * * *}}\n" for n in range(5)
    )
    plan = parse(text.encode())
    assert [str(one) for one in plan.advice(NOW)] == [
        "jobs.yaml:2:1: timezone: MST has no daylight saving; a place has: America/Denver"
    ]


def herd(*schedules: Schedule, jitter: float = 0.0) -> list[str]:
    jobs = [JobSpec(f"j{n:02}", schedule, "m:f", jitter=jitter) for n, schedule in enumerate(schedules)]
    return [one.message for one in about_herds(jobs, NOW)]


def test_herds() -> None:
    daily, others = Cron("0 0 * * *", "UTC"), [Cron(f"{n} 5 * * *", "UTC") for n in range(60)]
    assert herd(*[daily] * 19, *others) == [], "nineteen are none"
    (message,) = herd(*[daily] * 20, *others)
    assert message.startswith("20 jobs start in the same minute, 2026-11-30T00:00Z (j00, j01, j02 and 17 more): ")
    assert message.endswith(": spread them, by jitter or by H in the minute field")
    assert herd(*[daily] * 20, jitter=60.0) == [], "they are spread already"
    assert herd(*[daily] * 9) == [], "a handful is none either"
    assert len(herd(*[daily] * 6, *others[:5])) == 1, "more than half"
    assert len(herd(*[daily] * 5, *others[:5])) == 0


def test_a_herd_of_different_schedules_is_told_once() -> None:
    hourly = [Cron("0 * * * *", "UTC"), Every(3600.0), Cron("*/30 * * * *", "Asia/Tokyo")] * 7
    (message,) = herd(*hourly)
    assert message.startswith("21 jobs start in the same minute, 2026-11-29T13:00Z")
    assert message.endswith(
        ": spread them, by jitter or by H in the minute field of schedule or by anchor beside every"
    )


def test_a_herd_is_told_what_its_own_schedules_can_do() -> None:
    """`H` is a matter of crontab lines alone."""
    (message,) = herd(*[Every(86400.0)] * 20)
    assert message.endswith(": spread them, by jitter or by anchor")
    (message,) = herd(*[At(NOW + timedelta(hours=1))] * 20)
    assert message.endswith(": spread them, by jitter")


def test_looking_for_herds_ends() -> None:
    """A hundred thousand ticks are looked at, whatever the plan: these would have a million and more."""
    messages = herd(*[Cron(f"* * * * {day}", f"Etc/GMT{hour:+}") for day in range(7) for hour in range(1, 13)] * 20)
    assert len(messages) <= 3


MARKS = [
    # the line, its zone, the first tick's wall time, and the marks from there on
    ("30 2 * * *", "Europe/Berlin", "2027-03-27T02:30", [None, "gap", None]),
    ("0 3 * * *", "Europe/Berlin", "2027-03-27T03:00", [None, "forward", None]),
    ("30 2 * * *", "Europe/Berlin", "2027-10-30T02:30", [None, "first", "back"]),
    ("0 3 * * *", "Europe/Berlin", "2027-10-30T03:00", [None, "back", None]),
    ("0 * * * *", "Europe/Berlin", "2027-10-31T01:00", [None, "first", "second", None]),
    ("0 * * * *", "Europe/Berlin", "2027-03-28T01:00", [None, "forward", None]),
    ("30 2 * * *", "Asia/Tokyo", "2027-03-27T02:30", [None, None]),
    ("15 2 * * *", "Australia/Lord_Howe", "2027-10-02T02:15", [None, "gap", None]),
    ("0 0 * * *", "Africa/Cairo", "2027-04-29T00:00", [None, "gap", None]),
]


@pytest.mark.parametrize(("line", "zone", "first", "marks"), MARKS)
def test_marks_of_ticks(line: str, zone: str, first: str, marks: list[str | None]) -> None:
    from scheduler.core.zones import load_zone

    schedule = Cron(line, zone)
    start = datetime.fromisoformat(first).replace(tzinfo=load_zone(zone)).astimezone(UTC)
    before, found = start - timedelta(seconds=1), []
    for _ in marks:
        tick = next_after(schedule, before)
        assert tick is not None
        mark = mark_of(schedule, tick, before, zone)
        found.append(None if mark is None else mark.value)
        before = tick
    assert found == marks


def test_an_interval_is_marked_by_its_wall_time() -> None:
    tick = datetime(2027, 10, 31, 1, tzinfo=UTC)
    assert mark_of(Every(3600.0), tick, tick - timedelta(hours=1), "Europe/Berlin") is Mark.SECOND
