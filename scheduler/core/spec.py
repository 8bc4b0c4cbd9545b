"""A job's spec back from the JSON that `JobSpec.to_dict` made. Beside the model, as it needs the schedules too."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from scheduler.core.model import (
    AfterCrash,
    FirstSight,
    Guard,
    Isolation,
    JobSpec,
    LostContact,
    Misfire,
    MisfirePolicy,
    Overlap,
    Period,
    RetryPolicy,
)
from scheduler.core.schedule import Schedule, schedule_from_dict


def spec_from_dict(plain: dict[str, Any]) -> JobSpec:
    """The spec that `to_dict` wrote, also one written by another version: what it does not know has its default.

    A word that a newer version added must not keep an older one from starting again: a rollback has to work.
    """
    known = {key: value for key, value in plain.items() if key in JobSpec.__slots__ and not key.startswith("_")}
    for key, words in _WORDS.items():
        if key in known:
            known[key] = _word(words, known[key], getattr(_DEFAULTS, key))
    known["schedule"] = _schedule(known.get("schedule"))
    known["retry"] = RetryPolicy(**_fields(RetryPolicy, known.get("retry")))
    misfire = _fields(Misfire, known.get("misfire"))
    if "policy" in misfire:
        misfire["policy"] = _word(MisfirePolicy, misfire["policy"], Misfire().policy)
    if "first_sight" in misfire:
        misfire["first_sight"] = _word(FirstSight, misfire["first_sight"], Misfire().first_sight)
    known["misfire"] = Misfire(**misfire)
    return JobSpec(**known)


_WORDS: dict[str, type[StrEnum]] = {
    "overlap": Overlap,
    "after_crash": AfterCrash,
    "isolation": Isolation,
    "guard": Guard,
    "lost_contact": LostContact,
    "once_per": Period,
}
_DEFAULTS = JobSpec("default", None, "")


def _word(words: type[StrEnum], value: Any, default: Any) -> Any:
    return words(value) if value in list(words) else default


def _schedule(plain: Any) -> Schedule | None:
    """A kind of schedule that this version cannot read yields no ticks here."""
    try:
        return schedule_from_dict(plain)
    except (ValueError, TypeError, KeyError):
        return None


def _fields(kind: type[RetryPolicy] | type[Misfire], plain: Any) -> dict[str, Any]:
    return {key: value for key, value in (plain or {}).items() if key in kind.__slots__}
