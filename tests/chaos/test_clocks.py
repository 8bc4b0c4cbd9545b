"""Clocks that are wrong, drift and are set: every tick runs once and on time by the database's, and it is said."""

from __future__ import annotations

import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
from collections import Counter
from typing import Any

import pytest
from clocks import ClockedFleet
from replicas import HERE, Replica, eventually, jobs_file, once

SECOND = 1.0


def _jobs(fleet: ClockedFleet, every: str = "1s", **fields: Any) -> str:
    entry = {"call": "effects:append", "every": every, "isolation": "thread", "args": {"path": str(fleet.effects)}}
    return jobs_file(work={**entry, "misfire": {"policy": "all"}, "overlap": "allow", **fields})


def _rows(fleet: ClockedFleet) -> list[tuple[Any, ...]]:
    """(scheduled_at, seconds from the tick to its row, who claimed it last) by tick."""
    return fleet.sql(
        "SELECT scheduled_at, extract(epoch FROM created_at - scheduled_at)::float8, coalesce(owner.name, done.name)"
        " FROM soloist.run LEFT JOIN soloist.replica owner ON owner.id = claimed_by"
        " LEFT JOIN LATERAL (SELECT replica_name AS name FROM soloist.attempt WHERE run = run.id"
        " ORDER BY number DESC LIMIT 1) done ON true ORDER BY 1"
    )


def _each_tick_once(fleet: ClockedFleet, step: float = SECOND) -> list[tuple[Any, ...]]:
    """Every tick between the first and the last has one row, one effect, is a planned instant, and is not early."""
    rows = _rows(fleet)
    assert {(after[0] - before[0]).total_seconds() for before, after in itertools.pairwise(rows)} == {step}
    assert all((row[0].timestamp() / step).is_integer() for row in rows)
    assert min(row[1] for row in rows) >= 0, "a tick was claimed before its time"
    made = [(line[1], line[2]) for line in fleet.lines("work")]
    assert len(made) == len(set(made)), "an attempt of a tick ran twice"
    return rows


def _lateness(rows: list[tuple[Any, ...]]) -> float:
    """Seconds from tick to row, the middle one. Of those that were claimed alone: what a machine that stood still has
    left is claimed at once, and says nothing of clocks.
    """
    claims = Counter(round(row[0].timestamp() + row[1], 2) for row in rows)
    return statistics.median(row[1] for row in rows if claims[round(row[0].timestamp() + row[1], 2)] == 1)


def _ticks(fleet: ClockedFleet, number: int) -> None:
    """Wait for so many more ticks."""
    wanted = len(fleet.lines("work")) + number
    eventually(lambda: len(fleet.lines("work")) >= wanted, f"{number} more ticks")


def _away(replica: Replica, *, claims: bool) -> dict[str, Any]:
    return eventually(lambda: replica.events("ClockAway", claims=claims), f"{replica.name} sees its clock")[0]


def _listed(fleet: ClockedFleet) -> dict[str, float]:
    """What `soloist replicas` shows of the clocks."""
    command = [sys.executable, "-m", "scheduler", "replicas", "-o", "json"]
    environment = {**os.environ, "SOLOIST_DATABASE_URL": fleet.url}
    done = subprocess.run(command, cwd=HERE.parent, env=environment, capture_output=True, check=True, timeout=60)
    return {row["name"]: row["clock_offset"] for row in json.loads(done.stdout)}


def test_a_few_seconds_away_is_corrected_and_said_once(clocked_fleet: ClockedFleet) -> None:
    fleet = clocked_fleet
    jobs = _jobs(fleet)
    late, early = (fleet.start_at(clock, jobs, name).ready() for clock, name in (("-5s", "late"), ("+5s", "early")))
    _ticks(fleet, 8)
    rows = _each_tick_once(fleet)
    # nobody here has a right clock: were one believed, half of the ticks or all would be five seconds late
    assert _lateness(rows[2:]) < 2
    for replica, offset in ((late, -5), (early, 5)):
        assert abs(_away(replica, claims=True)["offset"] - offset) < 1
        assert len(replica.events("ClockAway")) == 1
        assert not replica.events("ClockRight")
        assert len([line for line in replica.said().splitlines() if "clock_away" in line]) == 1
    # a replica's first heartbeat may have told of its clock before that was measured
    eventually(lambda: all(_listed(fleet).values()), "the offsets are in the table")
    shown = _listed(fleet)
    assert shown == {"late": pytest.approx(-5, abs=1), "early": pytest.approx(5, abs=1)}


@pytest.mark.parametrize("clock", ["-300s", "+300s"])
def test_minutes_away_claims_nothing_and_the_others_do_the_work(clocked_fleet: ClockedFleet, clock: str) -> None:
    fleet = clocked_fleet
    jobs = _jobs(fleet)
    away = fleet.start_at(clock, jobs, "away").ready()
    assert abs(abs(_away(away, claims=False)["offset"]) - 300) < 1
    right = fleet.start_at("+0", jobs, "right").ready()
    _ticks(fleet, 6)
    assert {row[2] for row in _each_tick_once(fleet)} - {None} == {"right"}
    assert not away.events("TickWon", "AttemptStarted")
    assert not right.events("ClockAway")
    assert len(away.events("ClockAway", claims=False)) == 1, "said once"
    fleet.set_clock("away", "+0")
    assert eventually(lambda: away.events("ClockRight"), "the clock is right again")[0]["replica"] == "away"
    right.signal(signal.SIGTERM)
    assert right.ended() == 0
    _ticks(fleet, 3)
    assert {line[3] for line in fleet.lines("work")[-3:]} == {str(away.pid)}
    _each_tick_once(fleet)


