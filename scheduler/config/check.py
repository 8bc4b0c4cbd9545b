"""Does every `call` lead to a function that takes its `args`? Imports the users' modules; needs no database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from scheduler.config.arguments import CallInvalid, argument_problems
from scheduler.config.callables import find_function, load_module, split_call, staleness
from scheduler.config.jobs_file import Draft
from scheduler.config.plan import Called, Plan, among, in_file_order
from scheduler.core.errors import Problem


def check_draft(draft: Draft) -> tuple[Problem, ...]:
    """The draft's own problems, and those of what its entries call, together in file order. Nothing is said twice."""
    own = sorted({problem.path for problem in draft.problems})
    found = _check(draft.plan, draft.calls)
    return in_file_order([*draft.problems, *(problem for problem in found if not among(own, problem.path))])


def check(plan: Plan) -> list[Problem]:
    """What is wrong with the plan's callables and their args, in file order."""
    return list(in_file_order(_check(plan, [Called(job.name, job.call, job.args) for job in plan.jobs])))


def _check(plan: Plan, calls: Iterable[Called]) -> Iterator[Problem]:
    """Each module is imported once at most."""
    modules: dict[str, ModuleType | CallInvalid] = {}
    for called in calls:
        yield from _check_call(plan, called, modules)


def _check_call(plan: Plan, called: Called, modules: dict[str, ModuleType | CallInvalid]) -> Iterator[Problem]:
    path = f"jobs.{called.job}"
    try:
        module, function = _function(plan, called.call, modules)
    except CallInvalid as error:
        yield plan.problem(f"{path}.call", str(error))
        return
    for problem in argument_problems(function, called.args or {}):
        if called.args is None and problem.name is not None:
            continue
        key = "call" if problem.name is None else f"args.{problem.name}"
        yield plan.problem(f"{path}.{key}", f"{problem.message}{staleness(module)}")


def _function(
    plan: Plan, call: str, modules: dict[str, ModuleType | CallInvalid]
) -> tuple[ModuleType, Callable[..., Any]]:
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
    return module, find_function(module, function_name)
