"""`soloist check`: is the jobs file right? No database."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from scheduler.cli.options import Format, Jobs, Output

File = Annotated[Path | None, typer.Argument(help="The same as --jobs.", metavar="[FILE]", show_default=False)]


def check(file: File = None, jobs: Jobs = None, output: Output = Format.TABLE) -> None:
    """Check the jobs file and every function it names; prints all problems at once."""
    from scheduler.cli.output import emit_json
    from scheduler.cli.plan import load_checked
    from scheduler.config.settings import load_settings
    from scheduler.core.errors import ConfigInvalid

    path = file or load_settings(jobs=jobs).jobs
    try:
        plan = load_checked(path)
    except ConfigInvalid as error:
        if output is Format.JSON:
            emit_json([asdict(problem) for problem in error.problems])
        raise
    if output is Format.JSON:
        emit_json([])
    else:
        count = len(plan.jobs)
        print(f"{plan.name}: {count} job{'' if count == 1 else 's'}, no problems")
