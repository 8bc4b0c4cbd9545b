"""`soloist explain`: why a tick ran, or did not."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from scheduler.cli.options import Format, Output, parse_instant

Job = Annotated[str, typer.Argument(help="The job's name.", metavar="JOB")]
At = Annotated[
    datetime, typer.Option("--at", parser=parse_instant, help="The tick: an instant with its zone.", metavar="T")
]


def explain(job: Job, at: At, output: Output = Format.TABLE) -> None:
    """Say what became of a tick: who ran it and how it ended, or why it did not run."""
    from zoneinfo import ZoneInfo

    from scheduler.cli.database import opened
    from scheduler.cli.inquiry import Inquiry
    from scheduler.cli.names import known_job
    from scheduler.cli.output import emit_json, printable, second
    from scheduler.config.settings import load_settings
    from scheduler.runner.clock import SystemClock
    from scheduler.store.visit import visit, visit_session

    with opened(load_settings()) as database:
        with visit_session(database.url, "explain", SystemClock()) as session:
            known = known_job(session, job)
        with visit(database.url, "explain") as connection:
            inquiry = Inquiry(connection, known, at)
            answer = inquiry.answer()
    if output is Format.JSON:
        emit_json([answer.row(job, at, inquiry.key)])
        return
    local = at.astimezone(ZoneInfo(known.spec.timezone)).strftime("%Y-%m-%d %H:%M:%S")
    print(f"{job} at {second(at)} ({local} {known.spec.timezone}): {answer.answer.replace('_', ' ')}")
    for line in answer.text.splitlines():
        print(f"  {printable(line)}")
