"""What an edit of the jobs file will do: keys that change, ticks that come, go or move. Pure; time is an argument.

Ticks are those that run: with `once_per` one in each period, and none in one that has its run by the old file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from itertools import islice, takewhile
from typing import Any

from scheduler.core.model import JobSpec
from scheduler.core.periods import latest_period, runs_after
from scheduler.core.zones import load_zone

MOST_TICKS = 10_000
"""Ticks of one job that are looked at."""


class Change(StrEnum):
    """What became of a job, a key or a tick."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class KeyChange:
    """One key of a job's entry, or of the file. None: it was not there, or is not any more."""

    key: str
    old: Any
    new: Any

    @property
    def change(self) -> Change:
        """Added, removed or changed."""
        if self.old is None:
            return Change.ADDED
        return Change.REMOVED if self.new is None else Change.CHANGED


@dataclass(frozen=True, slots=True)
class TickChange:
    """A tick that only one of the files has, or one that each has on the same day at another time (UTC)."""

    old: datetime | None
    new: datetime | None

    @property
    def change(self) -> Change:
        """Added, removed or moved."""
        if self.old is None:
            return Change.ADDED
        return Change.REMOVED if self.new is None else Change.MOVED

    @property
    def at(self) -> datetime:
        """The earlier of the two, to sort by."""
        return min(one for one in (self.old, self.new) if one is not None)


@dataclass(frozen=True, slots=True)
class TickChanges:
    """Those of one job, in the order of time; `until`: how far was looked, less than asked where ticks are many."""

    changes: tuple[TickChange, ...]
    until: datetime


def changed_keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[KeyChange]:
    """The keys that differ, in the order of the new file and then of the old."""
    for key in dict.fromkeys([*new, *old]):
        if old.get(key) != new.get(key):
            yield KeyChange(key, old.get(key), new.get(key))


def changed_ticks(old: JobSpec | None, new: JobSpec | None, after: datetime, until: datetime) -> TickChanges:
    """What changes of a job's ticks in (after, until]. None: the file does not have the job.

    A tick has moved where both files have as many on that day in the job's (new) zone.
    """
    if old is not None and new is not None and _what_ticks(old) == _what_ticks(new):
        return TickChanges((), until)
    # the key of a period that goes on is taken, whichever file's tick comes next
    had = None if old is None else latest_period(old, after)
    before, until_old = _ticks(old, after, until, had)
    behind, until_new = _ticks(new, after, until, had)
    until = min(until_old, until_new)
    zone = load_zone((new or old or _NOBODY).timezone)
    days: dict[date, tuple[list[datetime], list[datetime]]] = defaultdict(lambda: ([], []))
    for side, ticks in enumerate((before, behind)):
        for tick in ticks:
            if tick <= until:
                days[tick.astimezone(zone).date()][side].append(tick)
    found = [change for _, (had, has) in sorted(days.items()) for change in _of_day(had, has)]
    return TickChanges(tuple(sorted(found, key=lambda one: one.at)), until)


_NOBODY = JobSpec("nobody", None, "")


def _what_ticks(spec: JobSpec) -> tuple[Any, ...]:
    """All that decides when it runs. Without `once_per` the schedule knows its zone."""
    return spec.schedule, spec.once_per, None if spec.once_per is None else spec.timezone


def _ticks(spec: JobSpec | None, after: datetime, until: datetime, had: str | None) -> tuple[list[datetime], datetime]:
    """The ticks in (after, until] that run, and up to where they are complete."""
    coming = () if spec is None else takewhile(lambda tick: tick <= until, runs_after(spec, after, had))
    ticks = list(islice(coming, MOST_TICKS))
    return ticks, ticks[-1] if len(ticks) == MOST_TICKS else until


def _of_day(had: list[datetime], has: list[datetime]) -> Iterator[TickChange]:
    gone, come = sorted(set(had) - set(has)), sorted(set(has) - set(had))
    if len(had) == len(has):
        yield from (TickChange(old, new) for old, new in zip(gone, come, strict=True))
        return
    yield from (TickChange(old, None) for old in gone)
    yield from (TickChange(None, new) for new in come)
