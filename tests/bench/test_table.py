"""The table of docs/performance.md, from planted results."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.goals import GOALS, Goal
from benchmarks.table import BEGIN, END, PAGE, aim, history_rows, holds, newest, render, rows, show


def line(
    row: str, cell: dict[str, Any], ours: dict[str, float], floor: dict[str, float], **more: Any
) -> dict[str, Any]:
    common = {"wrong": [], "at": "2026-11-29T18:00:00Z", "load": 1.0, "commit": "abc", "server": "PostgreSQL 15"}
    return {"row": row, "cell": cell, "soloist": ours, "floor": floor, **common, **more}


@pytest.mark.parametrize(
    ("goal", "ours", "times", "wrong", "said"),
    [
        (Goal("t", "r", {}, "f", limit=5), 5.0, None, [], "yes"),
        (Goal("t", "r", {}, "f", limit=5), 5.1, None, [], "no"),
        (Goal("t", "r", {}, "f", limit=5, most=False), 5.0, None, [], "yes"),
        (Goal("t", "r", {}, "f", limit=5, most=False), 4.9, None, [], "no"),
        (Goal("t", "r", {}, "f", limit=5, floors=4), 1.0, 4.1, [], "no"),
        (Goal("t", "r", {}, "f", limit=5, floors=4), 1.0, 4.0, [], "yes"),
        (Goal("t", "r", {}, "f"), 1.0, 9.0, [], ""),
        (Goal("t", "r", {}, "f", limit=5), 1.0, None, ["1 runs doubled"], "**wrong**"),
    ],
)
def test_whether_a_goal_holds(goal: Goal, ours: float, times: float | None, wrong: list[str], said: str) -> None:
    assert holds(goal, ours, times, wrong) == said


def test_the_newest_line_of_a_cell_is_taken_or_the_medians_of_all() -> None:
    lines = [line("r", {"jobs": 1, "rounds": n}, {"f": float(n)}, {"f": 1.0}) for n in (1, 5, 3)]
    lines.append(line("r", {"jobs": 2}, {"f": 99.0}, {"f": 1.0}))
    assert newest(lines, "r", {"jobs": 1}) == lines[2]
    merged = newest(lines, "r", {"jobs": 1}, every=True)
    assert merged is not None
    assert merged["soloist"] == {"f": 3.0}
    assert newest(lines, "other", {}) is None


def test_a_figure_stands_beside_the_floor_and_what_was_not_measured_says_so() -> None:
    goal = GOALS[1]
    table = rows([line(goal.row, goal.cell, {goal.figure: 150.0}, {goal.figure: 50.0})])
    assert len(table) == len(GOALS)
    assert table[1][:6] == [goal.title, "≤ 200 ms, ≤ 4 × floor", "150 ms", "50 ms", "3", "yes"]
    assert table[0][2] == "not measured"


def test_growth_with_the_history_and_lists_above_the_limit() -> None:
    figures = {"claim_1_us": 100.0, "end_1_us": 100.0, "claim_250_us": 10.0, "end_250_us": 10.0}
    small = line("history", {"rows": 0}, figures | {"list_newest_ms": 1.0, "list_lost_ms": 1.0}, figures)
    grown = figures | {"claim_1_us": 150.0, "list_newest_ms": 2.0, "list_lost_ms": 900.0}
    large = line("history", {"rows": 5000000}, grown, figures)
    found = history_rows([large, small])
    assert found[0] == [
        "5,000,000 history rows: claim of 1, by that with 0 rows",
        "≤ 1.2",
        "1.5",
        "1",
        "1.5",
        "no",
        "–",
    ]
    assert [row[5] for row in found[1:4]] == ["yes", "yes", "yes"]
    assert found[4][2] == "900 ms"
    assert found[4][5] == "no: lost"
    assert history_rows([small]) == []


def test_words() -> None:
    assert show(None) == "–"
    assert show(15234.6, "/s") == "15,235/s"
    assert show(0.01234, "ms") == "0.0123 ms"
    assert aim(Goal("t", "r", {}, "f", "/s", 15000, most=False)) == "≥ 15,000/s"
    assert aim(Goal("t", "r", {}, "f")) == "–"


def test_the_page_has_the_place_for_the_table_and_the_table_its_columns() -> None:
    text = PAGE.read_text()
    assert text.index(BEGIN) < text.index(END)
    lengths = {row.count("|") for row in render([]).splitlines()}
    assert lengths == {8}
