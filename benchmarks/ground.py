"""Common ground of the benchmarks: a place to run, processes that play replicas, counters, and the report.

Each benchmark measures Soloist and the *floor* (the least that a correct runner can do with raw psycopg, `floor.py`)
in turns, on one server, in one session: the machine is shared, so the ratio says more than either figure. For the same
reason CPU seconds stand beside wall time.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg

from benchmarks import effects
from benchmarks.effects import Effect
from benchmarks.server import Server, server

REPO = Path(__file__).parents[1]
RESULTS = "BENCH_RESULTS"
PATIENCE = 180.0  # seconds for anything that is to happen; there for hangs, not for speed
Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Work:
    """What one process is to do: `side` is `floor` or `soloist`, `row` the benchmark."""

    side: str
    row: str
    url: str
    number: int = 0
    replicas: int = 1
    jobs: int = 1
    due: float = 0.0
    seats: int = 16
    isolation: str = "thread"
    lease: float = 15.0
    logs: bool = False


class Replica:
    """A process that does its work and answers, on its standard input and output, what it has counted so far."""

    def __init__(self, place: Ground, work: Work) -> None:
        self.number = work.number
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.replica", json.dumps(asdict(work))],
            env={**os.environ, "PYTHONPATH": str(REPO), effects.FOLDER: str(place.effects)},
            cwd=REPO,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=place.log,
            text=True,
            start_new_session=True,
        )
        self.process = psutil.Process(self._process.pid)

    def ready(self) -> Replica:
        """Wait for its word."""
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            raise SystemExit(f"replica {self.number} did not get ready: exit {self._process.wait(10)}")
        return self

    def warm(self) -> bool:
        """Whether it has a zygote and a child: it has run a body in a process."""
        return len(self.process.children(recursive=True)) > 1

    def count(self) -> int:
        """Statements that it has sent so far."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("count\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def freeze(self) -> None:
        """Stop it in its tracks, as a machine that stalls does."""
        self._process.send_signal(signal.SIGSTOP)

    def kill(self) -> float:
        """kill -9 of this process alone; returns the time of it. What it has started is for its zygote to end."""
        at = time.time()
        self._process.kill()
        self._process.wait()
        return at

    def end(self) -> None:
        """Stop in good order; by force when that takes too long."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(40)
        except subprocess.TimeoutExpired:
            self.kill()
        assert self._process.stdout is not None
        self._process.stdout.close()


@dataclass(slots=True)
class Ground:
    """A server, a folder of effects, and a log for what goes wrong in the replicas."""

    server: Server
    effects: Path
    log: Any
    connection: psycopg.Connection[Any]

    @property
    def url(self) -> str:
        """The replicas' address."""
        return self.server.url

    def clear(self) -> None:
        """An empty database, and no effects."""
        shutil.rmtree(self.effects)
        self.effects.mkdir()
        for schema in ("soloist", "floor"):
            self.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        self.sql("CHECKPOINT")

    def sql(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        """Run a statement of the harness's own."""
        cursor = self.connection.execute(statement, params or None)
        return list(cursor.fetchall()) if cursor.description else []

    def starts(self) -> list[Effect]:
        """Bodies that began, in order of time."""
        return [effect for effect in effects.read(self.effects) if effect.what == "start"]

    def until(self, fact: Any, what: str, step: float = 0.05, within: float = PATIENCE) -> Any:
        """Wait for something true and return it."""
        end = time.monotonic() + within
        while not (found := fact()):
            if time.monotonic() > end:
                raise SystemExit(f"did not come true within {within:g} s: {what}; see {self.log.name}")
            time.sleep(step)
        return found

    @contextmanager
    def team(self, works: Iterable[Work]) -> Iterator[list[Replica]]:
        """Replicas that are ready; ended at the end. Those that the caller adds to the list are ended too."""
        team = [Replica(self, work) for work in works]
        try:
            for replica in team:
                replica.ready()
            yield team
        finally:
            for replica in team:
                replica.end()

    def counters(self, team: Sequence[Replica]) -> Figures:
        """What this team and the server have used up so far. Two of them, subtracted, are the cost of a stretch."""
        row = self.sql(
            "SELECT pg_current_wal_insert_lsn() - '0/0', pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        )[0]
        ours = self.connection.info.backend_pid
        found = {
            "sent": sum(replica.count() for replica in team),
            "wal": float(row[0]),
            "xacts": float(row[1]),
            "cpu": cpu_of(process for replica in team for process in _tree(replica.process)),
            "server_cpu": cpu_of(process for process in self.server.processes() if process.pid != ours),
        }
        if self.server.counts:
            found["counted"] = float(self.sql(COUNTED)[0][0])
        return found


COUNTED = """SELECT COALESCE(sum(calls) FILTER (WHERE toplevel), 0) FROM pg_stat_statements JOIN pg_roles
ON pg_roles.oid = userid WHERE rolname = 'peer'"""


@contextmanager
def ground() -> Iterator[Ground]:
    """The place; everything in it is gone afterwards but the log, and that too when it is empty."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` ends what was started
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    (folder / "effects").mkdir()
    try:
        with (
            server() as made,
            open(folder / "log", "ab") as log,
            psycopg.connect(made.own_url, autocommit=True, application_name="bench") as connection,
        ):
            yield Ground(made, folder / "effects", log, connection)
    finally:
        shutil.rmtree(folder / "effects", ignore_errors=True)
        if not (folder / "log").stat().st_size:
            shutil.rmtree(folder)


def _tree(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return [process, *process.children(recursive=True)]
    return []


def cpu_of(processes: Iterable[psutil.Process]) -> float:
    """User and system seconds of these processes, to the nanosecond, and of their children that are gone."""
    total = 0.0
    for process in processes:
        with suppress(psutil.Error, OSError):
            gone = process.cpu_times()
            total += gone.children_user + gone.children_system
            total += time.clock_gettime((~process.pid << 3) | 2)  # the kernel's id of another process's CPU clock
    return total


def per_run(before: Figures, after: Figures, runs: int) -> Figures:
    """The cost of one run between two counts."""
    used = {name: (after[name] - before[name]) / max(runs, 1) for name in before}
    named = {"statements": used["sent"], "wal_bytes": used["wal"], "write_xacts": used["xacts"]}
    if "counted" in used:
        named["statements_counted"] = used["counted"]
    return {**named, "cpu_ms": used["cpu"] * 1e3, "server_cpu_ms": used["server_cpu"] * 1e3}


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def medians(rounds: Sequence[Figures]) -> Figures:
    """Of each figure, over the rounds."""
    return {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}


def ratios(ours: Figures, floor: Figures) -> Figures:
    """Ours by the floor's, wherever both have the figure."""
    return {name: round(ours[name] / floor[name], 2) for name in ours if floor.get(name, 0.0) > 0}


def report(place: Ground, row: str, cell: Mapping[str, Any], sides: Mapping[str, Figures], wrong: list[str]) -> None:
    """Print one cell as a JSON line, and its ratios; append the line to the file that BENCH_RESULTS names."""
    found = {side: {name: float(f"{value:.4g}") for name, value in figures.items()} for side, figures in sides.items()}
    ratio = ratios(sides["soloist"], sides["floor"]) if "floor" in sides else {}
    line = {
        "row": row,
        "cell": dict(cell),
        **found,
        "ratio": ratio,
        "wrong": wrong,
        "at": time.strftime("%FT%TZ", time.gmtime()),
        "load": os.getloadavg()[0],
        "commit": _commit(),
        "server": place.server.version,
    }
    text = json.dumps(line)
    print(text, flush=True)
    print(f"{row} {json.dumps(cell)}: × the floor: {ratio}" + "".join(f"\n  WRONG: {w}" for w in wrong), flush=True)
    if name := os.environ.get(RESULTS):
        with open(name, "a") as file:
            file.write(text + "\n")


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"
