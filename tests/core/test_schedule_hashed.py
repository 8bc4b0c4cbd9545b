"""`H`: jobs spread by their names, the same in every process, and what is stored has plain numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from scheduler.core.crontab import FIELDS, read_crontab
from scheduler.core.schedule import Cron, ScheduleError, parse_cron

NAMES = [f"job-{number}" for number in range(6000)]


def test_the_numbers_of_a_name_never_change() -> None:
    # Stored, and compared among versions: a change of the digest would move every job of every user.
    assert parse_cron("H H H H H", "UTC", name="daily-registry").expression == "16 19 12 1 1"
    assert (
        parse_cron("H/15 H(9-17)/4 * * H(mon-fri)", "UTC", name="daily-registry").expression == "4,19,34,49 12,16 * * 2"
    )


@pytest.mark.parametrize(
    ("field", "size"),
    [(0, 60), (1, 24), (2, 28), (3, 12), (4, 7)],
    ids=["minute", "hour", "day of month", "month", "day of week"],
)
def test_the_spread_is_even(field: int, size: int) -> None:
    line = " ".join("H" if number == field else "1" for number in range(5))
    found = Counter(parse_cron(line, "UTC", name=name).expression.split()[field] for name in NAMES)
    low = FIELDS[field].low
    assert set(found) == {str(value) for value in range(low, low + size)}
    expected = len(NAMES) / size
    # chi squared: its mean is size - 1, its deviation the root of twice that
    surprise = sum((count - expected) ** 2 / expected for count in found.values())
    assert surprise < size - 1 + 4 * (2 * (size - 1)) ** 0.5


def test_fields_are_spread_apart() -> None:
    pairs = {parse_cron("H H * * *", "UTC", name=name).expression for name in NAMES}
    assert len(pairs) > 1300, "minute and hour together take most of the day's 1,440 minutes"


@pytest.mark.parametrize(
    ("item", "first", "step", "last"),
    [("H/15", 15, 15, 59), ("H(0-29)", 30, None, 29), ("H(0-29)/10", 10, 10, 29), ("H(30-59)", 30, None, 59)],
)
def test_ranges_and_steps_begin_in_their_first_step(item: str, first: int, step: int | None, last: int) -> None:
    low = 30 if item.startswith("H(30") else 0
    starts = set()
    for name in NAMES[:400]:
        values = [
            int(value) for value in parse_cron(f"{item} * * * *", "UTC", name=name).expression.split()[0].split(",")
        ]
        assert values == (list(range(values[0], last + 1, step)) if step else values[:1])
        starts.add(values[0])
    assert starts == set(range(low, low + first))


def test_in_a_list_and_beside_names() -> None:
    assert parse_cron("H,30 3 * jan,H *", "UTC", name="a") == Cron("42,30 3 * jan,4 *", "UTC")
    assert parse_cron("0 3 * MAR THU", "UTC", name="a").expression == "0 3 * MAR THU"
    assert parse_cron("@hourly", "UTC", name="a").expression == "0 * * * *"


def test_a_hashed_line_is_one_of_fixed_times() -> None:
    assert read_crontab(parse_cron("H H/6 * * *", "UTC", name="a").expression).fixed
    assert not read_crontab(parse_cron("H/15 * * * *", "UTC", name="a").expression).fixed


REFUSED = [
    ("h 3 * * *", "minute 'h': `H` for a value made of the job's name is written in upper case"),
    ("h/15 3 * * *", "upper case"),
    ("0 h(0-7) * * *", "hour 'h(0-7)': `H` for a value"),
    ("H(0-70) 3 * * *", "70 is not in 0-59"),
    ("H(29-0) 3 * * *", "runs backwards and does not wrap; write the lower first, H(0-29)"),
    ("H/61 * * * *", "a step of 61 is not in 1-60, the length of its range; write H for one value"),
    ("H/0 * * * *", "a step of 0 is not in 1-60"),
    ("H(0-9)/20 * * * *", "not in 1-10"),
    ("0 0 H(1-31) * *", "`H` stays within 1-28: every month has 28 days"),
    ("0 0 * * H(5-7)", "`H` stays within 0-6: Sunday is 0"),
    ("0 0 * H(0-3) *", "0 is not in 1-12"),
    ("H( * * * *", "'H(' is not H, H/15, H(0-59)"),
    ("H(5) * * * *", "'H(5)' is not H"),
    ("H-5 * * * *", "'H-5' is not H"),
    ("H(0-5,7) * * * *", "'H(0-5' is not H"),
    ("HH * * * *", "'HH' is not H"),
    ("H(a-b) * * * *", "'a' is not a number"),
    ("5/H * * * *", "not a number, a range"),
    ("H * * *", "expected 5 fields (minute hour day month weekday), got 4"),
    ("H(0 - 5) * * * *", "expected 5 fields"),
    ("Ｈ * * * *", "U+FF28"),
    ("H/１５ * * * *", "U+FF11"),
]


@pytest.mark.parametrize(("line", "said"), REFUSED)
def test_refused_with_help_whatever_the_name(line: str, said: str) -> None:
    for name in NAMES[:20]:
        with pytest.raises(ScheduleError) as caught:
            parse_cron(line, "UTC", name=name)
        assert said in str(caught.value)


def test_without_a_name_there_is_nothing_to_hash() -> None:
    with pytest.raises(ScheduleError, match="minute 'H': `H` is made of a job's name, and here is none"):
        parse_cron("H 3 * * *", "UTC")
    with pytest.raises(ScheduleError, match="here is none"):
        Cron("0 H(0-7) * * *", "UTC")


def test_every_process_makes_the_same_of_it() -> None:
    program = "from scheduler.core.schedule import *; print(parse_cron('H H H H H', 'UTC', name='a').expression)"
    said = set()
    for seed in ("0", "1", "random"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        said.add(done.stdout)
    assert len(said) == 1
