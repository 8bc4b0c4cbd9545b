"""`soloist jobs`: what there is to do, what is paused, and how it went last."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scheduler.cli.options import Format, Output

if TYPE_CHECKING:
    from scheduler.cli.output import Column
    from scheduler.core.schedule import Schedule

All = Annotated[bool, typer.Option("--all", help="Also jobs that were removed from the plan.")]
PausedOnly = Annotated[bool, typer.Option("--paused", help="Only jobs that are paused.")]


def jobs(everything: All = False, paused: PausedOnly = False, output: Output = Format.TABLE) -> None:
    """List the jobs of the plan in force: next tick, pause, last run."""
    from scheduler.cli.database import opened
    from scheduler.cli.failures import say
    from scheduler.cli.output import emit
    from scheduler.config.settings import load_settings
    from scheduler.store.overview import list_jobs
    from scheduler.store.visit import visit

    with opened(load_settings()) as database, visit(database.url, "jobs") as connection:
        rows = [_row(found) for found in list_jobs(connection)]
    shown = [row for row in rows if (everything or row["state"] != "removed") and (not paused or row["paused_at"])]
    emit(shown, _columns(), output)
    if not shown:
        say("no job is paused" if paused and rows else "there is no job: no replica has put a plan in force here yet")


def _row(found: dict[str, Any]) -> dict[str, Any]:
    from scheduler.core.spec import spec_from_dict

    spec = spec_from_dict(found["spec"])
    state = "removed" if found["removed_at"] else "paused" if found["paused_at"] else "active"
    facts = {key: value for key, value in found.items() if key not in ("job", "spec", "watermark", "now")}
    return {
        "job": spec.name,
        "state": state,
        "schedule": schedule_text(spec.schedule),
        "timezone": spec.timezone,
        "next_tick": _next_tick(spec.schedule, found),
        **facts,
    }


def _next_tick(schedule: Schedule | None, found: dict[str, Any]) -> datetime | None:
    """The first tick that will be claimed: one that is due already, or comes; of a pause without end there is none."""
    from scheduler.core.schedule import next_after

    if schedule is None or found["removed_at"] or (found["paused_at"] and found["paused_until"] is None):
        return None
    return next_after(schedule, max(found["paused_until"] or found["watermark"], found["watermark"]))


def schedule_text(schedule: Schedule | None) -> str:
    """As jobs.yaml would have it: `0 3 * * *`, `every 15m`, `at 2026-12-24T18:00:00Z`, `by hand`."""
    from scheduler.cli.output import instant
    from scheduler.core.schedule import At, Cron, Every

    match schedule:
        case Cron():
            return schedule.expression
        case Every():
            return f"every {_duration(schedule.seconds)}"
        case At():
            return f"at {instant(schedule.instant)}"
        case None:
            return "by hand"


def _duration(seconds: float) -> str:
    left, text = round(seconds * 1000), ""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        number, left = divmod(left, size)
        text += f"{number}{unit}" if number else ""
    return text


def _columns() -> list[Column]:
    from scheduler.cli.output import Column, field, first_line, second

    return [
        field("job"),
        field("state"),
        field("schedule"),
        field("next_tick", "next tick", second),
        field("last_status", "last run"),
        Column("at", lambda row: second(at) if (at := row["last_finished_at"] or row["last_started_at"]) else ""),
        field("paused_until", "paused until", second),
        field("paused_by", "paused by"),
        field("paused_reason", "why", first_line),
    ]
