"""`soloist purge`: delete what is past its retention."""

from __future__ import annotations

from typing import Annotated

import typer

from scheduler.cli.options import Format, Jobs, Output, person

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count what would be deleted.")]
MaxRows = Annotated[int | None, typer.Option("--max-rows", min=1, help="Delete at most so many runs.", metavar="N")]


def purge(dry_run: DryRun = False, max_rows: MaxRows = None, jobs: Jobs = None, output: Output = Format.TABLE) -> None:
    """Delete finished runs that are past the retention of the jobs file, with their attempts."""
    from scheduler.cli.database import opened
    from scheduler.cli.failures import say
    from scheduler.cli.output import emit, field
    from scheduler.config.jobs_file import load
    from scheduler.config.settings import load_settings
    from scheduler.store.audit import note
    from scheduler.store.purge import purge_history
    from scheduler.store.visit import visit

    settings = load_settings(jobs=jobs)
    retention = load(settings.jobs).retention.to_dict()
    with opened(settings) as database, visit(database.url, "purge") as connection:
        report = purge_history(connection, retention=retention, max_rows=max_rows, dry_run=dry_run)
        if any(report.deleted.values()) and not dry_run:
            gone = ", ".join(f"{runs} {group}" for group, runs in report.deleted.items() if runs)
            note(connection, person(), "purge", f"deleted {gone}")
    rows = [{"group": group, "runs": runs, "dry_run": dry_run} for group, runs in report.deleted.items()]
    title = "would delete" if dry_run else "deleted"
    emit(rows, [field("group"), field("runs", title, right=True)], output)
    if report.limit_hit:
        say(f"more runs are past their retention than --max-rows {max_rows}: purge again")
