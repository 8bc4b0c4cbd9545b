"""The clock is the database's, once it has been measured, whatever this machine's says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler.core.events import Bus, ClockAway, Event
from scheduler.runner.clock import SystemClock, new_id
from scheduler.runner.clock_watch import ClockWatch
from scheduler.runner.room import Room
from scheduler.runner.seats import Seats
from scheduler.store.claims import Owner

DATABASE = datetime(2026, 11, 29, 3, tzinfo=UTC)


def measure(clock: SystemClock, database_now: datetime, took: float) -> None:
    clock.measure(database_now, clock.boottime() - took)


@pytest.mark.parametrize("shift", [0.0, 7200.0, -7200.0])
def test_a_wrong_clock_is_put_right_by_the_first_measurement(shift: float) -> None:
    clock = SystemClock(shift)
    local = clock.now()
    measure(clock, DATABASE, took=0.0)
    assert abs(clock.now() - DATABASE) < timedelta(seconds=5)
    assert clock.offset == pytest.approx((local - DATABASE).total_seconds(), abs=5)


def test_time_passes_as_boottime_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Setting the machine's clock changes nothing: only the stopwatch is asked."""
    clock = SystemClock()
    measure(clock, DATABASE, took=0.0)
    started = clock.boottime()
    monkeypatch.setattr(clock, "boottime", lambda: started + 90)
    monkeypatch.setattr(clock, "_local", lambda: datetime(1999, 1, 1, tzinfo=UTC))
    assert abs(clock.now() - DATABASE - timedelta(seconds=90)) < timedelta(seconds=1)


class Stopwatch(SystemClock):
    """Time passes when the test says so."""

    passed = 1000.0

    def boottime(self) -> float:
        return self.passed

    def seen(self) -> float:
        """Seconds from DATABASE to what the clock takes for the database's time."""
        return (self.now() - DATABASE).total_seconds()


def test_a_slow_answer_is_not_believed_over_a_fast_one() -> None:
    clock = Stopwatch()
    measure(clock, DATABASE, took=0.002)
    measure(clock, DATABASE - timedelta(seconds=1), took=8.0)
    assert clock.seen() == 0.001


@pytest.mark.parametrize("late", [0.0, 8.0])
def test_a_machine_that_stands_still_on_one_side_of_the_exchange_moves_no_clock(late: float) -> None:
    """The database's clock was read at the very begin or end of it: the difference is half of the exchange."""
    clock = Stopwatch()
    measure(clock, DATABASE, took=0.02)
    measure(clock, DATABASE - timedelta(seconds=late), took=8.0)
    assert clock.seen() == 0.01


def test_a_slow_first_answer_gives_way_to_a_faster_one() -> None:
    clock = Stopwatch()
    measure(clock, DATABASE - timedelta(seconds=8), took=8.0)
    assert (clock.seen(), clock.error) == (-4, 4)
    measure(clock, DATABASE, took=0.002)
    assert (clock.seen(), clock.error) == (0.001, pytest.approx(0.001))


def test_a_clock_that_was_set_is_followed_however_exact_the_former_measurement() -> None:
    clock = Stopwatch()
    measure(clock, DATABASE, took=0.002)
    measure(clock, DATABASE + timedelta(hours=1), took=0.5)
    assert clock.seen() == 3600.25


@pytest.mark.parametrize("drift", [-5e-5, 5e-5])
def test_two_clocks_that_drift_apart_stay_together(drift: float) -> None:
    """As exact a measurement as the last counts for more, once that has aged."""
    clock = Stopwatch()
    for step in range(1000):
        clock.passed = 1000.0 + 10 * step
        measure(clock, DATABASE + timedelta(seconds=10 * step * (1 + drift)), took=0.0)
        assert abs(clock.seen() - 10 * step * (1 + drift)) < 0.002


def test_the_alarm_is_set_by_the_machines_own_clock() -> None:
    clock = SystemClock(7200.0)
    measure(clock, DATABASE, took=0.0)
    wakes = clock.alarm_time(clock.now() + timedelta(seconds=30))
    assert abs((wakes - datetime.now(UTC)).total_seconds() - 30) < 5


@pytest.mark.parametrize(("took", "said"), [(0.002, [False]), (70.0, [])])
def test_a_clock_is_called_wrong_where_it_surely_is(took: float, said: list[bool]) -> None:
    """Half a minute ahead; an answer that took more than twice as long may be wrong by all of that."""
    clock, events, bus = Stopwatch(), list[Event](), Bus()
    bus.subscribe(events.append)
    room = Room(Owner(new_id(), "r", 15.0), clock, bus)
    measure(clock, clock.now() - timedelta(seconds=31 + took / 2), took)
    ClockWatch(room, Seats(1)).look()
    assert [event.claims for event in events if isinstance(event, ClockAway)] == said
