"""The command itself, as a person or a container starts it: two replicas, one killed, one told to stop."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from replicas import HERE, eventually, jobs_file, once


@pytest.fixture
def serving(tmp_path: Path, database_url: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Two `serve` processes by name, with a job that holds at its first attempt."""
    shutil.copy(HERE / "bodies" / "effects.py", tmp_path / "effects.py")
    args = {"path": str(tmp_path / "effects"), "gate": str(tmp_path / "gate"), "slow": [1]}
    (tmp_path / "jobs.yaml").write_text(jobs_file(work={"call": "effects:hold", **once(), "args": args}))
    started = {}
    for name in ("one", "two"):
        settings = {"DATABASE_URL": database_url, "REPLICA": name, "LEASE": "2s", "DRAIN": "1s", "SEATS": "2"}
        environment = {**os.environ, **{f"SOLOIST_{key}": value for key, value in settings.items()}}
        with (tmp_path / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", "scheduler", "serve", "--jobs", str(tmp_path / "jobs.yaml")]
            started[name] = subprocess.Popen(command, cwd=HERE.parent, env=environment, stderr=log, stdout=log)
    yield started
    for process in started.values():
        process.kill()
        process.wait(30)


def test_a_killed_replicas_run_is_finished_by_the_other(
    serving: dict[str, subprocess.Popen[bytes]], connection: psycopg.Connection, tmp_path: Path
) -> None:
    owner_of = "SELECT name FROM soloist.run JOIN soloist.replica ON replica.id = claimed_by WHERE status = 'running'"
    both = "SELECT 1 FROM soloist.replica HAVING count(*) = 2"
    eventually(lambda: (tmp_path / "effects").exists() and connection.execute(both).fetchone(), "both serve, one works")
    row = connection.execute(owner_of).fetchone()
    assert row is not None
    owner = serving.pop(row[0])
    (survivor,) = serving.values()
    owner.send_signal(signal.SIGKILL)
    owner.wait(30)
    ended = "SELECT attempt FROM soloist.run WHERE status = 'succeeded'"
    found = eventually(lambda: connection.execute(ended).fetchone(), "attempt 2 succeeds")
    assert found == (2,)
    survivor.send_signal(signal.SIGTERM)
    assert survivor.wait(30) == 0
    for log in tmp_path.glob("*.log"):
        assert "Traceback" not in log.read_text()
