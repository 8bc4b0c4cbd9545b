"""Two images with two versions of the zone data: a tick has one name, at whichever instants they see it."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from importlib import resources
from itertools import pairwise
from pathlib import Path

import pytest
from chaos.rollout import shown_replicas, tick
from replicas import HERE, Fleet, eventually, jobs_file

from scheduler.core.zones import tzdata_version

ZONE, AHEAD, ODD_VERSION = "Europe/London", 20, "2099.9"
Serve = Callable[..., Path]


def _doctored(folder: Path) -> Path:
    """A folder with another `tzdata`, in which one zone is some seconds ahead, for ever."""
    with resources.as_file(resources.files("tzdata")) as real:
        shutil.copytree(real, folder / "tzdata")
    offset = round(datetime.now(UTC).astimezone(_zone()).utcoffset().total_seconds()) + AHEAD  # type: ignore[union-attr]
    header = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    file = folder / "tzdata" / "zoneinfo" / ZONE
    file.unlink()
    file.write_bytes(header + struct.pack(">lBB", offset, 0, 0) + b"ODD\0")
    facts = folder / f"tzdata-{ODD_VERSION}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tzdata\nVersion: {ODD_VERSION}\n")
    return folder


def _zone() -> object:
    from scheduler.core.zones import load_zone

    return load_zone(ZONE)


@pytest.fixture
def serve(tmp_path: Path, database_url: str) -> Iterator[Serve]:
    """Start `soloist serve` with these folders first on its path; returns its log."""
    with ExitStack() as running:

        def start(name: str, jobs: str, *first: Path) -> Path:
            file, log = tmp_path / "jobs.yaml", tmp_path / f"{name}.log"
            file.write_text(jobs)
            shutil.copy(HERE / "bodies" / "effects.py", tmp_path / "effects.py")
            settings = {"DATABASE_URL": database_url, "REPLICA": name, "LEASE": "2s", "SEATS": "4"}
            path = os.pathsep.join(str(folder) for folder in (*first, HERE.parent))
            process = subprocess.Popen(
                [sys.executable, "-m", "scheduler", "serve", "--jobs", str(file)],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": path, **{f"SOLOIST_{key}": value for key, value in settings.items()}},
                stdout=running.enter_context(log.open("wb")),
                stderr=subprocess.STDOUT,
            )
            running.callback(lambda: (process.send_signal(signal.SIGTERM), process.wait(60)))
            eventually(lambda: b"replica_started" in log.read_bytes() or process.poll() is not None, f"{name} starts")
            assert process.poll() is None, log.read_text()
            return log

        yield start


@pytest.mark.case("C031")
def test_replicas_with_other_zone_data_are_seen_and_said(serve: Serve, fleet: Fleet, tmp_path: Path) -> None:
    jobs = jobs_file(minutely=tick(fleet, "", None, schedule="* * * * *", timezone=ZONE))
    serve("plain", jobs)
    log = serve("odd", jobs, _doctored(tmp_path / "other"))
    rows = shown_replicas(fleet)
    assert {name: row["tzdata"] for name, row in rows.items()} == {"plain": tzdata_version(), "odd": ODD_VERSION}
    assert rows["odd"]["generation"] == rows["plain"]["generation"], "it is one file"
    eventually(lambda: b"zone_data_differs" in log.read_bytes(), "who comes last says that they differ")
    assert tzdata_version() in next(line for line in log.read_text().splitlines() if "zone_data_differs" in line)


@pytest.mark.full
@pytest.mark.case("C031")
@pytest.mark.timeout(600)
def test_a_tick_that_two_replicas_see_at_two_instants_runs_once(serve: Serve, fleet: Fleet, tmp_path: Path) -> None:
    """The one whose zone is ahead sees it first, and wins; for the other it has been run when it comes."""
    jobs = jobs_file(minutely=tick(fleet, "", None, schedule="* * * * *", timezone=ZONE))
    serve("plain", jobs)
    serve("odd", jobs, _doctored(tmp_path / "other"))
    eventually(lambda: len(fleet.lines("minutely")) >= 4, "four minutes pass", 400)
    rows = fleet.sql("SELECT run_key, scheduled_at, status FROM soloist.run ORDER BY run_key")
    keys = [key for key, _, _ in rows]
    assert [line[1] for line in fleet.lines("minutely")] == keys, "each label once, and in order"
    minutes = [datetime.fromisoformat(key.split("[")[0]) for key in keys]
    assert {later - earlier for earlier, later in pairwise(minutes)} == {timedelta(minutes=1)}, "and none is left out"
    assert {at.second for _, at, _ in rows} <= {0, 60 - AHEAD}
    assert 60 - AHEAD in {at.second for _, at, _ in rows}, "the odd one took its part"
