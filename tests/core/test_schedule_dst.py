"""What `dst:` makes of fixed times and of lines with a star, at a gap and in a repeated hour."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from scheduler.core.dst import Dst, DstGap, DstOverlap, dst_from_dict
from scheduler.core.schedule import Cron, due, next_after, tick_key

SKIP = Dst(gap=DstGap.SKIP)
BOTH = Dst(overlap=DstOverlap.BOTH)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def clocks(line: str, zone: str, day: str, dst: Dst = Dst()) -> list[str]:
    """The local times of one UTC day's ticks, `#2` at those of a second pass."""
    cron = replace(Cron(line, zone), dst=dst)
    found = due(cron, utc(f"{day}T00:00"), utc(f"{day}T23:59"), 3000).ticks
    at, forwards = utc(f"{day}T00:00"), []
    while (tick := next_after(cron, at)) is not None and tick <= utc(f"{day}T23:59"):
        forwards.append(tick)
        at = tick
    assert tuple(forwards) == found
    keys = [tick_key(cron, tick) for tick in found]
    assert len(set(keys)) == len(keys)
    return [key[11:16] + ("#2" if key.endswith("#2") else "") for key in keys]


@pytest.mark.case("C019")
def test_a_fixed_time_in_a_gap() -> None:
    assert clocks("30 2 * * *", "America/New_York", "2026-03-08") == ["03:00"]
    assert clocks("30 2 * * *", "America/New_York", "2026-03-08", SKIP) == []
    assert clocks("0 2-4 * * *", "America/New_York", "2026-03-08") == ["03:00", "04:00"]
    assert clocks("0 2-4 * * *", "America/New_York", "2026-03-08", SKIP) == ["03:00", "04:00"]
    assert clocks("45 2,3 * * *", "America/New_York", "2026-03-08") == ["03:00", "03:45"]
    assert clocks("45 2,3 * * *", "America/New_York", "2026-03-08", SKIP) == ["03:45"]
    for dst in (Dst(), SKIP):
        again = replace(Cron("30 2 * * *", "America/New_York"), dst=dst)
        assert next_after(again, utc("2026-03-08T07:00")) == utc("2026-03-09T06:30")


@pytest.mark.case("C022")
def test_a_fixed_time_in_the_repeated_hour() -> None:
    assert clocks("30 1 * * *", "America/New_York", "2026-11-01") == ["01:30"]
    assert clocks("30 1 * * *", "America/New_York", "2026-11-01", BOTH) == ["01:30", "01:30#2"]
    once = Cron("30 1 * * *", "America/New_York")
    assert next_after(once, utc("2026-10-31T12:00")) == utc("2026-11-01T05:30")
    assert next_after(once, utc("2026-11-01T05:30")) == utc("2026-11-02T06:30")
    assert next_after(replace(once, dst=BOTH), utc("2026-11-01T05:30")) == utc("2026-11-01T06:30")


@pytest.mark.case("C023")
@pytest.mark.parametrize("dst", [Dst(), SKIP, BOTH, Dst(DstGap.SKIP, DstOverlap.BOTH)])
def test_lines_with_a_star_follow_the_clock_whatever_is_said(dst: Dst) -> None:
    night = [f"0{hour}:{minute:02}" for hour in (0, 1) for minute in (0, 15, 30, 45)]
    again = [f"{time}#2" for time in night[4:]]
    found = clocks("*/15 * * * *", "America/New_York", "2026-11-01", dst)
    here = found.index("00:00")
    assert found[here : here + 12] == [*night, *again]
    assert "02:00" not in clocks("0 * * * *", "America/New_York", "2026-03-08", dst)
    assert clocks("*/20 2 * * *", "America/New_York", "2026-03-08", dst) == []
    assert clocks("30 */1 * * *", "Europe/London", "2026-10-25", dst).count("01:30#2") == 1


@pytest.mark.case("C025")
def test_the_day_before_and_after_a_change() -> None:
    evening = Cron("0 17 * * *", "America/New_York")
    assert due(evening, utc("2026-10-31T21:00"), utc("2026-11-01T21:59"), 10).ticks == ()
    assert next_after(evening, utc("2026-10-31T21:00")) == utc("2026-11-01T22:00")
    assert next_after(Cron("4 16 * * *", "America/New_York"), utc("2026-03-07T21:04")) == utc("2026-03-08T20:04")


def test_gaps_and_repeats_of_other_lengths() -> None:
    assert clocks("10 2 * * *", "Australia/Lord_Howe", "2026-10-03") == ["02:30"]  # half an hour
    assert clocks("10 2 * * *", "Australia/Lord_Howe", "2026-10-03", SKIP) == []
    assert clocks("45 1 * * *", "Australia/Lord_Howe", "2026-04-04", BOTH) == ["01:45", "01:45#2"]
    assert clocks("30 1,2 * * *", "Antarctica/Troll", "2026-03-29")[:1] == ["03:00"]  # two hours
    assert clocks("0 0 * * *", "Africa/Cairo", "2026-04-23") == ["01:00"]  # midnight
    assert clocks("0 0 * * *", "Africa/Cairo", "2026-04-23", SKIP) == []
    assert clocks("30 1 * * *", "Europe/Dublin", "2026-10-25", BOTH) == ["01:30", "01:30#2"]  # winter is the odd time


@pytest.mark.parametrize("dst", [Dst(), SKIP, BOTH])
def test_more_than_three_hours_is_no_clock_change(dst: Dst) -> None:
    # Samoa left out a day: nothing is moved into the next
    assert clocks("30 12 * * *", "Pacific/Apia", "2011-12-30", dst) == ["12:30"]


def test_the_form_in_json_has_what_differs_alone() -> None:
    assert Dst().to_dict() == {}
    assert BOTH.to_dict() == {"overlap": "both"}
    for gap in DstGap:
        for overlap in DstOverlap:
            assert dst_from_dict(Dst(gap, overlap).to_dict()) == Dst(gap, overlap)
    for strange in (None, 5, "skip", {"gap": "leap", "overlap": ["both"]}, {"gap": None}):
        assert dst_from_dict(strange) == Dst()
