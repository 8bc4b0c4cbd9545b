"""What the sentences have in common: levels, instants, durations, counts."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from functools import singledispatch
from typing import NamedTuple

from scheduler.core.events import Event
from scheduler.core.model import Outcome, Status
from scheduler.core.words import NoTick

LONGEST_ERROR = 300
_MOST_NAMES = 3


class Said(NamedTuple):
    """A level of `logging` and the sentence."""

    level: int
    text: str


def instant(at: datetime) -> str:
    """`2026-11-29T03:00:00Z`, with as many digits of a second as there are."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


@singledispatch
def say(event: Event) -> Said:
    """What a person should read about this event. An event without a sentence of its own is told by its name."""
    return Said(logging.INFO, type(event).__name__)


def words(word: Status | Outcome) -> str:
    return word.value.replace("_", " ")


def coming(next_tick: datetime | None, why_not: NoTick | None) -> str:
    """The next tick, or why there is none."""
    if next_tick is not None:
        return f"next tick {instant(next_tick)}"
    return "no tick to come" if why_not is None else _NO_TICK[why_not]


_NO_TICK = {
    NoTick.BY_HAND: "it has no schedule",
    NoTick.OVER: "its schedule is over",
    NoTick.PAUSED: "it is paused",
    NoTick.SUPERSEDED: "the jobs file in force has another spec of it, so it stands still here",
    NoTick.ABSENT: "the jobs file in force does not have it, so it stands still here",
    NoTick.SICK: "nobody can say when it ticks, so it stands still here",
    NoTick.AT_REST: "it stands still here",
}


def some(names: tuple[str, ...]) -> str:
    """Up to three different names, and how many more there are."""
    known = list(dict.fromkeys(names))
    more = len(known) - _MOST_NAMES
    return ", ".join(known[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def seconds(amount: float) -> str:
    if amount < 10:
        return f"{amount:.3g} s" if amount >= 0.001 or not amount else "under 0.001 s"
    if amount < 120:
        return f"{amount:.0f} s"
    minutes = round(amount / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
