"""What goes wrong in a storm, and when: chosen by a seed, so that it can be chosen again. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

REST = 1.0  # seconds between two faults of one replica


class Kind(StrEnum):
    """Faults of one replica, but for the last two."""

    FREEZE = "freeze"  # SIGSTOP, later SIGCONT
    KILL = "kill"  # SIGKILL, later another replica
    TERM = "term"  # SIGTERM, another replica when it has gone
    STALL = "stall"  # nothing passes for a while
    CUT = "cut"  # its connections are reset
    REFUSE = "refuse"  # reset, and none let in for a while
    LOSE_ANSWER = "lose_answer"  # one session is reset in the middle of an answer
    TERMINATE = "terminate"  # one backend of somebody's
    RESTART = "restart"  # the server


@dataclass(frozen=True, slots=True)
class Fault:
    """`at`: seconds into the storm; `lasts`: seconds; `chance`: in [0, 1), for what is left to choose."""

    at: float
    kind: Kind
    slot: int
    lasts: float
    chance: float


WEIGHTS = {
    Kind.FREEZE: 30,
    Kind.KILL: 14,
    Kind.TERM: 10,
    Kind.STALL: 10,
    Kind.CUT: 8,
    Kind.REFUSE: 6,
    Kind.LOSE_ANSWER: 16,
    Kind.TERMINATE: 6,
}
_LEASES = {Kind.FREEZE: (0.3, 3.0), Kind.STALL: (0.2, 2.0), Kind.REFUSE: (0.2, 1.5)}
_SECONDS = {Kind.KILL: (0.1, 1.0), Kind.TERM: (2.0, 3.0), Kind.LOSE_ANSWER: (1.0, 2.0)}


@dataclass(frozen=True, slots=True)
class Weather:
    """How bad it gets. `gap`: seconds between two faults on average; `spared`: replicas left alone at any time."""

    seconds: float
    slots: int
    lease: float = 2.0
    gap: float = 0.65
    spared: int = 2
    restart: bool = True
    weights: dict[Kind, int] | None = None


def forecast(seed: int, weather: Weather) -> Iterator[Fault]:
    """The faults in the order of their times: the same for the same seed. One per replica at a time."""
    chance = random.Random(seed)
    weights = weather.weights or WEIGHTS
    free_at = [0.0] * weather.slots
    restart_at = weather.seconds * chance.uniform(0.4, 0.7) if weather.restart else weather.seconds
    at = weather.gap
    while at < weather.seconds:
        if at > restart_at:
            yield Fault(restart_at, Kind.RESTART, -1, 0.0, chance.random())
            restart_at = weather.seconds
        free = [slot for slot, when in enumerate(free_at) if when <= at]
        if len(free) > weather.spared:
            kind = chance.choices(list(weights), list(weights.values()))[0]
            least, most = _LEASES.get(kind, (0.0, 0.0))
            lasts = chance.uniform(least, most) * weather.lease + chance.uniform(*_SECONDS.get(kind, (0.0, 0.0)))
            fault = Fault(at, kind, chance.choice(free), lasts, chance.random())
            free_at[fault.slot] = at + lasts + REST
            yield fault
        at += chance.expovariate(1 / weather.gap)
