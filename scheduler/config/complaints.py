"""pydantic's complaints in the words of the person who wrote the file."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

_MUST_BE = {
    "string_type": "must be a text: quote it",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "list_type": "must be a list, [a, b]",
    "dict_type": "must be a mapping, {key: value}",
    "model_type": "must be a mapping, {key: value}",
}
_WRITE = {"version": "version: 1", "jobs": "jobs: {} for none", "call": "call: package.module:function"}
"""What to write where a key is missing."""
_OTHER_WORDS = {
    "cron": "schedule",
    "crontab": "schedule",
    "interval": "every",
    "run_at": "at",
    "start_date": "from",
    "end_date": "until",
    "exclude": "except",
    "holidays": "except",
    "tz": "timezone",
    "function": "call",
    "retries": "retry",
    "concurrency": "overlap",
}
"""What other schedulers call it."""


def explain(error: ValidationError, kind: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """(dotted path below the section, message) of each complaint about a section of this kind."""
    for detail in error.errors(include_url=False):
        loc = tuple(str(part) for part in detail["loc"])
        if detail["type"] == "extra_forbidden":
            yield ".".join(loc), _unknown_key(loc[-1], _section_at(kind, loc[:-1]))
        elif detail["type"] == "invalid_key" or "[key]" in loc:
            yield ".".join(part for part in loc if part != "[key]"), "a key must be a text: quote it"
        else:
            yield ".".join(loc), _message(detail)


def _message(detail: ErrorDetails) -> str:
    kind, value = detail["type"], detail["input"]
    if kind == "value_error":
        return str(detail.get("ctx", {}).get("error", detail["msg"]))
    if kind == "missing":
        example = _WRITE.get(str(detail["loc"][-1]))
        return f"is missing: write {example}" if example else "is missing"
    if kind in _MUST_BE:
        return f"{_MUST_BE[kind]}{_not_what(value)}"
    return detail["msg"].removeprefix("Input ")


def _not_what(value: Any) -> str:
    if value is None:
        return " (it is empty)"
    names = {
        str: "a text",
        bool: "true or false",
        dict: "a mapping",
        list: "a list",
        int: "a number",
        float: "a number",
    }
    return f", not {names.get(type(value), type(value).__name__)}"


def _unknown_key(key: str, kind: type[BaseModel]) -> str:
    known = [field.alias or name for name, field in kind.model_fields.items()]
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.65)
    guess = near[0] if near else _OTHER_WORDS.get(key)
    if guess in known:
        return f'unknown key (did you mean "{guess}"?)'
    return f"unknown key (known here: {', '.join(known)})"


def _section_at(kind: type[BaseModel], loc: tuple[str, ...]) -> type[BaseModel]:
    for part in loc:
        annotation = kind.model_fields[part].annotation
        assert isinstance(annotation, type)
        assert issubclass(annotation, BaseModel)
        kind = annotation
    return kind
