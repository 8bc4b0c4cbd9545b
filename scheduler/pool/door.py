"""A child's doors to the outside: what stands behind the RunContext of a body."""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from scheduler.core.context import RunInfo
from scheduler.core.errors import SoloistError
from scheduler.pool.words import Word, Words

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scheduler.store.transaction import RunDoor

DATABASE_URL = "SOLOIST_DATABASE_URL"


class Doors:
    """The way to Soloist's database for the bodies of one process, opened by the first that needs it."""

    def __init__(self, database_url: str | None) -> None:
        self._url = database_url
        self._door: RunDoor | None = None
        self._lock = threading.Lock()

    def open(self) -> RunDoor:
        """Raises SoloistError when there is no database to go to."""
        if not self._url:
            raise SoloistError(
                f"this job asks for Soloist's database, but {DATABASE_URL} is not set where it runs: set it"
            )
        # Late: jobs that need no database do not pay for SQLAlchemy.
        from scheduler.store.transaction import RunDoor  # noqa: PLC0415

        with self._lock:
            if self._door is None:
                self._door = RunDoor(self._url)
            return self._door

    def close(self) -> None:
        """Close what is open."""
        if self._door is not None:
            self._door.close()


def doors_of_environment() -> Doors:
    """Doors to the database that the process environment names."""
    return Doors(os.environ.get(DATABASE_URL))


class ChildPort:
    """The Port of one body in a child. `told`: whether the body has asked `cancelled` and heard yes."""

    def __init__(self, info: RunInfo, words: Words, slot: int, doors: Doors) -> None:
        self._info = info
        self._words = words
        self._slot = slot
        self._doors = doors
        self.told = False

    def progress(self, done: int, total: int | None, note: str | None) -> None:
        """Into the slot; the replica's keeper reads it there."""
        self._words.say(self._slot, done, total, note)

    def cancelled(self) -> bool:
        """One word in shared memory."""
        self.told = self.told or self._words.load(self._slot, Word.CANCEL) != 0
        return self.told

    def save_checkpoint(self, state: Any) -> None:
        """Fenced. Raises LeaseLost."""
        self._doors.open().save_checkpoint(self._info, state)

    def connect(self) -> AbstractContextManager[Connection]:
        """A plain connection."""
        return self._doors.open().connect()

    def transaction(self, *, checkpoint: Any, has_checkpoint: bool) -> AbstractContextManager[Connection]:
        """Fenced at COMMIT."""
        return self._doors.open().transaction(self._info, checkpoint=checkpoint, has_checkpoint=has_checkpoint)
