"""The jobs file, as commands read it."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from scheduler.core.errors import ConfigInvalid, Problem

if TYPE_CHECKING:
    from scheduler.config.jobs_file import Plan
    from scheduler.core.model import JobSpec


def load_checked(path: Path, root: Path | None, *, only: str | None = None) -> Plan:
    """The plan, its callables checked. `only`: those of one job, so that its neighbours' cannot stop it.

    `root`: the folder of the callables, where it is not that of the file.
    Raises ConfigInvalid with every problem, NotFound for `only`.
    """
    from scheduler.config.check import check_draft
    from scheduler.config.jobs_file import read

    if root is not None and not root.is_dir():  # else each job by itself would say that its package is missing
        why = f"there is no folder {root}: write the one that holds the packages of the jobs' functions"
        raise ConfigInvalid((Problem("environment", 0, 0, "SOLOIST_ROOT", why),))
    draft = read(path, root)
    calls = draft.calls
    if only is not None:
        if not draft.problems:  # else it may be the very entry that is broken
            find_job(draft.plan, only)
        calls = tuple(called for called in calls if called.job == only)
    with redirect_stdout(sys.stderr):  # the users' modules may print when they are imported
        problems = check_draft(replace(draft, calls=calls))
    if problems:
        raise ConfigInvalid(problems)
    return draft.plan


def find_job(plan: Plan, name: str) -> JobSpec:
    """The job of that name. Raises NotFound, with the name that was probably meant."""
    from scheduler.cli.names import unknown_job

    for spec in plan.jobs:
        if spec.name == name:
            return spec
    raise unknown_job(name, [spec.name for spec in plan.jobs], f"in {plan.name}")


def find_jobs(plan: Plan, names: list[str]) -> tuple[JobSpec, ...]:
    """The jobs of these names, each once; all of them for no name. Raises NotFound."""
    return tuple(find_job(plan, name) for name in dict.fromkeys(names)) if names else plan.jobs
