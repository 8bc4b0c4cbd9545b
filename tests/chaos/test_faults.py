"""What a storm is made of: faults that can be chosen again, a calendar of its own, and traces read back."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from chaos.evidence import Body
from chaos.faults import REST, WEIGHTS, Kind, Weather, forecast
from chaos.gather import bodies, grid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

WEATHER = Weather(600.0, slots=6)


def test_a_seed_chooses_the_same_faults_again() -> None:
    assert list(forecast(1, WEATHER)) == list(forecast(1, WEATHER))
    assert list(forecast(1, WEATHER)) != list(forecast(2, WEATHER))


@pytest.mark.parametrize("seed", range(5))
def test_every_kind_comes_and_one_fault_at_a_time_hits_a_replica(seed: int) -> None:
    faults = list(forecast(seed, WEATHER))
    assert [fault.at for fault in faults] == sorted(fault.at for fault in faults)
    counted = Counter(fault.kind for fault in faults)
    assert counted[Kind.RESTART] == 1
    assert all(counted[kind] >= 10 for kind in WEIGHTS), counted
    for fault in faults:
        others = [other for other in faults if other is not fault and other.kind is not Kind.RESTART]
        at_work = {other.slot for other in others if other.at <= fault.at < other.at + other.lasts + REST}
        assert fault.slot not in at_work
        assert len(at_work) < WEATHER.slots - WEATHER.spared + (fault.kind is Kind.RESTART)


def _noon(seconds: Fraction | float) -> datetime:
    return datetime(2026, 11, 29, 12, tzinfo=UTC) + timedelta(seconds=float(seconds))


@pytest.mark.parametrize(
    ("after", "upto", "expected"),
    [(0, 1, [0.5, 1]), (0.1, 0.4, []), (-0.000001, 0, [0]), (0.5, 0.999999, []), (0, 0, [])],
)
def test_the_grid_leaves_out_its_beginning_and_has_its_end(after: float, upto: float, expected: list[float]) -> None:
    assert grid(_noon(after), _noon(upto), 0.5) == [_noon(seconds) for seconds in expected]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10_000_000), st.integers(0, 5_000_000))
def test_the_grid_has_every_instant_on_it(start: int, length: int) -> None:
    after = _noon(Fraction(start, 1_000_000))
    upto = after + timedelta(microseconds=length)
    every = [_noon(Fraction(number, 2)) for number in range(40)]
    assert grid(after, upto, 0.5) == [tick for tick in every if after < tick <= upto]


def test_traces_become_bodies() -> None:
    lines = """
        begin a k 1 10 1.0
        begin a k 2 20 5.0
        beat a k 1 10 1.5
        end a k 2 20 6.0
        begin a k 1 10 7.0
        beat a k 1 10 8.0
    """
    assert sorted(bodies([line.split() for line in lines.strip().splitlines()]), key=lambda body: body.begun) == [
        Body("a", "k", 1, 1.0, 1.5, False),
        Body("a", "k", 2, 5.0, 6.0, True),
        Body("a", "k", 1, 7.0, 8.0, False),
    ]