def test_a_replica_alone_whose_clock_is_minutes_away_claims_nothing(clocked_fleet: ClockedFleet) -> None:
    """It says so and waits; when the clock is right again it accounts for the ticks it has left."""
    fleet = clocked_fleet
    fleet.apply(_jobs(fleet))
    away = fleet.start_at("+300s", _jobs(fleet), "away").ready()
    _away(away, claims=False)
    passed = "SELECT clock_timestamp() - watermark > interval '4 s' FROM soloist.job"
    eventually(lambda: fleet.sql(passed) == [(True,)], "ticks come due")
    assert not fleet.sql("SELECT 1 FROM soloist.run")
    fleet.set_clock("away", "+0")
    _ticks(fleet, 6)
    rows = _each_tick_once(fleet)
    eventually(lambda: fleet.statuses("work")[0] == ("succeeded", 1), "the first of them is done")
    assert len(rows) >= 6


def test_a_clock_that_goes_away_loses_no_run_that_is_owned(clocked_fleet: ClockedFleet) -> None:
    """What it owns it renews, by the database's clock and its own boot time; it takes nothing new."""
    fleet = clocked_fleet
    args = {"path": str(fleet.effects), "gate": str(fleet.gate)}
    jobs = jobs_file(
        hold={"call": "effects:hold", **once(), "args": args},
        work={"call": "effects:append", "every": "1s", "isolation": "thread", "args": {"path": str(fleet.effects)}},
    )
    owner = fleet.start_at("+0", jobs, "owner", lease=15.0).ready()
    eventually(lambda: fleet.lines("begin"), "the body begins")
    other = fleet.start_at("+0", jobs, "other", lease=15.0).ready()
    fleet.set_clock("owner", "+300s")
    _away(owner, claims=False)
    held = "SELECT claimed_until FROM soloist.run JOIN soloist.job ON job.id = job WHERE name = 'hold' AND attempt = 1"
    ((until,),) = fleet.sql(held)
    lasting = "SELECT claimed_until > %s + interval '15 s' FROM soloist.run JOIN soloist.job ON job.id = job"
    lasting += " WHERE name = 'hold'"
    seen = len(owner.events("TickWon"))
    eventually(lambda: fleet.sql(lasting, until) == [(True,)], "a whole lease later it is renewed still")
    fleet.gate.touch()
    eventually(lambda: fleet.statuses("hold") == [("succeeded", 1)], "its outcome is written by its one owner")
    assert len(owner.events("TickWon")) <= seen + 1, "one more may have been on its way"
    assert other.events("TickWon")
    assert not [event for replica in fleet.replicas for event in replica.events("RunTakenOver", "LeaseLostEvent")]


@pytest.mark.parametrize("rate", [1.01, 0.5])
def test_a_clock_that_drifts(clocked_fleet: ClockedFleet, rate: float) -> None:
    fleet = clocked_fleet
    replica = fleet.start_at(fleet.drifting(rate), _jobs(fleet, "500ms"), "drifts").ready()
    _ticks(fleet, 16)
    rows = _each_tick_once(fleet, 0.5)
    assert _lateness(rows) < 1
    if rate == 0.5:
        assert eventually(lambda: replica.events("ClockAway"), "it sees its clock fall behind")[0]["offset"] < -1


@pytest.mark.full
def test_a_clock_at_half_speed_claims_until_it_is_half_a_minute_behind(clocked_fleet: ClockedFleet) -> None:
    fleet = clocked_fleet
    jobs = _jobs(fleet)
    slow = fleet.start_at(fleet.drifting(0.5), jobs, "slow").ready()
    fast = fleet.start_at(fleet.drifting(1.01), jobs, "fast").ready()
    eventually(lambda: slow.events("ClockAway", claims=False), "half a minute behind", 120)
    seen = len(slow.events("TickWon"))
    _ticks(fleet, 10)
    _each_tick_once(fleet)
    assert [event["claims"] for event in slow.events("ClockAway")] == [True, False]
    assert seen, "until then it did its share"
    assert len(slow.events("TickWon")) <= seen + 1
    assert not fast.events("ClockAway", claims=False)


@pytest.mark.case("C035")
def test_a_clock_that_is_set_back_again_and_again_just_after_it_woke(clocked_fleet: ClockedFleet) -> None:
    """A tick is the planned instant, whatever the clock says on waking; after tick T comes the one after T."""
    fleet = clocked_fleet
    fleet.start_at("+0", _jobs(fleet, "500ms"), "steps").ready()
    pause = threading.Event()
    for step in itertools.islice(itertools.cycle(("-0.005s", "-0.9s", "+0", "+0.9s", "-0.9s")), 40):
        fleet.set_clock("steps", step)
        pause.wait(0.13)
    _ticks(fleet, 4)
    rows = _each_tick_once(fleet, 0.5)
    assert len(rows) >= 8
    assert _lateness(rows) < 1


@pytest.mark.case("C036")
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_job_shorter_than_the_clocks_differ(clocked_fleet: ClockedFleet, isolation: str) -> None:
    """The row decides, not a lock that is free again when the slower clock comes by."""
    fleet = clocked_fleet
    args = {"path": str(fleet.effects), "seconds": 0.05}
    jobs = _jobs(fleet, call="effects:nap", args=args, isolation=isolation)
    clocks = {"right": "+0", "behind": "-3s", "ahead": "+40s"}
    replicas = {name: fleet.start_at(clock, jobs, name).ready() for name, clock in clocks.items()}
    _ticks(fleet, 10)
    rows = _each_tick_once(fleet)
    assert "ahead" not in {row[2] for row in rows}
    assert _away(replicas["ahead"], claims=False)["offset"] == pytest.approx(40, abs=1)
    assert _away(replicas["behind"], claims=True)["offset"] == pytest.approx(-3, abs=1)
    assert not replicas["right"].events("ClockAway")
