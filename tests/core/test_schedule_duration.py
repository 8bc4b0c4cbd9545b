"""Durations: text with units, and nothing that could be read in two ways."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.core.duration import LONGEST, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90.0),
        ("15m", 900.0),
        ("1h30m", 5400.0),
        ("30d", 2592000.0),
        ("500ms", 0.5),
        ("1s500ms", 1.5),
        ("1m1ms", 60.001),
        ("1d2h3m4s5ms", 93784.005),
        ("0s", 0.0),
    ],
)
def test_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("90", "write 90s for seconds or 90m for minutes"),
        ("1.5", "has no unit"),
        ("1:30", "write 1h30m or 1m30s"),
        ("03:00", "not a duration"),
        ("", "not a duration"),
        ("yes", "not a duration"),
        ("-5s", "not a duration"),
        ("1.5h", "not a duration"),
        ("5 m", "not a duration"),
        ("5m ", "not a duration"),
        ("5m\n", "not a duration"),
        ("30s1m", "largest first"),
        ("5M", "not a duration"),
        ("5min", "not a duration"),
        ("٥s", "not a duration"),
        ("4000d", "longer than ten years"),
        ("9" * 400 + "s", "not a duration"),
    ],
)
def test_refused_with_help(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_duration(text)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 3000), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_parts_add_up(days: int, hours: int, minutes: int, seconds: int, thousandths: int) -> None:
    text = f"{days}d{hours}h{minutes}m{seconds}s{thousandths}ms"
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    assert parse_duration(text) == pytest.approx(total + thousandths / 1000, abs=1e-6)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=20))
def test_any_text_is_seconds_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert 0 <= parse_duration(text) <= LONGEST
