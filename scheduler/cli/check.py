"""`soloist check`: is the jobs file right? No database."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scheduler.cli.options import Format, Jobs, Output, Root

if TYPE_CHECKING:
    from scheduler.config.plan import Plan
    from scheduler.core.errors import Problem

File = Annotated[Path | None, typer.Argument(help="The same as --jobs.", metavar="FILE", show_default=False)]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings count as errors: exit 3.")]
Effective = Annotated[
    bool, typer.Option("--effective", help="Print every job with all defaults filled in, as a jobs file.")
]


def check(
    file: File = None,
    jobs: Jobs = None,
    root: Root = None,
    strict: Strict = False,
    effective: Effective = False,
    output: Output = Format.TABLE,
) -> None:
    """Check the jobs file and every function it names; prints all problems at once, then warnings."""
    from scheduler.cli.output import emit_json
    from scheduler.cli.plan import load_checked
    from scheduler.config.settings import load_settings
    from scheduler.core.errors import ConfigInvalid
    from scheduler.runner.clock import SystemClock

    settings = load_settings(jobs=jobs, root=root)
    try:
        plan = load_checked(file or settings.jobs, settings.root)
    except ConfigInvalid as error:
        if output is Format.JSON and not effective:
            emit_json(_rows("error", error.problems))
        raise
    warnings = plan.advice(SystemClock(settings.clock_offset).now())
    _warn(warnings)
    if effective:
        _emit_effective(plan, output)
    elif output is Format.JSON:
        emit_json(_rows("warning", warnings))
    else:
        found = f"{_count(len(warnings), 'warning')}" if warnings else "no problems"
        print(f"{plan.name}: {_count(len(plan.jobs), 'job')}, {found}")
    if strict and warnings:
        raise typer.Exit(3)


def _rows(severity: str, problems: Iterable[Problem]) -> list[dict[str, Any]]:
    return [{"severity": severity} | asdict(problem) for problem in problems]


def _warn(warnings: Iterable[Problem]) -> None:
    from scheduler.core.errors import Problem

    with suppress(BrokenPipeError):
        for one in warnings:
            print(Problem(one.file, one.line, one.column, one.path, f"warning: {one.message}"), file=sys.stderr)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _emit_effective(plan: Plan, output: Format) -> None:
    from scheduler.cli.output import emit_json
    from scheduler.config.effective import effective_rows, effective_text

    if output is Format.JSON:
        emit_json(effective_rows(plan))
    else:
        print(effective_text(plan), end="")
