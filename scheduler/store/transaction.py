"""The run's own door to the database, for its body: `ctx.transaction()`, checkpoints, plain connections.

The fenced write comes *last*. A body that locked its run row first would block the renewal of all the replica's runs
for as long as its transaction lasts; coming last, the row is locked for the length of one COMMIT, and a zombie is still
refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, NullPool, create_engine

from scheduler.core.context import RunInfo
from scheduler.core.errors import LeaseLost
from scheduler.store.connect import ISOLATION_ONLY, Line, connect
from scheduler.store.sql import load

CHECKPOINT_LIMIT = 64 * 1024


class RunDoor:
    """Connections for the bodies of one process. Nothing stays open between two uses.

    `database_url`: what libpq takes, a URL or `key=value` words.
    """

    def __init__(self, database_url: str) -> None:
        def open_line() -> Line:
            # a stricter default of the role or database would fail each commit that a renewal has crossed (40001);
            # its other settings are the body's own business
            line = connect(database_url, "job", writes=True, options=ISOLATION_ONLY)
            line.autocommit = False
            return line

        self._engine: Engine = create_engine("postgresql+psycopg://", creator=open_line, poolclass=NullPool)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A plain connection, outside the fence."""
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def transaction(self, info: RunInfo, *, checkpoint: Any, has_checkpoint: bool) -> Iterator[Connection]:
        """The job's writes and the run's own state in one COMMIT. Raises LeaseLost, with everything rolled back."""
        state = _encode(checkpoint) if has_checkpoint else None
        with self._engine.begin() as connection:
            yield connection
            # Crash point: dying before the COMMIT leaves neither the effect nor the state, after it both.
            _fenced(connection, info, state)

    def save_checkpoint(self, info: RunInfo, state: Any) -> None:
        """Write the checkpoint alone. Raises LeaseLost, and ValueError when it is not JSON or over 64 KiB."""
        text = _encode(state)
        with self._engine.begin() as connection:
            _fenced(connection, info, text)

    def close(self) -> None:
        """Close what is open."""
        self._engine.dispose()


def _encode(state: Any) -> str:
    try:
        text = json.dumps(state, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the checkpoint is not JSON: {error}") from None
    if len(text.encode("utf-8", "replace")) > CHECKPOINT_LIMIT:
        raise ValueError(f"the checkpoint is over {CHECKPOINT_LIMIT // 1024} KiB")
    return text


def _fenced(connection: Connection, info: RunInfo, state: str | None) -> None:
    """Write the run's row as this attempt's owner; `state` None means success."""
    who = {"id": info.run_id, "attempt": info.attempt, "owner": info.owner}
    if state is None:
        answer = connection.exec_driver_sql(load("succeed_in_transaction"), who)
    else:
        answer = connection.exec_driver_sql(load("save_checkpoint"), {**who, "state": state})
    if answer.first() is None:
        raise LeaseLost(
            f"{info.job} {info.run_key}: attempt {info.attempt} no longer owns this run; nothing was committed"
        )
