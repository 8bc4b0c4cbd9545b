"""What differs between two specs of one job, in the words of jobs.yaml. Pure."""

from __future__ import annotations

import json
from typing import Any

from scheduler.core.model import JobSpec

LONGEST = 80


def changes(old: JobSpec, new: JobSpec) -> tuple[str, ...]:
    """`key: old → new` of each key that differs, `retry.attempts` and its like one by one; the longest values cut."""
    before, after = _flat(old.to_dict()), _flat(new.to_dict())
    return tuple(
        f"{key}: {_shown(before.get(key))} → {_shown(after.get(key))}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    )


def _flat(plain: dict[str, Any], above: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in plain.items():
        if isinstance(value, dict) and value:
            out |= _flat(value, f"{above}{key}.")
        elif value not in (None, {}, ""):
            out[f"{above}{key}"] = value
    return out


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
