"""The replicas' own rows: who lives, with which file, and whose is in force."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from scheduler.store.engine import Session
from scheduler.store.sql import load

HEARTBEAT = 10.0  # seconds between two signs of life of an idle replica
SILENCE = 35.0  # seconds without one after which a replica no longer counts as live


@dataclass(frozen=True, slots=True)
class Registration:
    """What a replica says of itself at its start. `id` is new at each process start."""

    id: UUID
    name: str
    host: str
    pid: int
    version: str
    config_hash: str
    tzdata: str
    seats: int
    clock_offset: float
    serves: bool = True

    def write(self, connection: psycopg.Connection[Any], generation: int) -> None:
        """Insert the row; part of the transaction that applies the plan."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        connection.execute(load("register_replica"), {**fields, "generation": generation})


@dataclass(frozen=True, slots=True)
class Pulse:
    """What a heartbeat learns. `rank`: this replica's place among the `live` ones, from 0.

    `newest`: the newest generation that has changed a job. Beyond `in_force`: its last replica is gone again.
    """

    in_force: int
    rank: int
    live: int
    newest: int | None
    database_now: datetime


@dataclass(frozen=True, slots=True)
class Counts:
    """What a replica has lived through: outcomes refused, bodies stopped for a lost run, runs taken from others."""

    fenced_writes: int = 0
    leases_lost: int = 0
    takeovers: int = 0


def heartbeat(session: Session, me: UUID, clock_offset: float, counts: Counts) -> Pulse | None:
    """Say that this replica lives. None: its row is gone (purged by hand); it must register again."""
    rows = session.run("heartbeat", {"me": me, "clock_offset": clock_offset, "silence": SILENCE, **asdict(counts)})
    return Pulse(*rows[0]) if rows else None


def leave(session: Session, me: UUID, counts: Counts) -> None:
    """Say that this replica has stopped in good order."""
    session.run("leave", {"me": me, **asdict(counts)}, deadline=2.0)
