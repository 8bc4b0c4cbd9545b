"""`soloist diff`: what will an edit of the jobs file do? No database."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scheduler.cli.options import Format, Jobs, Output, parse_instant

if TYPE_CHECKING:
    from scheduler.config.plan import Plan
    from scheduler.core.diff import TickChanges
    from scheduler.core.model import JobSpec

SHOWN = 5
"""Ticks of one job and kind of change; the rest is a number. A rest of one is shown as it is: that is no longer."""

Old = Annotated[Path, typer.Argument(help="The file as it was; - reads it from stdin.", metavar="OLD")]
New = Annotated[
    Path | None, typer.Argument(help="The file as it is now. Default: as --jobs.", metavar="NEW", show_default=False)
]
Days = Annotated[int, typer.Option("--days", min=1, max=366, help="So many days of ticks.", metavar="N")]
After = Annotated[
    datetime | None,
    typer.Option("--after", parser=parse_instant, help="Ticks strictly after this instant. Default: now.", metavar="T"),
]
ExitCode = Annotated[bool, typer.Option("--exit-code", help="Exit with 1 where there are differences.")]


def diff(
    old: Old,
    new: New = None,
    days: Days = 7,
    after: After = None,
    exit_code: ExitCode = False,
    jobs: Jobs = None,
    output: Output = Format.TABLE,
) -> None:
    """Show what an edit will do: jobs and keys that change, and ticks that come, go or move."""
    from scheduler.cli.failures import say
    from scheduler.cli.output import Column, emit, field
    from scheduler.config.jobs_file import load
    from scheduler.config.settings import load_settings
    from scheduler.runner.clock import SystemClock

    settings = load_settings(jobs=jobs)
    was, now_is = _load(old), load(new or settings.jobs)
    since = SystemClock(settings.clock_offset).now() if after is None else after
    rows = list(_rows(was, now_is, since, since + timedelta(days=days)))
    columns = [
        Column("job", lambda row: row["job"] or ""),
        field("change"),
        Column("what", lambda row: row["key"] or row["what"]),
        Column("old", lambda row: _shown(row, "old")),
        Column("new", lambda row: _shown(row, "new")),
    ]
    emit(rows, columns, output)
    if not rows:
        say(f"no difference in what is executed, nor in the ticks of {days} days")
    elif exit_code:
        raise typer.Exit(1)


def _load(path: Path) -> Plan:
    from scheduler.config.jobs_file import load, parse
    from scheduler.config.yaml_reader import LARGEST

    return parse(sys.stdin.buffer.read(LARGEST + 1), "stdin") if str(path) == "-" else load(path)


def _shown(row: Mapping[str, Any], side: str) -> str:
    from scheduler.config.effective import flow_text

    value = row[side]
    if row["count"] > 1:
        return f"and {row['count']:,} more" if side == "old" else ""
    return "" if value is None else flow_text(value)


def _rows(was: Plan, now_is: Plan, after: datetime, until: datetime) -> Iterator[dict[str, Any]]:
    """Flat rows. `what`: job, key or tick; `count`: 1, or for how many more ticks (two at least) the row stands."""
    from scheduler.config.effective import effective_rows
    from scheduler.core.diff import changed_keys, changed_ticks

    for change in changed_keys(_of_file(was), _of_file(now_is)):
        yield _row(None, change.change, "key", change.key, change.old, change.new)
    old, new = ({spec.name: spec for spec in plan.jobs} for plan in (was, now_is))
    keys = [{row["job"]: row for row in effective_rows(plan)} for plan in (was, now_is)]
    for name in dict.fromkeys([*new, *old]):
        if name in old and name in new:
            for change in changed_keys(keys[0][name], keys[1][name]):
                if change.key != "spec_hash":
                    yield _row(name, change.change, "key", change.key, change.old, change.new)
        else:
            yield _row(name, "added" if name in new else "removed", "job")
        yield from _tick_rows(
            new.get(name) or old[name], changed_ticks(old.get(name), new.get(name), after, until), until
        )


def _of_file(plan: Plan) -> dict[str, Any]:
    """The file's own keys that no job's entry shows."""
    from scheduler.core.duration import format_duration

    return {f"retention.{name}": format_duration(seconds) for name, seconds in plan.retention.to_dict().items()}


def _tick_rows(spec: JobSpec, ticks: TickChanges, until: datetime) -> Iterator[dict[str, Any]]:
    from scheduler.cli.failures import say
    from scheduler.cli.output import instant
    from scheduler.core.zones import load_zone

    zone, told, number = load_zone(spec.timezone), Counter[str](), Counter(str(one.change) for one in ticks.changes)
    shown = {change: count if count == SHOWN + 1 else min(count, SHOWN) for change, count in number.items()}
    for one in ticks.changes:
        told[one.change] += 1
        if told[one.change] <= shown[one.change]:
            old, new = (None if side is None else side.astimezone(zone).isoformat() for side in (one.old, one.new))
            yield _row(spec.name, one.change, "tick", None, old, new)
    for change, count in number.items():
        if count > shown[change]:
            yield _row(spec.name, change, "tick", count=count - shown[change])
    if ticks.until < until:
        say(f"{spec.name} has very many ticks: they are compared up to {instant(ticks.until)} only")


def _row(
    job: str | None, change: str, what: str, key: str | None = None, old: Any = None, new: Any = None, count: int = 1
) -> dict[str, Any]:
    return {"job": job, "change": str(change), "what": what, "key": key, "old": old, "new": new, "count": count}
