"""Both signals behind real replicas on a real PostgreSQL: what they say of a job that fails for good."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from ingest_endpoint import Endpoint, running_endpoint
from replicas import away_from_a_tick, eventually

from scheduler.app import Soloist
from scheduler.config.jobs_file import load
from scheduler.config.settings import Settings
from scheduler.core.events import Listener
from scheduler.edges.logs import LogListener
from scheduler.edges.sentry import SentryListener
from scheduler.runner.service import Service

JOBS = """
version: 1
jobs:
  always-fails:
    every: 1h
    call: bad_work:fail
    retry: {attempts: 2, backoff: 100ms}
    misfire: {policy: latest, within: 2h, first_sight: run}
"""
WORK = """
import os

def fail(ctx):
    print("about to fail with", os.environ["VENDOR_TOKEN"])
    raise ValueError(f"attempt {ctx.attempt} was refused: {os.environ['VENDOR_TOKEN']}")
"""
SECRET = "canary-of-the-vendor"


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("VENDOR_TOKEN", SECRET)
    with running_endpoint() as running:
        yield running


class Replicas:
    """Replicas in this process, each with its own log and its own reporter."""

    def __init__(self, folder: Path, database_url: str, dsn: str) -> None:
        (folder / "jobs.yaml").write_text(JOBS)
        (folder / "bad_work.py").write_text(WORK)
        self._plan = load(folder / "jobs.yaml")
        self._url, self._dsn = database_url, dsn
        self.logs: list[io.StringIO] = []
        self.reporters: list[SentryListener] = []
        self._services: list[Service] = []

    def start(self, name: str) -> None:
        self.logs.append(io.StringIO())
        self.reporters.append(SentryListener(self._dsn, "soloist@test", None))
        listeners: tuple[Listener, ...] = (LogListener(self.logs[-1]), self.reporters[-1])
        service = Soloist(Settings(replica=name, seats=2, drain=5.0), self._plan, self._url, listeners).service()
        self._services.append(service)
        service.start()

    def stop(self) -> None:
        for service in self._services:
            service.stop()
            service.drain()
        for reporter in self.reporters:
            reporter.close(30)

    def lines(self, event: str) -> list[dict[str, Any]]:
        found = [json.loads(line) for log in self.logs for line in log.getvalue().splitlines()]
        return [line for line in found if line["event"] == event]


def test_a_job_that_fails_for_good_is_one_event_of_two_replicas(
    tmp_path: Path, database_url: str, connection: psycopg.Connection, endpoint: Endpoint
) -> None:
    replicas = Replicas(tmp_path, database_url, endpoint.dsn)
    with ExitStack() as stack:
        stack.callback(replicas.stop)
        away_from_a_tick(3600)
        replicas.start("replica-1")
        replicas.start("replica-2")
        eventually(lambda: endpoint.events, "the failed run is reported")
    (event,) = endpoint.events
    tags = {name: event["tags"][name] for name in ("job", "attempt", "outcome", "status")}
    assert tags == {"job": "always-fails", "attempt": "2", "outcome": "failed", "status": "failed"}
    row = connection.execute("SELECT id::text, run_key, status::text, attempt FROM soloist.run").fetchall()
    assert row == [(event["tags"]["run_id"], event["tags"]["run_key"], "failed", 2)]
    assert event["exception"]["values"] == [{"type": "ValueError", "value": "attempt 2 was refused: ***"}]
    assert "about to fail with ***" in event["extra"]["output_tail"]

    assert len(replicas.lines("tick_won")) == 1
    first, second = sorted(replicas.lines("attempt_ended"), key=lambda line: line["attempt"])
    assert [first["level"], first["status"], first["outcome"]] == ["warning", "queued", "failed"]
    assert [second["level"], second["status"], second["attempt"]] == ["error", "failed", 2]
    assert first["run_id"] == second["run_id"] == event["tags"]["run_id"]
    assert len(replicas.lines("replica_stopped")) == 2
    assert [reporter.dropped for reporter in replicas.reporters] == [0, 0]
    assert not any(SECRET in log.getvalue() for log in replicas.logs)
    assert not any(SECRET.encode() in body for body in endpoint.bodies)
