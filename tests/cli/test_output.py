"""How values are shown in tables."""

from __future__ import annotations

import pytest

from scheduler.cli.output import span

SPANS = [
    (0.35, "350ms"),
    (12.34, "12.3s"),
    (60, "1m"),
    (245, "4m05s"),
    (3600, "1h"),
    (12_030, "3h20m"),
    (86_400, "1d"),
    (1_051_200, "12d4h"),
]


@pytest.mark.parametrize(("seconds", "shown"), SPANS)
def test_a_length_of_time(seconds: float, shown: str) -> None:
    assert span(seconds) == shown
