"""A job's spec back from the JSON that `JobSpec.to_dict` made. Beside the model, as it needs the schedules too."""

from __future__ import annotations

from typing import Any

from scheduler.core.model import (
    AfterCrash,
    FirstSight,
    Guard,
    Isolation,
    JobSpec,
    Misfire,
    MisfirePolicy,
    Overlap,
    Period,
    RetryPolicy,
)
from scheduler.core.schedule import schedule_from_dict


def spec_from_dict(plain: dict[str, Any]) -> JobSpec:
    """The spec that `to_dict` wrote, also one written by an older version: what it did not know has its default."""
    known = {key: value for key, value in plain.items() if key in JobSpec.__slots__ and not key.startswith("_")}
    enums = {
        "overlap": Overlap,
        "after_crash": AfterCrash,
        "isolation": Isolation,
        "guard": Guard,
    }
    for key, kind in enums.items():
        if key in known:
            known[key] = kind(known[key])
    known["schedule"] = schedule_from_dict(known.get("schedule"))
    known["once_per"] = Period(known["once_per"]) if known.get("once_per") else None
    known["retry"] = RetryPolicy(**known.get("retry", {}))
    known["misfire"] = _misfire(known.get("misfire", {}))
    return JobSpec(**known)


def _misfire(plain: dict[str, Any]) -> Misfire:
    known = dict(plain)
    if "policy" in known:
        known["policy"] = MisfirePolicy(known["policy"])
    if "first_sight" in known:
        known["first_sight"] = FirstSight(known["first_sight"])
    return Misfire(**known)
