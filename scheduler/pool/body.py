"""Run a job's function and say how it ended: the one place that turns returns and exceptions into an Ending.

The child and the thread kind both use it, so that a job means the same under either isolation.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import traceback
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import UUID

from scheduler.core.context import RunInfo
from scheduler.core.errors import Cancelled, Fatal, LeaseLost, Retry, Skip
from scheduler.core.model import Ending, Outcome
from scheduler.pool.text import clean, clean_json, last

RESULT_LIMIT = 64 * 1024
_TEXT_LIMIT = 4096
_TRACE_LIMIT = 16 * 1024
_INFO = tuple(field.name for field in fields(RunInfo))  # `asdict` copies deeply, at a third of a short run's cost
_ENDING = tuple(field.name for field in fields(Ending))

_CALLED_WITHOUT: set[Callable[..., Any]] = set()  # functions that are known to need no arguments


class Terminated(BaseException):
    """TERM from Soloist, raised inside the body so that its `finally` blocks run."""


class ResultRefused(Exception):
    """The function returned what cannot be kept."""


def resolve(call: str, root: Path) -> Callable[..., Any]:
    """The function that `call` names. Raises what its import raises."""
    from scheduler.config import callables  # noqa: PLC0415 - late: the zygote need not wait for it

    return callables.resolve(call, root)


def arguments(function: Callable[..., Any], args: dict[str, Any], root: Path) -> dict[str, Any]:
    """The job's `args` as the function takes them, with the secrets that they refer to."""
    if not args and function in _CALLED_WITHOUT:
        return {}
    from scheduler.config import arguments, secrets  # noqa: PLC0415

    bound = arguments.bind_args(function, secrets.resolve_args(args, root))
    if not args:
        _CALLED_WITHOUT.add(function)
    return bound


def execute(function: Callable[[], Any]) -> Ending:
    """Call `function`, a coroutine function in an event loop of its own. Never raises.

    The traceback of an exception is the Ending's `output_tail`; whoever captured output puts it before that.
    """
    try:
        value = function()
        if inspect.iscoroutine(value):
            with asyncio.Runner() as runner:
                value = runner.run(value)
        return Ending(Outcome.SUCCEEDED, result=keep_result(value))
    except BaseException as error:
        return ending_of(error)


def keep_result(value: Any) -> Any:
    """`value` as JSON gives it back, sanitised. Raises ResultRefused."""
    if value is None:
        return None
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ResultRefused(
            f"the function's result is not JSON ({error}): "
            "return dicts with string keys, lists, strings, finite numbers, booleans or None"
        ) from None
    size = len(text.encode("utf-8", "replace"))
    if size > RESULT_LIMIT:
        raise ResultRefused(
            f"the function's result is {size} bytes of JSON, at most {RESULT_LIMIT} are kept: "
            "store it elsewhere and return a reference to it"
        )
    return clean_json(json.loads(text))


def ending_of(error: BaseException) -> Ending:
    """What an exception that left the body means. The traceback is in `output_tail`."""
    name, text = class_name(error), message_of(error)
    if isinstance(error, Skip):
        return Ending(Outcome.SKIPPED, error_class=name, error_text=text)
    if isinstance(error, Cancelled):
        return Ending(Outcome.CANCELLED, error_class=name, error_text=text)
    if isinstance(error, LeaseLost):
        return Ending(Outcome.LEASE_LOST, error_class=name, error_text=text)
    if isinstance(error, SystemExit):
        return _exited(error)
    return Ending(
        Outcome.FAILED,
        error_class=name,
        error_text=text,
        retry_after=error.after if isinstance(error, Retry) else None,
        final=isinstance(error, Fatal),
        output_tail=trace_of(error),
    )


def _exited(error: SystemExit) -> Ending:
    """Python's own rule: None is 0, a number is itself, and anything else is printed and means 1."""
    if error.code is None:
        return Ending(Outcome.SUCCEEDED, exit_code=0)
    code = error.code if isinstance(error.code, int) else 1
    if code == 0:
        return Ending(Outcome.SUCCEEDED, exit_code=0)
    text = f"the function called sys.exit({code})" if isinstance(error.code, int) else message_of(error)
    return Ending(Outcome.FAILED, error_class="SystemExit", error_text=text, exit_code=code)


def class_name(error: BaseException) -> str:
    """Dotted; those of Python itself by their bare name."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def message_of(error: BaseException) -> str:
    """Its text, sanitised, at most 4 KiB; its class where it has none. One that cannot be printed hurts nobody."""
    try:
        text = str(error)
    except Exception:
        return "<the exception cannot be printed>"
    return clean(text[:_TEXT_LIMIT]) if text.strip() else type(error).__qualname__


def trace_of(error: BaseException) -> str:
    """The traceback from the job's own first line on, at most 16 KiB, its end kept."""
    try:
        lines = traceback.format_exception(type(error), error, _own_lines(error.__traceback__))
        return last(clean("".join(lines)), _TRACE_LIMIT)
    except Exception:
        return ""


def _own_lines(trace: TracebackType | None) -> TracebackType | None:
    """Without the frames of this file and of asyncio that every traceback would begin with."""
    while trace is not None and trace.tb_next is not None:
        if trace.tb_frame.f_globals.get("__name__", "").split(".")[0] not in ("scheduler", "asyncio"):
            break
        trace = trace.tb_next
    return trace


def pack_info(info: RunInfo) -> dict[str, Any]:
    """A RunInfo as JSON."""
    plain = {name: getattr(info, name) for name in _INFO}
    plain["run_id"] = str(info.run_id)
    plain["scheduled_at"] = info.scheduled_at.isoformat()
    plain["deadline"] = None if info.deadline is None else info.deadline.isoformat()
    return plain


def unpack_info(plain: dict[str, Any]) -> RunInfo:
    """What `pack_info` packed."""
    deadline = plain["deadline"]
    return RunInfo(
        **{
            **plain,
            "run_id": UUID(plain["run_id"]),
            "scheduled_at": datetime.fromisoformat(plain["scheduled_at"]),
            "deadline": None if deadline is None else datetime.fromisoformat(deadline),
        }
    )


def pack_ending(ending: Ending) -> dict[str, Any]:
    """An Ending as JSON."""
    return {name: getattr(ending, name) for name in _ENDING}


def unpack_ending(plain: dict[str, Any]) -> Ending:
    """What `pack_ending` packed."""
    return Ending(**{**plain, "outcome": Outcome(plain["outcome"])})
