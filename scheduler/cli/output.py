"""Rows on stdout: a table by rich on a terminal, aligned plain text in a pipe or under NO_COLOR, or JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from scheduler.cli.options import Format

Row = Mapping[str, Any]
SHORTEST_ID = 13
"""Digits of a run id that are always shown: the milliseconds of a UUIDv7, and its first hyphen."""

_STYLES = {
    "succeeded": "green",
    "live": "green",
    "running": "cyan",
    "queued": "blue",
    "waiting": "blue",
    "failed": "red",
    "timed_out": "red",
    "lost": "red",
    "silent": "red",
    "crashed": "red",
    "cancelled": "yellow",
    "paused": "yellow",
    "removed": "dim",
    "skipped": "dim",
    "stopped": "dim",
}
_UNPRINTABLE = {number: "\N{REPLACEMENT CHARACTER}" for number in (*range(32), *range(127, 160))}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: its title, and how a row's cell is written."""

    title: str
    cell: Callable[[Row], str]
    right: bool = False


def field(name: str, title: str | None = None, write: Callable[[Any], str] = str, *, right: bool = False) -> Column:
    """A column that shows one key of the rows; nothing where it is None."""
    return Column(title or name, lambda row: "" if row[name] is None else write(row[name]), right)


def emit(rows: Sequence[Row], columns: Sequence[Column], form: Format) -> None:
    """Print the rows. JSON has every key of them, a table the columns; no rows make `[]`, or nothing."""
    if form is Format.JSON:
        emit_json(list(rows))
    elif rows and _colourful():
        _emit_rich(rows, columns)
    elif rows:
        cells = [[column.title.upper() for column in columns], *([c.cell(r) for c in columns] for r in rows)]
        _emit_plain([[printable(cell) for cell in line] for line in cells], columns)
    sys.stdout.flush()


def emit_json(value: Any) -> None:
    """Print a value as JSON: instants in ISO form with Z, ids as text."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def instant(value: datetime) -> str:
    """`2026-11-29T03:00:00Z`, with the fraction if it has one."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def second(value: datetime) -> str:
    """`2026-11-29 03:00:00Z`, for tables."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def span(seconds: float) -> str:
    """`350ms`, `12.3s`, `4m05s`, `3h20m`, `12d4h`; what is whole has one unit, `4m`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 60:
        return f"{seconds:.1f}s"
    whole = int(seconds)
    if seconds < 3600:
        return _units(whole // 60, "m", f"{whole % 60:02}", "s")
    if seconds < 86400:
        return _units(whole // 3600, "h", f"{whole % 3600 // 60:02}", "m")
    return _units(whole // 86400, "d", str(whole % 86400 // 3600), "h")


def _units(large: int, unit: str, small: str, smaller: str) -> str:
    return f"{large}{unit}" if int(small) == 0 else f"{large}{unit}{small}{smaller}"


def first_line(text: str) -> str:
    """The first line, at most 80 characters of it."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= 80 else line[:79] + "…"


def short_ids(ids: Sequence[Any]) -> dict[Any, str]:
    """The shortest beginnings that tell these ids apart, all of one length."""
    texts = sorted({str(id_) for id_ in ids})
    alike = max((_shared_beginning(one, other) for one, other in pairwise(texts)), default=0)
    length = max(SHORTEST_ID, alike + 1)
    return {id_: str(id_)[:length] for id_ in ids}


def _shared_beginning(one: str, other: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def printable(text: str) -> str:
    """The text without control characters: what a job wrote must not steer the terminal."""
    return text.translate(_UNPRINTABLE)


def _plain(value: Any) -> str:
    return instant(value) if isinstance(value, datetime) else str(value)


def _colourful() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _emit_plain(cells: list[list[str]], columns: Sequence[Column]) -> None:
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        aligned = (c.rjust(w) if col.right else c.ljust(w) for c, w, col in zip(line, widths, columns, strict=True))
        print("  ".join(aligned).rstrip())


def _emit_rich(rows: Sequence[Row], columns: Sequence[Column]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column.title.upper(), justify="right" if column.right else "left", overflow="fold")
    for row in rows:
        cells = [printable(column.cell(row)) for column in columns]
        table.add_row(*(Text(cell, style=_STYLES.get(cell.partition(" ")[0], "")) for cell in cells))
    Console(highlight=False).print(table)
