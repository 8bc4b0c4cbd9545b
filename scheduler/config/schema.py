"""jobs.yaml as a JSON Schema (draft 2020-12), for editors: made from the models, so that it cannot fall behind them.

It knows shapes, types, words, patterns, and which keys need or exclude each other. What needs a calendar, a list of
zones or the defaults (an impossible cron line, `after_crash: fail` beside retries, a plain secret) the reader of the
file alone refuses; what the schema refuses, so does the reader. A test holds both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, get_args

from annotated_types import Ge, Le
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from scheduler.config.models import JOB_NAME, LONGEST_TEXT, DefaultsSection, FileSection, JobSection
from scheduler.config.schema_words import WORDS
from scheduler.core.crontab import MACROS
from scheduler.core.duration import format_duration

_LENGTHS = "([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?([0-9]{1,9}ms)?"
_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_DURATION = {"type": "string", "pattern": f"^(?=[0-9]){_LENGTHS}$", "examples": ["90s", "15m", "1h30m"]}
_LENGTH = _DURATION | {"pattern": f"^(?=.*[1-9]){_LENGTHS}$"}
_INSTANT = {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT}
_SHAPES: dict[str, dict[str, Any]] = {
    "_version": {"const": 1},
    "_duration": _DURATION,
    "_positive": _LENGTH,
    "_limit": {"anyOf": [{"const": "none"}, _LENGTH]},
    "_zone": {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT, "examples": ["Europe/London", "UTC"]},
    "_cron": {
        "type": "string",
        "pattern": rf"^[ \t\r\n]*([!-?A-~][!-~]*([ \t]+[!-~]+){{4}}|{'|'.join(MACROS)})[ \t\r\n]*$",
        "maxLength": LONGEST_TEXT,
        "examples": ["0 3 * * *", "*/15 8-18 * * 1-5", "@weekly"],
    },
    "_every": _LENGTH,
    "_at": _INSTANT | {"examples": ["2026-12-24T18:00:00Z", "2026-12-24T18:00"]},
    "_anchor": _INSTANT | {"examples": ["2026-01-01T03:00:00Z"]},
    "_from": _INSTANT | {"examples": ["2026-01-01"]},
    "_until": _INSTANT | {"examples": ["2026-12-31"]},
    "_day_off": {"type": "string", "pattern": "^([0-9]{4}-)?[0-9]{2}-[0-9]{2}$", "examples": ["2026-12-25", "12-25"]},
    "_call": {
        "type": "string",
        "pattern": rf"^{_NAME}(\.{_NAME})*:{_NAME}(\.{_NAME})*$",
        "maxLength": LONGEST_TEXT,
        "examples": ["jobs.registry:build"],
    },
}
"""What a validator of the models takes, by its name. Of one that is not here the schema knows the type alone."""

_RECURS = {"anyOf": [{"required": ["schedule"]}, {"required": ["every"]}]}
_TOGETHER = {
    "allOf": [{"not": {"required": pair}} for pair in (["schedule", "every"], ["schedule", "at"], ["every", "at"])],
    "dependentSchemas": {
        "anchor": {"required": ["every"]},
        "dst": {"required": ["schedule"]},
        **{key: _RECURS for key in ("from", "until", "except", "once_per")},
    },
}
"""A job's keys that exclude or need each other."""


def jobs_schema() -> dict[str, Any]:
    """The schema, JSON-able. The same models make the same text."""
    whole = _section(FileSection, "file")
    whole["properties"]["defaults"] = _described({"$ref": "#/$defs/defaults"}, "file.defaults")
    whole["properties"]["jobs"] = _described(
        {
            "type": "object",
            "propertyNames": {"pattern": f"^{JOB_NAME}$"},
            "additionalProperties": {"$ref": "#/$defs/job"},
        },
        "file.jobs",
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Soloist: jobs.yaml",
        "description": "The schedule of a service's jobs; `soloist check` knows more than this schema.",
        **whole,
        "$defs": {"job": _section(JobSection, "job") | _TOGETHER, "defaults": _section(DefaultsSection, "job")},
    }


def keys_of(kind: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """The keys of a section as the file has them, with their fields."""
    for name, field in kind.model_fields.items():
        yield field.alias or name, field


def default_of(field: FieldInfo) -> Any:
    """A key's default as one would write it; None where it has none, or is a section of its own."""
    default = field.default_factory() if field.default_factory is not None else field.default  # type: ignore[call-arg]
    if isinstance(default, float):
        return format_duration(default)
    if isinstance(default, StrEnum):
        return default.value
    if default is None and "_limit" in _validators(field):
        return "none"
    return default if isinstance(default, str | int | list | dict) else None


def section_of(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a key that is a section: `retry`."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _section(kind: type[BaseModel], name: str) -> dict[str, Any]:
    required = [key for key, field in keys_of(kind) if field.is_required()]
    return {
        "type": "object",
        "additionalProperties": False,
        **({"required": required} if required else {}),
        "properties": {key: _key(field, f"{name}.{key}") for key, field in keys_of(kind)},
    }


def _key(field: FieldInfo, path: str) -> dict[str, Any]:
    section = section_of(field)
    if section is not None:
        return _described(_section(section, path.partition(".")[2]), path)
    shape = _shape(field)
    default = default_of(field)
    return _described(shape | ({"default": default} if default not in (None, "") else {}), path)


def _described(shape: dict[str, Any], path: str) -> dict[str, Any]:
    said = WORDS.get(path)
    return shape | {"description": said} if said else shape


def _shape(field: FieldInfo) -> dict[str, Any]:
    """Type, words, pattern and bounds."""
    for name in _validators(field):
        if name in _SHAPES:
            return _SHAPES[name]
    kinds = get_args(field.annotation) or (field.annotation,)
    words = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, StrEnum)), None)
    if words is not None:
        return {"enum": [word.value for word in words]}
    if list in (field.annotation, getattr(field.annotation, "__origin__", None)):
        (item,) = kinds
        return {"type": "array", "items": _shape_of_item(item)}
    types = [_JSON_TYPES[kind] for kind in kinds if kind in _JSON_TYPES]
    if getattr(field.annotation, "__origin__", None) is dict or not types:
        return {"type": "object"}
    bounds: dict[str, Any] = {}
    for one in field.metadata:
        bounds |= {"minimum": one.ge} if isinstance(one, Ge) else {"maximum": one.le} if isinstance(one, Le) else {}
    return {"type": types if len(types) > 1 else types[0], **bounds}


_JSON_TYPES = {str: "string", int: "integer", type(None): "null"}


def _shape_of_item(item: Any) -> dict[str, Any]:
    names = (one.func.__name__ for one in getattr(item, "__metadata__", ()) if isinstance(one, BeforeValidator))
    return next((_SHAPES[name] for name in names if name in _SHAPES), {"type": "string"})


def _validators(field: FieldInfo) -> list[str]:
    """Names of the functions that read the key's value, also those inside a union."""
    parts = () if getattr(field.annotation, "__origin__", None) is list else get_args(field.annotation)
    inner = [one for part in parts for one in getattr(part, "__metadata__", ())]
    return [_name(one.func) for one in [*field.metadata, *inner] if isinstance(one, BeforeValidator)]


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", ""))
