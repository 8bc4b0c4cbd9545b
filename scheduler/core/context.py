"""RunContext: what a job's function receives. The doors to the outside (`Port`) are given by whoever runs the body."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from scheduler.core.errors import Cancelled

if TYPE_CHECKING:
    import logging

    from sqlalchemy import Connection

_UNSET: Any = object()


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The facts of one attempt, as they travel to the body. `deadline`: when the timeout ends it, or None."""

    run_id: UUID
    job: str
    run_key: str
    scheduled_at: datetime
    attempt: int
    owner: str
    checkpoint: Any = None
    payload: dict[str, Any] | None = None
    deadline: datetime | None = None
    trace_id: str | None = None


class Port(Protocol):
    """What a context needs from the place where the body runs (a warm child, or a thread of the replica)."""

    def progress(self, done: int, total: int | None, note: str | None) -> None:
        """Show how far the body is."""

    def cancelled(self) -> bool:
        """Whether somebody asked for the run to be cancelled."""

    def save_checkpoint(self, state: Any) -> None:
        """Write `state` to the run's row, fenced. Raises LeaseLost."""

    def connect(self) -> AbstractContextManager[Connection]:
        """A plain connection to Soloist's database."""

    def transaction(self, *, checkpoint: Any, has_checkpoint: bool) -> AbstractContextManager[Connection]:
        """A connection whose last act before COMMIT is the fenced write of the run's row."""


class RunContext:
    """What a job's function receives as its first argument.

    job, run_key, run_id     which run this is
    scheduled_at             the tick (aware, UTC); for a manual run, the instant it was asked for
    attempt                  1, 2, …; also the `fence`: hand it to systems that can refuse older ones
    idempotency_key          the same on every attempt of this run: hand it to systems that can deduplicate
    deadline                 when the timeout ends this attempt (aware, UTC), or None
    checkpoint               what the last `save_checkpoint` or `transaction(checkpoint=…)` left, or None
    payload                  what a manual run was given, or None
    trace_id, logger         for your logs; logging, stdout and stderr are kept with the attempt (the last 64 KiB)
    """

    def __init__(self, info: RunInfo, port: Port, logger: logging.Logger) -> None:
        self._info = info
        self._port = port
        self.logger = logger
        self.checkpoint: Any = info.checkpoint

    @property
    def run_id(self) -> UUID:
        """The run's id."""
        return self._info.run_id

    @property
    def job(self) -> str:
        """The job's name."""
        return self._info.job

    @property
    def run_key(self) -> str:
        """What makes this run unique inside its job."""
        return self._info.run_key

    @property
    def scheduled_at(self) -> datetime:
        """The tick, UTC."""
        return self._info.scheduled_at

    @property
    def attempt(self) -> int:
        """Which try this is, from 1."""
        return self._info.attempt

    @property
    def fence(self) -> int:
        """Grows with each attempt; a system that remembers the highest can refuse a zombie's write."""
        return self._info.attempt

    @property
    def idempotency_key(self) -> str:
        """`job/run_key`: the same on every attempt."""
        return f"{self._info.job}/{self._info.run_key}"

    @property
    def payload(self) -> dict[str, Any] | None:
        """What a manual run was given."""
        return self._info.payload

    @property
    def deadline(self) -> datetime | None:
        """When the timeout ends this attempt."""
        return self._info.deadline

    @property
    def trace_id(self) -> str | None:
        """Ties this run to what asked for it."""
        return self._info.trace_id

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked for this run to be cancelled. Look at it now and then in long loops."""
        return self._port.cancelled()

    def raise_if_cancelled(self) -> None:
        """Raise Cancelled if somebody asked for that; the run then ends as `cancelled`."""
        if self._port.cancelled():
            raise Cancelled("cancelled on request")

    def progress(self, done: int, total: int | None = None, note: str | None = None) -> None:
        """Say how far the body is. Cheap: it is written with the next renewal, about once a second."""
        self._port.progress(int(done), None if total is None else int(total), None if note is None else str(note))

    def save_checkpoint(self, state: Any) -> None:
        """Keep `state` (JSON-able, at most 64 KiB) for the next attempt. Raises LeaseLost."""
        self._port.save_checkpoint(state)
        self.checkpoint = state

    def connect(self) -> AbstractContextManager[Connection]:
        """A plain SQLAlchemy connection to Soloist's database, outside the fence: for reads, and for streaming."""
        return self._port.connect()

    def transaction(self, *, checkpoint: Any = _UNSET) -> AbstractContextManager[Connection]:
        """`with ctx.transaction() as connection:` — the job's writes and the run's own state in one COMMIT.

        Without an argument the run is *succeeded* by that commit: whatever the body does afterwards changes nothing.
        With `checkpoint=state` it commits progress instead, and several may follow each other. The fenced write comes
        last, so the row is locked for a moment only; when the run is no longer ours: ROLLBACK and LeaseLost.
        """
        has_checkpoint = checkpoint is not _UNSET
        return self._port.transaction(checkpoint=checkpoint if has_checkpoint else None, has_checkpoint=has_checkpoint)
