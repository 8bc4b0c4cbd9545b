"""The judge of a rolling deploy: it accepts a hand-over at any instant of the switch, and no other history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from chaos.rollout import Switch, handed_over, specs, ticks
from replicas import jobs_file

from scheduler.core.model import JobSpec

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
SWITCH = Switch(NOON + timedelta(seconds=5), NOON + timedelta(seconds=9))
LAST = NOON + timedelta(seconds=13)


def _job(period: str) -> JobSpec:
    return specs(jobs_file(moved={"call": "effects:sign", "args": {"path": "x", "word": "x"}, "every": period}))[
        "moved"
    ]


OLD, NEW = _job("700ms"), _job("400ms")


def _handed_over_at(seconds: float) -> list[datetime]:
    instant = NOON + timedelta(seconds=seconds)
    return ticks(OLD, NOON, instant) + ticks(NEW, instant, LAST)


@pytest.mark.parametrize("twentieth", range(5 * 20, 9 * 20 + 1))
def test_a_hand_over_at_any_instant_of_the_switch_is_accepted(twentieth: int) -> None:
    assert handed_over(_handed_over_at(twentieth / 20), OLD, NEW, SWITCH)


@pytest.mark.parametrize("second", [5, 6, 7, 8, 9])
def test_a_tick_lost_or_doubled_is_not(second: int) -> None:
    """Of the lost ones those outside of the switch: within it another instant may explain what is left."""
    rows = _handed_over_at(second)
    for at, row in list(enumerate(rows))[1:-1]:
        assert not handed_over([*rows[: at + 1], *rows[at:]], OLD, NEW, SWITCH), f"{row} twice"
        if not SWITCH.begin <= row <= SWITCH.end:
            assert not handed_over([*rows[:at], *rows[at + 1 :]], OLD, NEW, SWITCH), f"{row} lost"


@pytest.mark.parametrize("second", [4, 10])
def test_a_hand_over_before_or_after_the_switch_is_not(second: int) -> None:
    assert not handed_over(_handed_over_at(second), OLD, NEW, SWITCH)
