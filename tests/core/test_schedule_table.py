"""What a line means, row by row of `cron_table.txt`: steps, lists, names, day rules, zones, gaps and repeated hours."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from scheduler.core.schedule import due, latest_upto, next_after, parse_cron

TABLE = Path(__file__).with_name("cron_table.txt").read_text(encoding="utf-8").splitlines()
ROWS = [row for row in TABLE if row and not row.startswith("# ")]


@pytest.mark.parametrize("row", ROWS)
def test_ticks(row: str) -> None:
    line, zone, after, wanted = (cell.strip() for cell in row.split(" | "))
    cron = parse_cron(line.replace("\\t", "\t"), zone)
    start = at = datetime.fromisoformat(after)
    instants = [datetime.fromisoformat(text) for text in wanted.split()]
    for instant in instants:
        tick = next_after(cron, at)
        assert tick == instant
        at = tick
    assert list(due(cron, start, at, 100).ticks) == instants
    assert latest_upto(cron, at) == at


def test_the_table_is_there() -> None:
    assert len(ROWS) > 70
