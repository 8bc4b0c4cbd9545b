"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import os
import pwd
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    JSON = "json"


Jobs = Annotated[
    Path | None, typer.Option("--jobs", help="The jobs file. Default: SOLOIST_JOBS, or jobs.yaml.", metavar="PATH")
]
Root = Annotated[
    Path | None,
    typer.Option(
        "--root",
        help="The folder of the functions that the jobs call. Default: SOLOIST_ROOT, or the jobs file's folder.",
        metavar="DIR",
    ),
]
Output = Annotated[
    Format, typer.Option("--output", "-o", help="`json`: a list of flat objects, a stable contract.", metavar="FORMAT")
]


def parse_instant(text: str) -> datetime:
    """An ISO date and time with its zone, as UTC. Without one it could mean two instants, so it is refused.

    So is a year that no schedule has: neither the calendar's arithmetic nor every reader of a row could hold it.
    """
    from scheduler.core.instants import near

    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not an ISO date and time, e.g. 2026-11-29T03:00:00Z") from None
    if instant.tzinfo is None:
        raise typer.BadParameter(f"{text!r} has no zone: append Z for UTC, or an offset such as +01:00")
    try:
        return near(instant)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def parse_seconds(text: str) -> float:
    """Seconds of a duration such as `15s`."""
    from scheduler.core.duration import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def parse_reason(text: str) -> str:
    """A person's reason: something that a table can show."""
    reason = text.strip()
    if not 1 <= len(reason) <= 500 or not reason.isprintable():
        raise typer.BadParameter("must be 1 to 500 printable characters")
    return reason


def person() -> str:
    """Who asks, for the history: the name of the OS user."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # containers run under numbers that have no name
        return f"uid {os.getuid()}"
