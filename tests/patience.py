"""Connections of the test's own process, on a machine that may stand still for seconds.

The product gives a connection five seconds and makes another one where it fails. A test, or a command, makes one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from scheduler.store import connect, engine
from scheduler.store.migrate import migrate

PRODUCTS_OWN = connect.CONNECT_DEADLINE
PATIENT = 60.0


@contextmanager
def connect_deadline(seconds: float) -> Iterator[None]:
    """So many seconds for a new connection."""
    with pytest.MonkeyPatch.context() as patch:
        for room in (connect, engine):
            patch.setattr(room, "CONNECT_DEADLINE", seconds)
        yield


def give_schema(url: str) -> None:
    """Migrate a server's database, which may be as new as the server."""
    with connect_deadline(PATIENT):
        migrate(url)


@pytest.fixture(autouse=True, scope="module")
def patient_connections() -> Iterator[None]:
    """For a whole file: what its tests share connects too."""
    with connect_deadline(PATIENT):
        yield
