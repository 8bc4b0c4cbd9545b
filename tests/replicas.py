"""Real replica processes for tests: start, look at, freeze, kill, and be sure that nothing of them is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from limit import Limit
from pooler import direct, own_session

HERE = Path(__file__).parent
LIMIT = 60.0
MARK = "SOLOIST_TEST_FLEET"


def eventually(fact: Callable[[], Any], what: str, within: float = LIMIT) -> Any:
    """Wait for a fact (anything true) and return it. The limit is there for hangs, not for speed."""
    limit = Limit(within)
    pause = threading.Event()
    while not (found := fact()):
        if limit.over():
            pytest.fail(f"did not come true within {within:g} s: {what}")
        pause.wait(0.02)
    return found


def away_from_a_tick(period: float, margin: float = 60.0) -> None:
    """Wait until no tick of `every: <period>` is near: where ticks are counted, one amid the test counts as well.

    The last one is 3 s ago, more than the shortest grace; to the next one it is `margin`, which a busy machine needs.
    """
    eventually(lambda: 3 < time.time() % period < period - margin, "no tick is near", within=margin + LIMIT)


def jobs_file(**jobs: dict[str, Any]) -> str:
    """A jobs file (JSON is YAML); underscores in names become hyphens."""
    return json.dumps({"version": 1, "jobs": {name.replace("_", "-"): entry for name, entry in jobs.items()}})


def once() -> dict[str, Any]:
    """The schedule of a job that runs once, as soon as a replica sees it."""
    return {"at": (datetime.now(UTC) - timedelta(seconds=1)).isoformat(), "misfire": {"first_sight": "run"}}


class Nursery:
    """The process that forks replicas; one for a test session. `environment`: what it and they have besides."""

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "replica_nursery.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=HERE.parent,
            env={**os.environ, "PYTHONPATH": str(HERE.parent), "PYTHONWARNINGS": "default"} | (environment or {}),
        )
        self.pid = self._process.pid
        self._said = threading.Condition()
        self._pids: dict[str, int] = {}
        self._exits: dict[int, int] = {}
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word = json.loads(line)
            with self._said:
                if "started" in word:
                    self._pids[word["started"]] = word["pid"]
                    self._exits.pop(word["pid"], None)  # of an earlier one with the same number
                elif "exit" in word:
                    self._exits[word["pid"]] = word["exit"]
                self._said.notify_all()

    def fork(self, order: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        with self._said:
            assert self._said.wait_for(lambda: order["name"] in self._pids, LIMIT), "the nursery did not answer"
            return self._pids[order["name"]]

    def exit_code(self, pid: int) -> int | None:
        with self._said:
            return self._exits.get(pid)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(LIMIT)
        self._thread.join(LIMIT)
        self._process.stdout.close()


class Replica:
    """One process. `events()`: what it said happened, as dicts, so far."""

    def __init__(self, nursery: Nursery, name: str, pid: int, journal: Path, stderr: Path) -> None:
        self._nursery, self.name, self.pid = nursery, name, pid
        self.journal, self.stderr = journal, stderr

    @property
    def exit_code(self) -> int | None:
        """None: it lives. Minus the number of the signal that ended it."""
        return self._nursery.exit_code(self.pid)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def children(self) -> list[psutil.Process]:
        """Zygote, children, and what they started."""
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def events(self, *kinds: str, **facts: Any) -> list[dict[str, Any]]:
        """Those of these kinds, with these facts (compared as text)."""
        if not self.journal.exists():
            return []
        lines = self.journal.read_bytes().split(b"\n")[:-1]
        found = [json.loads(line) for line in lines]
        return [
            event
            for event in found
            if (not kinds or event["event"] in kinds) and all(str(event.get(k)) == str(v) for k, v in facts.items())
        ]

    def said(self) -> str:
        """Its stderr."""
        return self.stderr.read_text(errors="replace") if self.stderr.exists() else ""

    def ready(self) -> Replica:
        """Wait until its engine runs."""
        eventually(lambda: self.events("ReplicaStarted") or self.exit_code is not None, f"{self.name} starts")
        assert self.exit_code is None, self.said()
        return self

    def ended(self, within: float = LIMIT) -> int:
        """Wait for its end; its exit code."""
        eventually(lambda: self.exit_code is not None, f"{self.name} ends\n{self.said()[-2000:]}", within)
        assert self.exit_code is not None
        return self.exit_code


class Fleet:
    """The replicas of one test on one database, and the file of effects that their bodies write."""

    def __init__(self, nursery: Nursery, folder: Path, url: str) -> None:
        self._nursery, self.folder, self.url = nursery, folder, url
        self.settings: dict[str, Any] = {}
        self.replicas: list[Replica] = []
        self.effects = folder / "effects"
        self.gate = folder / "gate"
        self.environment: dict[str, str] = {}  # of the replicas that start from now on

    def start(
        self,
        jobs: str,
        name: str | None = None,
        *,
        url: str | None = None,
        statements: Path | None = None,
        file: Path | None = None,
        **settings: Any,
    ) -> Replica:
        """A replica with this jobs file's text; a lease of 6 s unless `settings` say otherwise: whoever waits for its
        end does not wait for long, and a machine that stands still for three seconds ends nobody's body.

        `url`: another way to the same database; `statements`: a folder with `sql/*.sql` in place of the engine's;
        `file`: read and watched in place of `jobs`.
        """
        name = name or f"r{len(self.replicas)}"
        journal, stderr = (self.folder / f"{name}.{kind}" for kind in ("journal", "stderr"))
        order = {
            "name": f"{self.folder.name}/{name}/{len(self.replicas)}",
            "jobs": jobs,
            "file": None if file is None else str(file),
            "url": url or self.url,
            "statements": None if statements is None else str(statements),
            "settings": {"replica": name, "lease": 6.0, "drain": 5.0, "seats": 8, **self.settings, **settings},
            "journal": str(journal),
            "stderr": str(stderr),
            "environment": {MARK: str(self.folder), **self.environment},
        }
        made = Replica(self._nursery, name, self._nursery.fork(order), journal, stderr)
        self.replicas.append(made)
        return made

    def apply(self, jobs: str) -> None:
        """Put the plan in force before any replica lives, so that no tick is older than its job."""
        from patience import PATIENT, connect_deadline

        from scheduler.app import Soloist
        from scheduler.config.jobs_file import parse
        from scheduler.config.settings import Settings

        plan = parse(jobs.encode(), "jobs.yaml", HERE / "bodies")
        parts, _ = Soloist(Settings(replica="planner"), plan, self.url).wire()
        with connect_deadline(PATIENT):
            parts.follower.apply()
        for kind in parts.kinds.values():
            kind.close()
        self.sql("UPDATE soloist.replica SET stopped_at = now() WHERE name = 'planner'")

    def lines(self, first: str | None = None) -> list[list[str]]:
        """The effects so far, in words; those that begin with `first`. A line that is being written is none yet."""
        if not self.effects.exists():
            return []
        lines = [line.split() for line in self.effects.read_text().split("\n")[:-1]]
        return [line for line in lines if first is None or line[0] == first]

    def sql(self, statement: str, *params: Any) -> list[Any]:
        with psycopg.connect(direct(self.url), autocommit=True) as connection:
            cursor = connection.execute(statement, params or None)  # type: ignore[call-overload]
            return list(cursor.fetchall()) if cursor.description else []

    def statuses(self, job: str) -> list[tuple[str, int]]:
        """(status, attempt) of the job's runs, in the order of their ticks."""
        return self.sql(
            "SELECT run.status, run.attempt FROM soloist.run JOIN soloist.job ON job.id = run.job"
            " WHERE job.name = %s ORDER BY scheduled_at",
            job,
        )

    def outcomes(self, job: str) -> list[tuple[int, str, str]]:
        """(number, outcome, replica) of all attempts of the job, in order."""
        return self.sql(
            "SELECT number, outcome, replica_name FROM soloist.attempt JOIN soloist.run ON run.id = attempt.run"
            " JOIN soloist.job ON job.id = run.job WHERE job.name = %s ORDER BY scheduled_at, number",
            job,
        )

    def owner_of(self, job: str) -> Replica:
        """The replica that runs the job's one running run; waits for it."""

        def found() -> str | None:
            rows = self.sql(
                "SELECT replica.name FROM soloist.run JOIN soloist.job ON job.id = run.job"
                " JOIN soloist.replica ON replica.id = run.claimed_by WHERE job.name = %s AND run.status = 'running'",
                job,
            )
            return rows[0][0] if rows else None

        name = eventually(found, f"somebody runs {job}")
        return next(replica for replica in self.replicas if replica.name == name)

    def strays(self) -> list[psutil.Process]:
        """Processes that our replicas started (zygotes, children) and that live."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(MARK) == str(self.folder) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def close(self) -> None:
        """End all, by pid, and be sure that what they started ends with them."""
        for replica in self.replicas:
            if replica.exit_code is None:
                for process in replica.children():
                    with suppress(psutil.Error):
                        process.send_signal(signal.SIGCONT)
                with suppress(ProcessLookupError):
                    os.killpg(replica.pid, signal.SIGKILL)
                    os.killpg(replica.pid, signal.SIGCONT)
        for replica in self.replicas:
            replica.ended()
        eventually(lambda: not self.strays(), "nothing that the replicas started is left")


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def fleet(nursery: Nursery, tmp_path: Path, database_url: str, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    made = Fleet(nursery, tmp_path, database_url)
    made.settings.update(own_session(request.node, database_url))
    yield made
    made.close()
