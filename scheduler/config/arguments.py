"""A job's `args` against its function's signature: names, and types by pydantic, without coercion.

Values are validated as JSON in strict mode: `"5"` is no int and `true` is no int, but a text in ISO form is a date, a
text is a Path, a list is a tuple or a set, a mapping is a dataclass or a pydantic model.
"""

from __future__ import annotations

import difflib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from scheduler.config.secrets import almost_reference, is_reference
from scheduler.core.duration import parse_duration
from scheduler.core.errors import SoloistError

_PLACEHOLDER = "text of a reference"
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_BY_PLACE = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


class CallInvalid(SoloistError):
    """A `call` that leads to no function, or args that do not fit it."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class _Parameter:
    required: bool
    adapter: TypeAdapter[Any]
    duration: bool


@dataclass(frozen=True, slots=True)
class _Signature:
    parameters: Mapping[str, _Parameter]
    open: bool
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """`name`: the argument that is wrong, or None where the function itself is."""

    name: str | None
    message: str

    def __str__(self) -> str:
        return self.message if self.name is None else f"{self.name}: {self.message}"


def check_args(function: Callable[..., Any], args: Mapping[str, Any]) -> list[str]:
    """What is wrong with `args` for this function; empty when they fit. References count as text."""
    return [str(problem) for problem in argument_problems(function, args)]


def argument_problems(function: Callable[..., Any], args: Mapping[str, Any]) -> list[ArgumentProblem]:
    """`check_args`, with the argument's name apart."""
    return _bind(function, args)[1]


def bind_args(function: Callable[..., Any], args: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword values for the call, converted to the annotated types. Raises CallInvalid that quotes no value."""
    bound, problems = _bind(function, args)
    if problems:
        raise CallInvalid("; ".join(f"args.{problem}" if problem.name else str(problem) for problem in problems))
    return bound


def _bind(function: Callable[..., Any], args: Mapping[str, Any]) -> tuple[dict[str, Any], list[ArgumentProblem]]:
    signature = _signature(function)
    if signature.fault is not None:
        return {}, [ArgumentProblem(None, signature.fault)]
    bound: dict[str, Any] = {}
    problems: list[ArgumentProblem] = []
    for name, value in args.items():
        parameter = signature.parameters.get(name)
        if parameter is not None:
            try:
                bound[name] = _converted(parameter, value)
            except ValueError as error:
                hint = "; a reference is {env: NAME} or {file: PATH}" if almost_reference(value) else ""
                problems.append(ArgumentProblem(name, f"{error}{hint}"))
        elif signature.open:
            bound[name] = value
        else:
            problems.append(ArgumentProblem(name, _unknown(name, signature, args)))
    missing = [name for name, one in signature.parameters.items() if one.required and name not in args]
    problems += [ArgumentProblem(name, "missing: the function needs this argument") for name in missing]
    return bound, problems


def _unknown(name: str, signature: _Signature, args: Mapping[str, Any]) -> str:
    free = [known for known in signature.parameters if known not in args]
    near = difflib.get_close_matches(name, free, n=1, cutoff=0.6)
    if near:
        return f'unknown argument (did you mean "{near[0]}"?)'
    known = ", ".join(signature.parameters) or "none"
    return f"unknown argument (the function takes: {known})"


def _converted(parameter: _Parameter, value: Any) -> Any:
    """The value in the parameter's type. Raises ValueError."""
    if parameter.duration and isinstance(value, str):
        return _as_timedelta(value)
    plain = _without_references(value)
    try:
        text = json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError):
        raise ValueError("not a value that JSON can hold") from None
    try:
        return parameter.adapter.validate_json(text, strict=True)
    except ValidationError as error:
        messages = _messages(error)
        if messages:
            raise ValueError("; ".join(messages)) from None
        return value


def _as_timedelta(text: str) -> timedelta:
    try:
        return timedelta(seconds=parse_duration(text))
    except ValueError:
        # parse_duration quotes its text, and this one may have come from a reference.
        raise ValueError("not a duration such as 90s, 15m or 1h30m") from None


def _messages(error: ValidationError) -> list[str]:
    """pydantic's reasons in short. What a reference's text will *say* is not known yet, only that it is a text."""
    details = error.errors(include_url=False, include_context=False)
    held_back = [one for one in details if one["input"] == _PLACEHOLDER]
    if any(not one["type"].endswith("_type") and one["type"] != "none_required" for one in held_back):
        details = [one for one in details if one["input"] != _PLACEHOLDER]
    return list(dict.fromkeys(_message(one["loc"], one["msg"]) for one in details))


def _message(loc: tuple[int | str, ...], text: str) -> str:
    where = ".".join(str(part) for part in loc)
    said = text[:1].lower() + text[1:]
    return f"{where}: {said}" if where else said


def _without_references(value: Any) -> Any:
    if is_reference(value):
        return _PLACEHOLDER
    if isinstance(value, Mapping):
        return {key: _without_references(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_references(inner) for inner in value]
    return value


def _yields(function: Callable[..., Any]) -> bool:
    """Whether a call makes a generator, whose body nobody would run. What wraps one may well run it."""
    code = function if inspect.isroutine(function) or isinstance(function, partial) else type(function).__call__
    return inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code)


@lru_cache(maxsize=1024)
def _signature(function: Callable[..., Any]) -> _Signature:
    if _yields(function):
        fault = "the function is a generator (it has a yield), so a call runs none of it: return instead"
        return _Signature({}, open=False, fault=fault)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return _Signature({}, open=False, fault="the function has no signature that can be read")
    if not parameters or parameters[0].kind not in _BY_PLACE:
        return _Signature({}, open=False, fault="the function must take the RunContext as its first parameter")
    found: dict[str, _Parameter] = {}
    rest = parameters[1:]
    for parameter in rest:
        needed = parameter.default is inspect.Parameter.empty
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and needed:
            fault = f"the function's parameter {parameter.name!r} cannot be given by name (positional only)"
            return _Signature({}, open=False, fault=fault)
        if parameter.kind in _BY_NAME:
            note = _annotation(function, parameter)
            duration = note is timedelta or set(get_args(note)) == {timedelta, type(None)}
            found[parameter.name] = _Parameter(needed, _adapter(note), duration)
    return _Signature(found, open=any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in rest))


def _annotation(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The parameter's type, one by one: a name imported only for type checkers must not spoil the others."""
    note = parameter.annotation
    if note is inspect.Parameter.empty:
        return Any
    while isinstance(function, partial):
        function = function.func
    names = getattr(inspect.unwrap(function), "__globals__", {})
    holder = SimpleNamespace(__annotations__={parameter.name: note})
    try:
        return get_type_hints(holder, globalns=names, include_extras=True)[parameter.name]
    except Exception:
        # Evaluating a user's annotation may raise anything; it only means that this argument's type is not checked.
        return Any


def _adapter(note: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(note)
    except (PydanticUserError, TypeError):
        return TypeAdapter(Any)
