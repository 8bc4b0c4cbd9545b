"""The jobs file, as commands read it."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from scheduler.core.errors import ConfigInvalid

if TYPE_CHECKING:
    from scheduler.config.jobs_file import Plan
    from scheduler.core.model import JobSpec


def load_checked(path: Path, *, only: str | None = None) -> Plan:
    """The plan, its callables checked. `only`: those of one job, so that its neighbours cannot stop it.

    Raises ConfigInvalid with every problem, NotFound for `only`.
    """
    from scheduler.config.check import check
    from scheduler.config.jobs_file import load

    plan = load(path)
    looked_at = plan if only is None else replace(plan, jobs=(find_job(plan, only),))
    with redirect_stdout(sys.stderr):  # the users' modules may print when they are imported
        problems = check(looked_at)
    if problems:
        raise ConfigInvalid(tuple(problems))
    return plan


def find_job(plan: Plan, name: str) -> JobSpec:
    """The job of that name. Raises NotFound, with the name that was probably meant."""
    from scheduler.cli.names import unknown_job

    for spec in plan.jobs:
        if spec.name == name:
            return spec
    raise unknown_job(name, [spec.name for spec in plan.jobs], f"in {plan.name}")
