"""Fixtures of the jobs' tests."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import psycopg
import pytest
import uuid_utils
from handmade_run import TICK, Run
from patience import patient_connections

from scheduler.core.context import RunInfo
from scheduler.store.transaction import RunDoor

__all__ = ["patient_connections"]


@pytest.fixture
def begin(database_url: str) -> Iterator[Callable[..., Run]]:
    """Make a running run: `begin(scheduled_at=…, payload=…)`."""
    made: list[Run] = []

    def begin(scheduled_at: datetime = TICK, payload: dict[str, Any] | None = None) -> Run:
        info = RunInfo(
            run_id=uuid.UUID(str(uuid_utils.uuid7())),
            job="daily-registry",
            run_key=f"test-{len(made)}",
            scheduled_at=scheduled_at,
            attempt=1,
            owner=str(uuid.uuid4()),
            payload=payload,
        )
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(
                "INSERT INTO soloist.job (name, spec, spec_hash, generation, watermark)"
                " VALUES ('daily-registry', '{}', '', 1, now()) ON CONFLICT DO NOTHING"
            )
            connection.execute(
                "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, attempt,"
                " claimed_by, claimed_until, started_at)"
                " SELECT %s, id, %s, %s, 'schedule', 'running', false, 1, %s, now() + interval '1 hour', now()"
                " FROM soloist.job WHERE name = 'daily-registry'",
                (info.run_id, info.run_key, scheduled_at, info.owner),
            )
        made.append(Run(database_url, info))
        return made[-1]

    yield begin
    for run in made:
        for port in run.ports:
            port.door.close()


@pytest.fixture
def payments(database_url: str) -> Callable[[list[Any]], int]:
    """Create the job tables and insert payments (`jobs.payment_table.Payment`); returns how many were new."""
    from jobs.payment_table import create_tables, insert_payments

    def insert(rows: list[Any]) -> int:
        door = RunDoor(database_url)
        with door.connect() as connection:
            create_tables(connection)
            inserted = insert_payments(connection, rows)
            connection.commit()
        door.close()
        return inserted

    return insert
