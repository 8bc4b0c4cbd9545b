"""Runs of jobs without the engine: a real run row, the real fenced door, and a context made by hand."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import psycopg
from sqlalchemy import Connection

from scheduler import RunContext
from scheduler.core.context import RunInfo
from scheduler.store.transaction import RunDoor

TICK = datetime(2026, 11, 29, 3, tzinfo=UTC)


class Port:
    """The Port of a body that runs in this very process."""

    def __init__(self, url: str, info: RunInfo) -> None:
        self.door, self.info = RunDoor(url), info
        self.progressed: list[tuple[int, int | None]] = []
        self.checkpoints = 0
        self.cancel = False

    def progress(self, done: int, total: int | None, note: str | None) -> None:
        self.progressed.append((done, total))

    def cancelled(self) -> bool:
        return self.cancel

    def save_checkpoint(self, state: Any) -> None:
        self.door.save_checkpoint(self.info, state)
        self.checkpoints += 1

    def connect(self) -> AbstractContextManager[Connection]:
        return self.door.connect()

    def transaction(self, *, checkpoint: Any, has_checkpoint: bool) -> AbstractContextManager[Connection]:
        return self.door.transaction(self.info, checkpoint=checkpoint, has_checkpoint=has_checkpoint)


@dataclass
class Run:
    """A row of `soloist.run`, and the attempts at it."""

    url: str
    info: RunInfo
    ports: list[Port] = field(default_factory=list)

    def context(self, port: Callable[[str, RunInfo], Port] = Port) -> RunContext:
        """The context of the present attempt, with the checkpoint that the row holds."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute("SELECT checkpoint FROM soloist.run WHERE id = %s", (self.info.run_id,)).fetchone()
        assert row is not None
        self.ports.append(port(self.url, replace(self.info, checkpoint=row[0])))
        return RunContext(self.ports[-1].info, self.ports[-1], logging.getLogger("job"))

    def take_over(self) -> None:
        """Another replica owns the run from now on, with the next attempt."""
        self.info = replace(self.info, attempt=self.info.attempt + 1, owner=str(uuid.uuid4()))
        with psycopg.connect(self.url, autocommit=True) as connection:
            changed = connection.execute(
                "UPDATE soloist.run SET attempt = %s, claimed_by = %s WHERE id = %s AND status = 'running'",
                (self.info.attempt, self.info.owner, self.info.run_id),
            )
        assert changed.rowcount == 1

    @property
    def status(self) -> str:
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute("SELECT status FROM soloist.run WHERE id = %s", (self.info.run_id,)).fetchone()
        assert row is not None
        return str(row[0])
