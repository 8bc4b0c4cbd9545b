"""Soloist inside a web application of several workers: however many of them start a scheduler, a tick runs once."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from replicas import eventually, jobs_file
from scene import Scene

APPLICATION = Path(__file__).with_name("web_application.py")
WORKERS = 4
Serve = Callable[[str], subprocess.Popen[bytes]]


def _jobs(path: Path) -> str:
    tick = {"call": "effects:append", "every": "500ms", "overlap": "allow", "misfire": {"policy": "all"}}
    one = {**tick, "isolation": "thread", "args": {"path": str(path / "thread")}}
    two = {**tick, "isolation": "process", "args": {"path": str(path / "process")}}
    return jobs_file(thread=one, process=two)


@pytest.fixture
def serve(database_url: str, tmp_path: Path) -> Iterator[Serve]:
    started: list[subprocess.Popen[bytes]] = []
    (tmp_path / "jobs.yaml").write_text(_jobs(tmp_path))

    def begin(how: str) -> subprocess.Popen[bytes]:
        words = [how, database_url, str(tmp_path / "jobs.yaml"), str(tmp_path), str(WORKERS)]
        with (tmp_path / "stderr").open("wb") as log:
            command = [sys.executable, "-X", "dev", str(APPLICATION), *words]
            started.append(subprocess.Popen(command, stderr=log, stdout=log, start_new_session=True))
        eventually(lambda: len(list(tmp_path.glob("*.serves"))) == WORKERS + 1, "all serve")
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait(30)


def _lines(path: Path) -> list[str]:
    """Those that are there; one that is being written is none yet."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


def _said(folder: Path, kind: str) -> set[str]:
    """The processes that said so."""
    return {
        path.stem for path in folder.glob("*.journal") for line in _lines(path) if json.loads(line)["event"] == kind
    }


@pytest.mark.case("C051")
@pytest.mark.parametrize(("how", "schedulers"), [("each", WORKERS), ("master", 1), ("both", WORKERS + 1)])
def test_a_tick_runs_once_however_many_workers_schedule(
    serve: Serve, facts: Scene, tmp_path: Path, how: str, schedulers: int
) -> None:
    """Workers that were forked from a master whose scheduler runs take nothing of it with them, and do it no harm."""
    application = serve(how)
    both = [tmp_path / "thread", tmp_path / "process"]
    eventually(lambda: all(len(_lines(path)) >= 8 for path in both), "ticks run")
    assert len(_said(tmp_path, "ReplicaStarted")) == schedulers
    application.send_signal(signal.SIGTERM)
    assert application.wait(60) == 0, (tmp_path / "stderr").read_text()
    for path in both:
        keys = [line.split()[1] for line in _lines(path)]
        assert len(keys) == len(set(keys)), "a tick ran twice"
        instants = [row["scheduled_at"] for row in facts.rows(path.name)]
        assert {(b - a).total_seconds() for a, b in itertools.pairwise(instants)} == {0.5}, "a tick has no row"
    assert len(_said(tmp_path, "ReplicaStopped")) == schedulers
    assert not _said(tmp_path, "DatabaseLost") | _said(tmp_path, "EngineFailed") | _said(tmp_path, "RunTakenOver")
    assert "Traceback" not in (tmp_path / "stderr").read_text()
    assert facts.sql("SELECT count(*) AS n FROM soloist.run WHERE status = 'running'") == [{"n": 0}]


@pytest.mark.case("C051")
def test_workers_that_serve_pages_only_schedule_nothing(serve: Serve, facts: Scene, tmp_path: Path) -> None:
    """To build a `Soloist` is not to start one."""
    application = serve("none")
    application.send_signal(signal.SIGTERM)
    assert application.wait(60) == 0
    assert _said(tmp_path, "ReplicaStarted") == set()
    for table in ("replica", "job", "run"):
        assert facts.sql(f"SELECT count(*) AS n FROM soloist.{table}") == [{"n": 0}]
