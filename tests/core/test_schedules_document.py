"""docs/schedules.md says what is so: its examples are read, its tables are worked out anew."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest

from scheduler.config.jobs_file import parse
from scheduler.core.crontab import MACROS
from scheduler.core.dst import Dst, DstGap, DstOverlap
from scheduler.core.model import JobSpec
from scheduler.core.schedule import Cron, due, next_after, parse_cron
from scheduler.core.zones import load_zone
from scheduler.kinds.python import Graces

DOCUMENT = (Path(__file__).parents[2] / "docs" / "schedules.md").read_text(encoding="utf-8")
NEW_YORK = "America/New_York"


def table(header: str) -> list[list[str]]:
    """The cells of the rows below this header."""
    _, _, rest = DOCUMENT.partition(f"\n{header}\n")
    rows = rest.splitlines()[1:]
    here = rows[: next(number for number, row in enumerate(rows) if not row.startswith("|"))]
    return [[cell.strip().replace("`", "") for cell in row.strip("|").split("|")] for row in here]


def example() -> dict[str, JobSpec]:
    blocks = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)
    assert len(blocks) == 1
    return {job.name: job for job in parse(blocks[0].encode()).jobs}


CLOCK_ROWS = table("| line | `dst` | local day | ticks |")
TICK_ROWS = table("| job | after | next ticks |")


@pytest.mark.parametrize(("name", "after", "wanted"), TICK_ROWS)
def test_the_next_ticks_of_the_example(name: str, after: str, wanted: str) -> None:
    schedule = example()[name].schedule
    assert schedule is not None
    at = datetime.fromisoformat(after)
    for text in wanted.split(", "):
        tick = next_after(schedule, at)
        assert tick == (None if text == "none" else datetime.fromisoformat(text))
        at = tick or at


def test_each_job_of_the_example_is_in_the_table() -> None:
    assert {row[0] for row in TICK_ROWS} == set(example())


WORDS = {
    "default": [Dst()],
    "gap: skip": [Dst(gap=DstGap.SKIP)],
    "overlap: both": [Dst(overlap=DstOverlap.BOTH)],
    "any": [Dst(gap, overlap) for gap in DstGap for overlap in DstOverlap],
}


@pytest.mark.parametrize(("line", "words", "day", "wanted"), CLOCK_ROWS)
def test_the_table_of_clock_changes(line: str, words: str, day: str, wanted: str) -> None:
    zone = load_zone(NEW_YORK)
    midnights = [
        datetime.combine(date.fromisoformat(day) + timedelta(days=later), time(), zone).astimezone(UTC)
        for later in (0, 1)
    ]
    begin, end = (midnight - timedelta(seconds=1) for midnight in midnights)
    for dst in WORDS[words]:
        found = due(replace(Cron(line, NEW_YORK), dst=dst), begin, end, 1000).ticks
        shown = []
        for tick in found:
            local = tick.astimezone(zone)
            shown.append(f"{local:%H:%M}{' #2' if local.fold else ''} = {tick:%H:%MZ}")
        assert (", ".join(shown) or "none") == wanted


def test_the_table_has_both_changes_and_every_word() -> None:
    assert len(CLOCK_ROWS) >= 12
    assert {row[1] for row in CLOCK_ROWS} == set(WORDS)
    assert {row[2] for row in CLOCK_ROWS} == {"2026-03-08", "2026-11-01"}


def test_the_macros() -> None:
    said = {name: line for names, line in table("| macro | line |") for name in names.split(", ")}
    assert said == MACROS


def test_what_the_text_says_of_lines() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    thirteenth = due(parse_cron("0 0 13 * 5", "UTC"), start, start + timedelta(days=365), 1000).ticks
    assert {tick.day == 13 or tick.isoweekday() == 5 for tick in thirteenth} == {True}
    assert len(thirteenth) > 52
    odd_mondays = due(parse_cron("0 0 */2 * 1", "UTC"), start, start + timedelta(days=365), 1000).ticks
    assert {(tick.day % 2, tick.isoweekday()) for tick in odd_mondays} == {(1, 1)}
    for refused, better in (("0 22-2 * * *", "0 22,23,0,1,2 * * *"), ("5/15 * * * *", "5-59/15 * * * *")):
        with pytest.raises(ValueError, match=re.escape(better.split()[0 if refused[0] == "5" else 1])):
            parse_cron(refused, "UTC")
        parse_cron(better, "UTC")
    for refused in ("0 0 30 2 *", "@reboot", "@every 5m", "0 0 ? * *", "0 0 L * *", "0 0 * * 5#2", "TZ=UTC 0 0 * * *"):
        assert refused.split()[-1 if refused[0] == "0" else 0]
        with pytest.raises(ValueError, match=r"\S"):
            parse_cron(refused, "UTC")


def test_the_graces_of_a_run_that_is_asked_to_end() -> None:
    text, graces = " ".join(DOCUMENT.split()), Graces()
    assert f"One that never looks goes on for {graces.cancel:g} s; then its process gets a SIGTERM" in text
    assert f"{graces.term:g} s later its whole group is killed" in text
