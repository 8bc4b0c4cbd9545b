"""Instants beyond what a schedule, or Python, can hold: refused where they are given, and no overflow up to there."""

from __future__ import annotations

import pytest
from desk import Desk
from scene import Scene

from scheduler.core.model import JobSpec, Period
from scheduler.core.schedule import Cron, Every

REASON = ["--reason", "x"]
TO = ["--to", "2026-01-01T00:00:00Z"]
COMMANDS = {
    "pause": ["pause", "daily", *REASON, "--until"],
    "explain": ["explain", "daily", "--at"],
    "next --after": ["next", "--after"],
    "next --until": ["next", "--until"],
    "diff": ["diff", "jobs.yaml", "--after"],
    "exec": ["exec", "daily", "--scheduled-at"],
    "backfill --from": ["backfill", "daily", *TO, "--from"],
    "backfill --to": ["backfill", "daily", "--from", "2026-01-01T00:00:00Z", "--to"],
}
ENDS = ("1900-01-01T00:00:00Z", "2999-12-31T23:59:59.999999Z")
TOKYO = "Asia/Tokyo"
JOBS = {
    "daily": {"schedule": "0 3 * * *", "timezone": TOKYO, "once_per": "week", "call": "work:quick"},
    "off": {"every": "7m", "except": ["12-31", "01-01"], "timezone": "America/New_York", "call": "work:quick"},
}


@pytest.fixture
def plan(desk: Desk, scene: Scene) -> Scene:
    desk.write(**JOBS)
    daily = JobSpec("daily", Cron("0 3 * * *", TOKYO), "work:quick", timezone=TOKYO, once_per=Period.WEEK)
    scene.jobs(daily, JobSpec("off", Every(420.0), "work:quick"))
    return scene


@pytest.mark.parametrize("command", COMMANDS)
def test_a_year_that_no_schedule_has_is_a_wrong_argument(desk: Desk, plan: Scene, command: str) -> None:
    for far in (
        "9999-12-31T23:00:00-14:00",
        "9999-12-31T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "3000-01-01T00:00:00Z",
        "2999-12-31T23:00:00-01:00",
        "1900-01-01T00:00:00+00:01",
    ):
        answer = desk.run(*COMMANDS[command], far)
        assert (answer.code, answer.out) == (2, ""), answer.err
        assert "the year must lie between 1900 and 2999" in answer.err
    assert plan.sql("SELECT 1 FROM soloist.audit") == []
    assert plan.sql("SELECT 1 FROM soloist.job WHERE paused_until IS NOT NULL") == []


@pytest.mark.parametrize("command", COMMANDS)
def test_up_to_there_nothing_overflows(desk: Desk, plan: Scene, command: str) -> None:
    for end in ENDS:
        answer = desk.run(*COMMANDS[command], end)
        assert answer.code in (0, 2), answer.err
        assert "the year" not in answer.err


def test_a_pause_until_the_last_instant_is_one(desk: Desk, plan: Scene) -> None:
    assert desk.run("pause", "daily", *REASON, "--until", ENDS[1]).code == 0
    rows = {row["job"]: row for row in desk.run("jobs", "-o", "json").rows}
    assert (rows["daily"]["paused_until"], rows["daily"]["next_tick"]) == (ENDS[1], None)
    assert [row["until"] for row in desk.run("audit", "-o", "json").rows] == [ENDS[1]]
    assert desk.run("resume", "daily").code == 0
