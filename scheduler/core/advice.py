"""What a valid jobs file does that its writer may not expect: advice, never an error. Pure; the time is an argument."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from scheduler.core.clock_changes import changes_that_touch
from scheduler.core.crontab_advice import about_line
from scheduler.core.duration import format_duration
from scheduler.core.model import JobSpec, Misfire, Overlap
from scheduler.core.schedule import At, Cron, Every, Schedule, next_after

AHEAD = timedelta(days=731)
"""How far clock changes are looked for."""
HERD = 20
HERD_WINDOW = timedelta(days=1)
MOST_HERDS = 3
_TICKS_A_SCHEDULE, _TICKS_IN_ALL = 300, 100_000
_FIXED_ZONES = {"EST": "America/New_York", "MST": "America/Denver", "HST": "Pacific/Honolulu"}
_INVERTED = re.compile(r"Etc/GMT([+-])([1-9][0-9]?)")
_BLOCKING = {
    Overlap.SKIP: "ticks in between are skipped",
    Overlap.QUEUE: "ticks in between wait, one at the most",
    Overlap.QUEUE_ALL: "ticks in between wait, more and more of them",
    Overlap.REPLACE: "each tick cancels the run before it",
    Overlap.ALLOW: "runs are side by side",
}


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to look at. `path` is dotted, `jobs.nightly.schedule`."""

    path: str
    message: str


def advise(jobs: Sequence[JobSpec], now: datetime, written: Collection[str]) -> Iterator[Advice]:
    """All advice about a plan. `written`: the dotted paths that the file itself has; the rest is defaults."""
    zones_told: set[str] = set()
    for spec in jobs:
        yield from about_job(spec, now, written)
        yield from _about_zone(spec, written, zones_told)
    yield from about_herds(jobs, now)


def about_job(spec: JobSpec, now: datetime, written: Collection[str]) -> Iterator[Advice]:
    """Advice about one job by itself."""
    schedule, path = spec.schedule, f"jobs.{spec.name}"
    if schedule is None:
        yield from _about_ticks_without(spec, path, written)
        return
    key = f"{path}.{_key(schedule)}"
    ticks = _coming(schedule, now)
    if not ticks:
        yield Advice(f"{path}.until" if f"{path}.until" in written else key, _never(schedule, now))
    if isinstance(schedule, Cron):
        for message in about_line(schedule.expression):
            yield Advice(key, message)
        for message in changes_that_touch(schedule, now, now + AHEAD) if ticks else ():
            yield Advice(key, message)
    period = min((later - tick for tick, later in pairwise(ticks)), default=None)
    if period is not None:
        yield from _about_lengths(spec, period.total_seconds(), written)


def _about_ticks_without(spec: JobSpec, path: str, written: Collection[str]) -> Iterator[Advice]:
    """What a job without a schedule says of its ticks itself. A default that is written out is no mistake."""
    if f"{path}.misfire" in written and spec.misfire != Misfire():
        yield Advice(f"{path}.misfire", "misfire is about ticks, and this job has no schedule: take it out")
    if f"{path}.jitter" in written and spec.jitter:
        yield Advice(
            f"{path}.jitter", "jitter puts ticks off and no run by hand, and this job has no schedule: take it out"
        )
    if f"{path}.overlap" in written and spec.overlap not in (Overlap.SKIP, Overlap.ALLOW):
        why = "is about ticks, and this job has no schedule: take it out (a run by hand waits its turn, but for allow)"
        yield Advice(f"{path}.overlap", f"overlap: {spec.overlap} {why}")


def _key(schedule: Schedule) -> str:
    match schedule:
        case Cron():
            return "schedule"
        case Every():
            return "every"
        case At():
            return "at"


def _never(schedule: Schedule, now: datetime) -> str:
    if isinstance(schedule, At):
        return f"this instant is past (it is {now:%Y-%m-%dT%H:%MZ}): the job does not run by itself any more"
    return "no tick comes any more: the job does not run by itself"


def _coming(schedule: Schedule, now: datetime) -> list[datetime]:
    """The next few ticks: enough for the shortest time between two of them, as a person would look at it."""
    ticks: list[datetime] = []
    tick = next_after(schedule, now)
    while tick is not None and len(ticks) < 5:
        ticks.append(tick)
        tick = next_after(schedule, tick)
    return ticks


