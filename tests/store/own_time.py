"""A database with a time of its own, which a test moves on: days pass in a moment, and nobody waits for anything.

The statements ask for `clock_timestamp()` by its bare name, so a function of that name that comes first in the search
path answers them. Each asking is a microsecond later than the one before, as with the real one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
from scene import Scene

# beyond the real time: the purge bounds what it looks at by the runs' ids, which tell the real time of their making
START = datetime(2050, 1, 1, 20, tzinfo=UTC)
FOLLOW = "SET search_path = test_time, pg_catalog"
PATIENCE = "SET idle_in_transaction_session_timeout = 0"  # a pause of the test is no crash of a replica
HASTE = "SET synchronous_commit = off"  # thousands of commits, and nothing here is about what a crash leaves

_INSTALL = """
CREATE SCHEMA test_time;
CREATE SEQUENCE test_time.microsecond MINVALUE 0 START 0;
CREATE FUNCTION test_time.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT timestamptz '2050-01-01 20:00:00+00' + nextval('test_time.microsecond') * interval '1 microsecond'
$$;
DO $$
DECLARE one record;
BEGIN
    FOR one IN SELECT table_name, column_name FROM information_schema.columns
               WHERE table_schema = 'soloist' AND column_default LIKE '%clock_timestamp()%' LOOP
        EXECUTE format('ALTER TABLE soloist.%I ALTER COLUMN %I SET DEFAULT test_time.clock_timestamp()',
                       one.table_name, one.column_name);
    END LOOP;
END $$;
"""


class OwnTime:
    """The time of a scene's database. The scene's own session and its `facts` follow it; others have to be told."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        if not scene.sql("SELECT 1 FROM pg_namespace WHERE nspname = 'test_time'"):
            scene.facts.execute(_INSTALL)  # type: ignore[call-overload]
        self.tell(scene.facts)
        scene.mine.greet_with(FOLLOW)
        scene.mine.greet_with(HASTE)

    @staticmethod
    def tell(connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
        """Have this connection follow it too; returns it."""
        connection.execute(FOLLOW)
        connection.execute(HASTE)
        connection.execute(PATIENCE)
        return connection

    def reset(self) -> None:
        """It is START again."""
        self._scene.sql("SELECT setval('test_time.microsecond', 0)")

    def move_on(self, seconds: float) -> None:
        """So many seconds pass at once."""
        step = int(seconds * 1_000_000)
        self._scene.sql("SELECT setval('test_time.microsecond', nextval('test_time.microsecond') + %s)", step)

    def now(self) -> datetime:
        """What the database says."""
        found: Any = self._scene.sql("SELECT clock_timestamp() AS now")[0]["now"]
        return found.astimezone(UTC)
