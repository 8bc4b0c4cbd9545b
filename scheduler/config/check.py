"""Does every `call` lead to a function that takes its `args`? Imports the users' modules; needs no database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from scheduler.config.arguments import CallInvalid, argument_problems
from scheduler.config.callables import find_function, load_module, split_call
from scheduler.config.jobs_file import Draft
from scheduler.config.plan import Plan, in_file_order
from scheduler.core.errors import Problem
from scheduler.core.model import JobSpec


def check_draft(draft: Draft) -> tuple[Problem, ...]:
    """The draft's own problems, and those of the callables of its sound jobs, together in file order."""
    return in_file_order([*draft.problems, *check(draft.plan)])


def check(plan: Plan) -> list[Problem]:
    """What is wrong with the plan's callables and their args, in file order. Each module is imported once at most."""
    modules: dict[str, ModuleType | CallInvalid] = {}
    found = [problem for job in plan.jobs for problem in _check_job(plan, job, modules)]
    return list(in_file_order(found))


def _check_job(plan: Plan, job: JobSpec, modules: dict[str, ModuleType | CallInvalid]) -> Iterator[Problem]:
    path = f"jobs.{job.name}"
    try:
        function = _function(plan, job.call, modules)
    except CallInvalid as error:
        yield plan.problem(f"{path}.call", str(error))
        return
    for problem in argument_problems(function, job.args):
        if problem.name is None:
            yield plan.problem(f"{path}.call", problem.message)
        else:
            yield plan.problem(f"{path}.args.{problem.name}", problem.message)


def _function(plan: Plan, call: str, modules: dict[str, ModuleType | CallInvalid]) -> Callable[..., Any]:
    module_name, function_name = split_call(call)
    module = modules.get(module_name)
    if module is None:
        try:
            module = load_module(module_name, plan.root)
        except CallInvalid as error:
            # An import that raised may have side effects; it is not tried again for the next job.
            module = error
        modules[module_name] = module
    if isinstance(module, CallInvalid):
        raise module
    return find_function(module, function_name)
