"""The keys of a job that say when it runs, as one schedule; and which of them contradict each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scheduler.config.models import JobSection
from scheduler.core.bounds import Bounds
from scheduler.core.dst import Dst
from scheduler.core.instants import read_from, read_instant, read_until
from scheduler.core.schedule import Every, Schedule, parse_at, parse_cron, parse_every

KEYS = ("schedule", "every", "at", "anchor", "from_", "until", "except_", "dst", "timezone")
"""The fields that a spec holds as its schedule."""
_KINDS = ("schedule", "every", "at")
_BOUNDS = {"from_": "from", "until": "until", "except_": "except"}
_HERE = {
    None: "this job has no schedule",
    "schedule": "schedule: is wall time",
    "every": "every: is elapsed time, which no clock change touches",
    "at": "at: is one instant",
}

Say = Callable[[str, str], None]


def read_schedule(job: JobSection, name: str, timezone: str, dst: Dst, say: Say) -> Schedule | None:
    """The job's schedule in its zone; None where there is none, or it is wrong.

    `dst`: with the file's defaults. `say` is called with a key and what is wrong there, for each problem.
    """
    kinds = [key for key in _KINDS if getattr(job, key) is not None]
    for extra in kinds[1:]:
        say(extra, f"{kinds[0]} is given already: a job has one of schedule, every and at")
    kind = kinds[0] if kinds else None
    _refuse_strays(job, kind, say)
    bounds = _bounds(job, timezone, say) if kind in ("schedule", "every") else Bounds()
    try:
        if job.schedule is not None:
            return replace(parse_cron(job.schedule, timezone, name), dst=dst, bounds=bounds)
        if job.every is not None:
            return _every(job.every, job.anchor, timezone, bounds, say)
        if job.at is not None:
            return parse_at(job.at, timezone)
    except ValueError as error:
        say(str(kind), str(error))
    return None


def _every(period: str, anchor: str | None, timezone: str, bounds: Bounds, say: Say) -> Every:
    every = replace(parse_every(period), bounds=bounds, timezone=timezone)
    try:
        return every if anchor is None else replace(every, anchor=read_instant(anchor, timezone))
    except ValueError as error:
        say("anchor", str(error))
        return every


def _bounds(job: JobSection, timezone: str, say: Say) -> Bounds:
    """The bounds that can be read; each that cannot is said."""
    ends = {}
    for key, text, read in (("from_", job.from_, read_from), ("until", job.until, read_until)):
        try:
            ends[key] = None if text is None else read(text, timezone)
        except ValueError as error:
            say(_BOUNDS[key], str(error))
    try:
        return Bounds(**ends, except_=tuple(job.except_))
    except ValueError as error:
        say("until", str(error))
        return Bounds()


def _refuse_strays(job: JobSection, kind: str | None, say: Say) -> None:
    """Keys that say nothing to this kind of schedule: whoever wrote them expects something of them."""
    given, recurs = job.model_fields_set, kind in ("schedule", "every")
    if job.once_per is not None and not recurs:
        say("once_per", "once_per needs a schedule: there is none to hold to once a period")
    if job.anchor is not None and kind != "every":
        say("anchor", f"anchor is where the intervals of every: are counted from, but {_HERE[kind]}: take it out")
    if "dst" in given and kind != "schedule":
        say("dst", f"dst is about the wall times of schedule:, but {_HERE[kind]}: take it out")
    for field, key in _BOUNDS.items():
        if field in given and not recurs:
            say(key, f"{key} bounds the ticks of schedule: or every:, but {_HERE[kind]}: take it out")
