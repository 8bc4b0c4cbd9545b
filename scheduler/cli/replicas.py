"""`soloist replicas`: who is there."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from scheduler.cli.options import Format, Output

Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.", metavar="N")]


def replicas(limit: Limit = 50, output: Output = Format.TABLE) -> None:
    """List the replicas that were seen last: live, silent (no sign of life for 35 s), or stopped."""
    from scheduler.cli.database import opened
    from scheduler.cli.output import emit, field, span
    from scheduler.config.settings import load_settings
    from scheduler.store.history import list_replicas
    from scheduler.store.visit import visit

    with opened(load_settings()) as database, visit(database.url, "replicas") as connection:
        rows = [{**row, "file": _file(row)} for row in list_replicas(connection, limit)]
    columns = [
        field("name"),
        field("state"),
        field("seen_ago", "seen ago", span, right=True),
        field("host"),
        field("pid", right=True),
        field("version"),
        field("generation", right=True),
        field("config_hash", "config", lambda text: str(text)[:8]),
        field("file", write=str),
        field("tzdata"),
        field("seats", right=True),
        field("fenced_writes", "fenced writes", right=True),
        field("leases_lost", "leases lost", right=True),
        field("takeovers", right=True),
        field("clock_offset", "clock offset", lambda seconds: f"{seconds:+.3f}s", right=True),
    ]
    emit(rows, columns, output)


def _file(row: dict[str, Any]) -> str:
    """How its jobs file stands: `in force`, `older` than that of another live replica, or `edit refused` and why."""
    from scheduler.cli.output import first_line

    if row["file_problem"]:
        return f"edit refused: {first_line(row['file_problem'])}"
    if not row["serves"] or row["state"] != "live":
        return ""
    return "in force" if row["in_force"] else "older"
