"""The replicas' own rows: who lives, with which file, and whose is in force."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from scheduler.store.engine import CALL_DEADLINE, Session
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
    tzdata: str
    seats: int
    clock_offset: float
    serves: bool = True
    lease: float = 15.0

    def write(self, connection: psycopg.Connection[Any], generation: int, config_hash: str) -> None:
        """Insert the row, or bring it up to date; part of the transaction that applies the plan."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        connection.execute(load("register_replica"), {**fields, "generation": generation, "config_hash": config_hash})


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


def heartbeat(
    session: Session, me: UUID, clock_offset: float, counts: Counts, deadline: float = CALL_DEADLINE
) -> Pulse | None:
    """Say that this replica lives. None: its row is gone (purged by hand); it must register again."""
    said = {"clock_offset": clock_offset, "pooled": session.pooled, **asdict(counts)}
    rows = session.run("heartbeat", {"me": me, "silence": SILENCE, **said}, deadline=deadline)
    return Pulse(*rows[0]) if rows else None


def is_known(session: Session, me: UUID) -> bool:
    """Whether the database has this replica's row."""
    return bool(session.execute("SELECT 1 FROM soloist.replica WHERE id = %s", (me,)))


def note_problem(session: Session, me: UUID, problem: str | None) -> None:
    """Say why this replica's edited file is not in use; None: it is."""
    session.run("note_problem", {"me": me, "problem": problem})


def leave(session: Session, me: UUID, counts: Counts) -> None:
    """Say that this replica has stopped in good order."""
    session.run("leave", {"me": me, **asdict(counts)}, deadline=2.0)