def _about_lengths(spec: JobSpec, period: float, written: Collection[str]) -> Iterator[Advice]:
    """What takes longer than the time between two ticks."""
    path, between = f"jobs.{spec.name}", f"the {format_duration(period)} between two ticks"
    timeout = spec.timeout
    if timeout is None:
        forever = spec.overlap in (Overlap.SKIP, Overlap.QUEUE, Overlap.QUEUE_ALL)
        if forever and f"{path}.timeout" not in written and "defaults.timeout" not in written:
            why = "no timeout: a run that hangs keeps every later tick from running (timeout: none says it is meant so)"
            yield Advice(path, why)
    elif timeout > period:
        yield Advice(
            f"{path}.timeout",
            f"{format_duration(timeout)} is longer than {between}: meanwhile {_BLOCKING[spec.overlap]}",
        )
    worst = _worst(spec)
    if timeout is not None and spec.retry.attempts > 1 and worst > period:
        what = f"{spec.retry.attempts} tries of {format_duration(timeout)} and the waits between them"
        yield Advice(
            f"{path}.retry",
            f"{what} may take {format_duration(worst)}, longer than {between}: meanwhile {_BLOCKING[spec.overlap]}",
        )
    if spec.jitter >= period:
        yield Advice(
            f"{path}.jitter",
            f"{format_duration(spec.jitter)} is not shorter than {between}: a run may begin after the next tick",
        )


def _worst(spec: JobSpec) -> float:
    """Seconds until the last try of a run has timed out, the waits at their longest."""
    retry, waits = spec.retry, 0.0
    for failures in range(min(retry.attempts - 1, 60)):
        waits += min(retry.backoff * 2.0**failures, retry.max) * 1.2
    return retry.attempts * (spec.timeout or 0.0) + waits + max(0, retry.attempts - 61) * retry.max * 1.2


def _about_zone(spec: JobSpec, written: Collection[str], told: set[str]) -> Iterator[Advice]:
    """Zones that are not what their names look like; said once where the file's own `timezone` is meant."""
    path = f"jobs.{spec.name}.timezone"
    path = path if path in written else "timezone"
    message = None
    if spec.timezone in _FIXED_ZONES:
        message = f"{spec.timezone} has no daylight saving; a place has: {_FIXED_ZONES[spec.timezone]}"
    elif inverted := _INVERTED.fullmatch(spec.timezone):
        side = "behind" if inverted[1] == "+" else "ahead of"
        message = f"{spec.timezone} is {inverted[2]} hours {side} UTC: the sign is the other way round in these names"
    if message is not None and path not in told:
        told.add(path)
        yield Advice(path, message)


def about_herds(jobs: Sequence[JobSpec], now: datetime) -> Iterator[Advice]:
    """Jobs that all start in one minute of the coming day: twenty, or more than half of ten and more."""
    alike: dict[Schedule, list[str]] = defaultdict(list)
    for spec in jobs:
        if spec.schedule is not None and spec.jitter == 0:
            alike[spec.schedule].append(spec.name)
    sizes, herds = _minutes(alike, now)
    scheduled = sum(spec.schedule is not None for spec in jobs)
    told: set[Schedule] = set()
    count = 0
    for minute, size in sorted(sizes.items(), key=lambda one: (-one[1], one[0])):
        if count == MOST_HERDS or not (size >= HERD or (scheduled >= 10 and size > scheduled / 2)):
            return
        if told.issuperset(herds[minute]):
            continue
        told.update(herds[minute])
        count += 1
        names = sorted(name for schedule in herds[minute] for name in alike[schedule])
        first = next(iter(herds[minute]))
        yield Advice(f"jobs.{alike[first][0]}.{_key(first)}", _herd(minute, names, {_key(s) for s in herds[minute]}))


def _herd(minute: datetime, names: list[str], keys: set[str]) -> str:
    """`keys`: those by which they tick, for each has a way of its own to be spread."""
    some = ", ".join(names[:3])
    ways = ["jitter"]
    if "schedule" in keys:
        ways.append("H in the minute field" if keys == {"schedule"} else "H in the minute field of schedule")
    if "every" in keys:
        ways.append("anchor" if keys == {"every"} else "anchor beside every")
    return (
        f"{len(names)} jobs start in the same minute, {minute:%Y-%m-%dT%H:%MZ} ({some} and {len(names) - 3} more): "
        f"spread them, by {' or by '.join(ways)}"
    )


def _minutes(
    alike: dict[Schedule, list[str]], now: datetime
) -> tuple[Counter[datetime], dict[datetime, list[Schedule]]]:
    """How many jobs each minute of the coming day has, and by which schedules. Looking ends somewhere."""
    sizes: Counter[datetime] = Counter()
    herds: dict[datetime, list[Schedule]] = defaultdict(list)
    left = _TICKS_IN_ALL
    for schedule, names in alike.items():
        minute, tick = None, next_after(schedule, now)
        for _ in range(min(_TICKS_A_SCHEDULE, left)):
            if tick is None or tick > now + HERD_WINDOW:
                break
            left -= 1
            if tick.replace(second=0, microsecond=0) != minute:
                minute = tick.replace(second=0, microsecond=0)
                sizes[minute] += len(names)
                herds[minute].append(schedule)
            tick = next_after(schedule, tick)
    return sizes, herds
