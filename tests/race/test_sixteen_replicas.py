"""Sixteen real replicas race for the same 500 ticks: 500 runs, 500 effects, none before the database's time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from replicas import Fleet, eventually, jobs_file

REPLICAS, TICKS, APART = 16, 500, 0.02  # seconds between two ticks

pytestmark = pytest.mark.timeout(420)  # sixteen interpreters on a machine that does something else as well


def _jobs(fleet: Fleet, first: datetime) -> str:
    """500 jobs of one tick each, five at a time: chunks that many replicas want at once."""
    return jobs_file(
        **{
            f"j{n}": {
                "call": "effects:append",
                "at": (first + timedelta(seconds=n // 5 * 5 * APART)).isoformat(),
                "args": {"path": str(fleet.effects)},
                "isolation": "thread",
                "misfire": {"first_sight": "run"},  # a slow start may put the plan in force after the first ticks
            }
            for n in range(TICKS)
        }
    )


SLOW_MACHINE = {"pooler_found", "database_lost", "database_regained", "presence_lost", "presence_regained"}


def _terminal(fleet: Fleet) -> int:
    return int(fleet.sql("SELECT count(*) FROM soloist.run WHERE finished_at IS NOT NULL")[0][0])


def _check(fleet: Fleet) -> None:
    for replica in fleet.replicas:
        replica.ready()
    eventually(lambda: _terminal(fleet) == TICKS, "every tick has a run that ended", 300)
    rows = fleet.sql(
        "SELECT job.name, run.status, run.attempt, run.started_at >= run.scheduled_at,"
        " run.created_at >= run.scheduled_at"
        " FROM soloist.job LEFT JOIN soloist.run ON run.job = job.id"
    )
    assert fleet.sql("SELECT status, last_error FROM soloist.run WHERE status <> 'succeeded'") == []
    assert Counter(row[1:] for row in rows) == {("succeeded", 1, True, True): TICKS}
    assert len({row[0] for row in rows}) == TICKS
    effects = Counter((line[0], line[1]) for line in fleet.lines())
    assert len(effects) == TICKS
    assert set(effects.values()) == {1}
    assert fleet.sql("SELECT count(*), count(DISTINCT run) FROM soloist.attempt") == [(TICKS, TICKS)]
    assert fleet.sql("SELECT count(*) FROM soloist.job WHERE watermark < (spec #>> '{schedule,at}')::timestamptz") == [
        (0,)
    ]
    for replica in fleet.replicas:
        assert replica.exit_code is None, replica.said()
        assert not replica.events("EngineFailed", "WriteFenced", "LeaseLostEvent", "RunTakenOver"), replica.name


def _no_error_in_any_log(fleet: Fleet, postgres_log: str) -> None:
    """Losing is the normal fate of most: it leaves no error anywhere, and no start of a loser's.

    A machine that stands still for seconds loses sessions, and lets statements wait for locks for too long.
    """
    assert sum(len(replica.events("AttemptStarted")) for replica in fleet.replicas) == TICKS
    for replica in fleet.replicas:
        said = [json.loads(line) for line in replica.said().split("\n")[:-1]]
        levels = Counter(line["level"] for line in said if line["event"] not in SLOW_MACHINE)
        assert set(levels) == {"info"}, (replica.name, levels)
    assert [line for line in postgres_log.splitlines() if "ERROR" in line and "canceling statement" not in line] == []


@pytest.fixture
def log_since(server: Any) -> Callable[[], str]:
    """What PostgreSQL has logged since the test began."""
    path = server.data / "log"
    start = path.stat().st_size

    def read() -> str:
        with path.open("rb") as file:
            file.seek(start)
            return file.read().decode(errors="replace")

    return read


@pytest.mark.case("C034")
def test_all_start_before_the_first_tick(fleet: Fleet, log_since: Callable[[], str]) -> None:
    jobs = _jobs(fleet, datetime.now(UTC) + timedelta(seconds=15))
    fleet.apply(jobs)
    for _ in range(REPLICAS):
        fleet.start(jobs, lease=15.0, seats=4)
    _check(fleet)
    _no_error_in_any_log(fleet, log_since())
    winners = fleet.sql("SELECT count(DISTINCT replica) FROM soloist.attempt")
    assert winners[0][0] > 3, "the work spreads without an election"


def test_some_join_in_the_middle(fleet: Fleet) -> None:
    jobs = _jobs(fleet, datetime.now(UTC) + timedelta(seconds=8))
    fleet.apply(jobs)
    for _ in range(6):
        fleet.start(jobs, lease=15.0, seats=4)
    for few in (20, 200, 350):
        eventually(lambda few=few: _terminal(fleet) >= few, f"{few} ticks are over")
        for _ in range(3 if few > 20 else 4):
            fleet.start(jobs, lease=15.0, seats=4)
    _check(fleet)
    assert len(fleet.replicas) == REPLICAS


def test_clocks_two_seconds_ahead_and_behind(fleet: Fleet) -> None:
    jobs = _jobs(fleet, datetime.now(UTC) + timedelta(seconds=15))
    fleet.apply(jobs)
    for n in range(REPLICAS):
        fleet.start(jobs, lease=15.0, seats=4, clock_offset=(-2.0, 2.0, -0.5, 0.005)[n % 4])
    _check(fleet)
    by_clock = fleet.sql(
        "SELECT round(replica.clock_offset::numeric), count(*) FROM soloist.attempt"
        " JOIN soloist.replica ON replica.id = attempt.replica GROUP BY 1"
    )
    assert {-2, 2} <= {round(offset) for offset, _ in by_clock}, "clocks ahead and behind both won ticks"
