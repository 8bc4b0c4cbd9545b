"""Replicas agree on what a tick is: not on when they started, nor how their clocks stand, nor where their host lies."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from replicas import HERE, Fleet, away_from_a_tick, eventually, jobs_file

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PERIODS = {"a": "1s", "b": "700ms", "c": "1500ms"}
MICROSECONDS = {"a": 1_000_000, "b": 700_000, "c": 1_500_000}


def _jobs(fleet: Fleet) -> str:
    entry = {"call": "effects:append", "isolation": "thread", "overlap": "allow", "misfire": {"policy": "all"}}
    args = {"path": str(fleet.effects)}
    return jobs_file(**{job: {**entry, "every": period, "args": args} for job, period in PERIODS.items()})


def _check(fleet: Fleet) -> None:
    """Each planned instant between the first and the last has one row and one effect, and no other instant has any."""
    for job, period in MICROSECONDS.items():
        rows = fleet.sql(
            "SELECT scheduled_at, run_key FROM soloist.run JOIN soloist.job ON job.id = run.job WHERE name = %s"
            " ORDER BY 1",
            job,
        )
        instants = [(at - EPOCH) // timedelta(microseconds=1) for at, _ in rows]
        assert {instant % period for instant in instants} == {0}, "an instant that the calendar does not have"
        assert {after - before for before, after in itertools.pairwise(instants)} == {period}
        assert [key for _, key in rows] == [f"{at.astimezone(UTC).replace(tzinfo=None).isoformat()}Z" for at, _ in rows]
        tries = [(line[1], line[2]) for line in fleet.lines(job)]
        assert len(tries) == len(set(tries)), "a tick ran twice"
        crashed = fleet.sql("SELECT count(*) FROM soloist.run WHERE crashes > 0")[0][0]
        assert sum(attempt != "1" for _, attempt in tries) <= crashed, (
            "only what its owner's death cut short runs again"
        )


@pytest.mark.case("C038")
def test_replicas_that_start_apart_with_clocks_apart_share_their_ticks(fleet: Fleet) -> None:
    jobs = _jobs(fleet)
    for offset in (0.0, 0.437, -1.2):
        seen = len(fleet.lines("a"))
        fleet.start(jobs, lease=15.0, clock_offset=offset).ready()
        eventually(lambda seen=seen: len(fleet.lines("a")) >= seen + 2, "ticks run before the next one starts")
    fleet.replicas[0].signal(signal.SIGKILL)
    fleet.start(jobs, lease=15.0, clock_offset=0.05).ready()
    seen = len(fleet.lines("a"))
    eventually(lambda: len(fleet.lines("a")) >= seen + 4, "they go on")
    for replica in fleet.replicas[1:]:
        replica.signal(signal.SIGTERM)
        assert replica.ended() == 0
    _check(fleet)


ZONES = {"utc": "UTC", "tokyo": "Asia/Tokyo", "far": "Pacific/Kiritimati"}


@pytest.fixture
def hosts(tmp_path: Path, database_url: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """`serve` on hosts of three zones, by name."""
    shutil.copy(HERE / "bodies" / "effects.py", tmp_path / "effects.py")
    misfire = {"first_sight": "run", "within": "25h"}
    entry = {"call": "effects:append", "misfire": misfire, "args": {"path": str(tmp_path / "effects")}}
    jobs: dict[str, dict[str, Any]] = {
        "bare": {**entry, "schedule": "30 3 * * *"},
        "kolkata": {**entry, "schedule": "30 3 * * *", "timezone": "Asia/Kolkata"},
        "daily": {**entry, "schedule": "15 4 * * *", "once_per": "day"},
    }
    (tmp_path / "jobs.yaml").write_text(jobs_file(**jobs))
    away_from_a_tick(900)  # all three tick at quarters of an hour
    started = {}
    for name, zone in ZONES.items():
        environment = {**os.environ, "TZ": zone, "SOLOIST_DATABASE_URL": database_url, "SOLOIST_REPLICA": name}
        with (tmp_path / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", "scheduler", "serve", "--jobs", str(tmp_path / "jobs.yaml")]
            started[name] = subprocess.Popen(command, cwd=HERE.parent, env=environment, stderr=log, stdout=log)
    yield started
    for process in started.values():
        process.kill()
        process.wait(30)


@pytest.mark.case("C030")
def test_the_zone_of_a_host_makes_no_tick(
    hosts: dict[str, subprocess.Popen[bytes]], connection: psycopg.Connection, tmp_path: Path
) -> None:
    """Without `timezone` a schedule is in UTC, wherever it is read."""
    live = "SELECT count(*) FROM soloist.replica"
    eventually(lambda: connection.execute(live).fetchone() == (len(ZONES),), "all serve", 90)
    left = "SELECT count(*) FILTER (WHERE status = 'succeeded') FROM soloist.run"
    eventually(lambda: connection.execute(left).fetchone() == (3,), "each job's latest tick has run")
    for process in hosts.values():
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    rows = connection.execute(
        "SELECT name, run_key, to_char(scheduled_at AT TIME ZONE 'UTC', 'HH24:MI:SS') FROM soloist.run"
        " JOIN soloist.job ON job.id = run.job ORDER BY 1"
    ).fetchall()
    assert [(name, clock) for name, _, clock in rows] == [
        ("bare", "03:30:00"),
        ("daily", "04:15:00"),
        ("kolkata", "22:00:00"),
    ], "one run each, at one instant"
    assert rows[0][1].endswith("T03:30:00[UTC]")
    assert rows[2][1].endswith("T03:30:00[Asia/Kolkata]")
    assert len((tmp_path / "effects").read_text().splitlines()) == 3
