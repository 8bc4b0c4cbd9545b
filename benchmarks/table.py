"""The table of docs/performance.md, from the results that the benchmarks have left.

    python -m benchmarks.table [RESULTS ...] [--write]

Takes the newest line of each cell (`--all`: medians over all lines of a cell). `--write` puts the table into
docs/performance.md, between its two marks; without it the table is printed. Goals and peers' figures stand in goals.py.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.goals import GOALS, Goal
from benchmarks.ground import REPO

PAGE = REPO / "docs" / "performance.md"
BEGIN, END = "<!-- table: python -m benchmarks.table --write -->", "<!-- end of table -->"
Line = dict[str, Any]
GROWTH = ("claim_1_us", "end_1_us", "claim_250_us", "end_250_us")


def newest(lines: Iterable[Line], row: str, cell: dict[str, Any], every: bool = False) -> Line | None:
    """The newest line of this row and cell; `every`: with the medians over all of them."""
    found = [line for line in lines if line["row"] == row and cell.items() <= line["cell"].items()]
    if not found or not every:
        return found[-1] if found else None
    merged = dict(found[-1])
    for side in ("floor", "soloist"):
        names = found[-1].get(side, {})
        merged[side] = {n: statistics.median(line[side][n] for line in found if n in line[side]) for n in names}
    merged["wrong"] = [what for line in found for what in line["wrong"]]
    return merged


def show(value: float | None, unit: str = "") -> str:
    """Three digits that matter."""
    if value is None:
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{text} {unit}" if unit and not unit.startswith("/") else f"{text}{unit}"


def holds(goal: Goal, ours: float, times: float | None, wrong: Sequence[str]) -> str:
    """`yes`, `no`, or nothing where no goal was set."""
    if wrong:
        return "**wrong**"
    if goal.limit is None and goal.floors is None:
        return ""
    kept = goal.limit is None or (ours <= goal.limit if goal.most else ours >= goal.limit)
    kept &= goal.floors is None or (times is not None and times <= goal.floors)
    return "yes" if kept else "no"


def aim(goal: Goal) -> str:
    """The goal in words."""
    words = []
    if goal.limit is not None:
        words.append(f"{'≤' if goal.most else '≥'} {show(goal.limit, goal.unit)}")
    if goal.floors is not None:
        words.append(f"≤ {goal.floors:g} × floor")
    return ", ".join(words) or "–"


def rows(lines: Sequence[Line], every: bool = False) -> list[list[str]]:
    """All rows of the table; a cell that was not measured has no figures."""
    table = []
    for goal in GOALS:
        line = newest(lines, goal.row, goal.cell, every)
        if line is None or goal.figure not in line["soloist"]:
            table.append([goal.title, aim(goal), "not measured", "–", "–", "", goal.peer])
            continue
        ours, floor = line["soloist"][goal.figure], line.get("floor", {}).get(goal.figure)
        times = ours / floor if floor else None
        kept = holds(goal, ours, times, line["wrong"])
        figures = [show(ours, goal.unit), show(floor, goal.unit), "–" if times is None else f"{times:.3g}"]
        table.append([goal.title, aim(goal), *figures, kept, goal.peer])
    return table + history_rows(lines)


def history_rows(lines: Sequence[Line]) -> list[list[str]]:
    """Growth from the smallest history to the largest, and the slowest list of the largest."""
    sizes = {line["cell"]["rows"]: line for line in lines if line["row"] == "history"}
    if len(sizes) < 2:
        return []
    small, large = sizes[min(sizes)], sizes[max(sizes)]
    title = f"{max(sizes):,} history rows"
    table = []
    for name in GROWTH:
        ours, floor = (large[side][name] / small[side][name] for side in ("soloist", "floor"))
        what = f"{title}: {name.removesuffix('_us').replace('_', ' of ')}, by that with {min(sizes):,} rows"
        kept = "yes" if ours <= max(1.2, 1.2 * floor) else "no"
        table.append([what, "≤ 1.2", f"{ours:.3g}", f"{floor:.3g}", f"{ours / floor:.3g}", kept, "–"])
    slow = {name: value for name, value in large["soloist"].items() if name.startswith("list_")}
    worst = max(slow, key=lambda name: slow[name])
    above = [name.removeprefix("list_").removesuffix("_ms") for name, value in slow.items() if value > 20]
    what = f"– the slowest of {len(slow)} lists ({worst.removeprefix('list_').removesuffix('_ms').replace('_', ' ')})"
    kept = f"no: {', '.join(above)}" if above else "yes"
    peer = "one job's runs 69–167 ms at 1 million rows (all four measured)"
    return [*table, [what, "≤ 20 ms", show(slow[worst], "ms"), "–", "–", kept, peer]]


def render(lines: Sequence[Line], every: bool = False) -> str:
    """The table and where it comes from."""
    head = ["", "goal", "Soloist", "floor", "× floor", "holds", "best exactly-once peers (another session)"]
    body = [head, ["---"] * len(head), *rows(lines, every)]
    text = "\n".join("| " + " | ".join(row) + " |" for row in body)
    if not lines:
        return text
    loads = [line["load"] for line in lines]
    commits = ", ".join(dict.fromkeys(line["commit"] for line in lines))
    versions = ", ".join(dict.fromkeys(line["server"] for line in lines))
    first, last = min(line["at"] for line in lines), max(line["at"] for line in lines)
    return (
        f"{text}\n\nMeasured {first} to {last}, commits {commits}, {versions}. "
        f"The machine's load average was {min(loads):.1f} to {max(loads):.1f} (2 cores)."
    )


def main() -> int:
    """Print or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", type=Path, default=[REPO / "benchmarks" / "results.jsonl"])
    parser.add_argument("--all", action="store_true", dest="every")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = [json.loads(line) for file in options.results for line in file.read_text().splitlines()]
    table = render(lines, options.every)
    if not options.write:
        print(table)
        return 0
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
