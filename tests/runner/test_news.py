"""What is told once: pauses and their ends, and whose file is in force."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from scene import Scene

from scheduler.core.events import FileInForce, FileSuperseded, JobPaused, JobResumed
from scheduler.runner.news import News
from scheduler.runner.room import Room
from scheduler.store.apply import Applied
from scheduler.store.jobs import KnownJob

TICKS = KnownJob(1, "a", "x", 1, datetime(2026, 1, 1, tzinfo=UTC), paused=False, removed=False)
PAUSED = replace(TICKS, paused=True, paused_by="ann", paused_reason="a migration")
BEHIND, IN_FORCE = Applied(4, in_force=False, newest=6), Applied(4, in_force=True)


@pytest.fixture
def news(facts: Scene) -> News:
    return News(Room(facts.owner("local"), facts.clock, facts.bus))


def _told(facts: Scene) -> list[type]:
    return [type(event) for event in facts.events]


def test_a_pause_and_its_end_are_told_once(news: News, facts: Scene) -> None:
    for job in (PAUSED, PAUSED, TICKS, TICKS):
        news.pauses([job], {"a"})
    assert _told(facts) == [JobPaused, JobResumed]


@pytest.mark.parametrize("names", [{"a"}, set()], ids=["by another's file", "by our own"])
@pytest.mark.parametrize("after", [replace(PAUSED, removed=True), replace(TICKS, removed=True)], ids=["kept", "ended"])
def test_a_paused_job_that_is_removed_does_not_tick_again(
    news: News, facts: Scene, names: set[str], after: KnownJob
) -> None:
    news.pauses([PAUSED], {"a"})
    news.pauses([after], names)
    assert _told(facts) == [JobPaused]


def test_a_newer_file_is_told_once_and_its_end_too(news: News, facts: Scene) -> None:
    for applied in (IN_FORCE, BEHIND, replace(BEHIND, newest=7), IN_FORCE, IN_FORCE):
        news.standing(applied, told=False)
    assert next(event for event in facts.events if isinstance(event, FileSuperseded)).newest == 6
    assert _told(facts) == [FileSuperseded, FileInForce]


def test_what_the_line_of_an_edit_says_is_not_said_again(news: News, facts: Scene) -> None:
    news.standing(BEHIND, told=True)
    news.standing(BEHIND, told=False)
    news.standing(IN_FORCE, told=True)
    assert _told(facts) == []
    news.standing(BEHIND, told=True)
    news.standing(IN_FORCE, told=False)
    assert _told(facts) == [FileInForce]
