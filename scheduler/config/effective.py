"""A plan written out as a jobs file with every default filled in: what will be executed, to the letter.

Read again it is the same plan: the same jobs with the same spec hashes. It follows the models: a key that they gain
appears here as soon as a spec, or its schedule's `to_dict`, has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from scheduler.config.models import DefaultsSection, JobSection
from scheduler.config.plan import Plan
from scheduler.config.scalars import resolve_scalar
from scheduler.core.duration import format_duration
from scheduler.core.model import JobSpec
from scheduler.core.schedule import EPOCH, Schedule

_BARE = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_./-]|:(?=[A-Za-z0-9/]))*")
_PRINTED = re.compile('[^ -~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|["\\\\]')
_NONE = {"timeout": "none"}
"""Keys whose absence has a word of its own. Other absent values have no word, and their key is left out."""


def effective_text(plan: Plan) -> str:
    """The jobs file. It ends in a newline."""
    lines = [
        f"# {_comment(plan.name)}, with every default filled in",
        "version: 1",
        f"timezone: {_scalar(plan.timezone)}",
    ]
    kept = {name: format_duration(getattr(plan.retention, name)) for name in plan.retention.__slots__}
    lines.append(f"retention: {_flow(kept)}")
    lines.append("jobs:" if plan.jobs else "jobs: {}")
    for spec in plan.jobs:
        lines.append(f"  {_scalar(spec.name)}:")
        lines += [f"    {key}: {_flow(value)}" for key, value in _entry(spec)]
    return "\n".join(lines) + "\n"


def effective_rows(plan: Plan) -> list[dict[str, Any]]:
    """One flat object a job: its keys as in the file, those of sections and args dotted, and the spec's hash."""
    return [_flat({"job": spec.name} | dict(_entry(spec)) | {"spec_hash": spec.hash}) for spec in plan.jobs]


def effective_entry(spec: JobSpec) -> dict[str, Any]:
    """The keys of one job's entry, flat."""
    return _flat(dict(_entry(spec)))


def flow_text(value: Any) -> str:
    """A value as it stands on one line of the file; a text as it is."""
    return value if isinstance(value, str) else _flow(value)


def _entry(spec: JobSpec) -> Iterator[tuple[str, Any]]:
    """The keys of a job's entry that have a value, as they are written in the file; its own before the shared ones."""
    values = {name: getattr(spec, name) for name in spec.__slots__ if not name.startswith("_")}
    values |= {"schedule": None} | _schedule_keys(spec.schedule)
    shared = DefaultsSection.model_fields
    for name, field in sorted(JobSection.model_fields.items(), key=lambda one: one[0] in shared):
        key = field.alias or name
        value = values.get(key, values.get(name))
        if value is None and key in _NONE:
            yield key, _NONE[key]
        elif value is not None and value != "":
            yield key, _written(value)


def _schedule_keys(schedule: Schedule | None) -> dict[str, Any]:
    """What `to_dict` says, under the names that the file has for it."""
    plain = {} if schedule is None else schedule.to_dict()
    if "cron" in plain:
        plain["schedule"] = plain.pop("cron")
    if plain.get("anchor") == EPOCH.isoformat():
        del plain["anchor"]
    return plain


def _written(value: Any) -> Any:
    """The value as the file has it: seconds are durations, sections are mappings."""
    if isinstance(value, float):
        return format_duration(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _written(getattr(value, field.name)) for field in fields(value)}
    return value


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            flat[key] = value
    return flat


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(inner) for inner in value) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    """The value so that it is read as just that: text in quotes wherever it could be taken for something else."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    text = str(value)
    if _BARE.fullmatch(text) and resolve_scalar(text, plain=True) == text:
        return text
    return '"' + _PRINTED.sub(_escaped, text) + '"'


def _escaped(odd: re.Match[str]) -> str:
    mark = odd.group()
    if mark in '"\\':
        return f"\\{mark}"
    return {"\n": "\\n", "\t": "\\t"}.get(mark, f"\\u{ord(mark):04x}")


def _comment(text: str) -> str:
    return "".join(mark if mark.isprintable() else "?" for mark in text)
