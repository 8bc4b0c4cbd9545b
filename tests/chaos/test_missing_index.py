"""The indexes that make the promises true are taken away: under a start, and under replicas at work."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from replicas import Fleet, eventually, jobs_file

from scheduler.store.migrate import NEEDED_INDEXES


def _drop(fleet: Fleet, index: str) -> None:
    if index.endswith("_pkey") or index == "run_once":
        fleet.sql(f"ALTER TABLE soloist.{index.partition('_')[0]} DROP CONSTRAINT {index} CASCADE")
    else:
        fleet.sql(f"DROP INDEX soloist.{index}")


def _tick(fleet: Fleet, **fields: Any) -> str:
    entry = {"call": "effects:append", "every": "250ms", "isolation": "thread", "args": {"path": str(fleet.effects)}}
    return jobs_file(tick={**entry, "misfire": {"policy": "all"}, **fields})


@pytest.mark.case("C048")
@pytest.mark.parametrize("index", ["run_once", "run_exclusive"])
def test_a_start_without_it_ends_before_the_first_claim(fleet: Fleet, index: str) -> None:
    """A restored dump, a half-applied migration: the message names what lacks, and nothing was claimed."""
    jobs = _tick(fleet)
    fleet.apply(jobs)
    _drop(fleet, index)
    replica = fleet.start(jobs)
    assert replica.ended() == 8
    assert f"soloist.{index}" in replica.said()
    assert "soloist migrate --sql" in replica.said()
    assert "Traceback" not in replica.said()
    assert fleet.sql("SELECT count(*) FROM soloist.run") == [(0,)]


@pytest.mark.case("C048")
@pytest.mark.parametrize("index", sorted(NEEDED_INDEXES))
def test_dropped_under_replicas_at_work_no_tick_runs_twice(fleet: Fleet, index: str) -> None:
    """The watermark is moved under the job's lock: it alone lets one replica have a tick. Whoever comes is refused."""
    jobs = _tick(fleet, overlap="allow")
    replicas = [fleet.start(jobs, lease=15.0).ready() for _ in range(2)]
    eventually(lambda: len(fleet.lines()) >= 3, "they tick")
    _drop(fleet, index)
    ((dropped_at,),) = fleet.sql("SELECT clock_timestamp()")
    late = "SELECT count(*) FROM soloist.run WHERE finished_at > %s"
    eventually(
        lambda: fleet.sql(late, dropped_at)[0][0] >= 8 or all(one.exit_code is not None for one in replicas),
        "they go on, or end of it",
    )
    rows = [row[0] for row in fleet.sql("SELECT scheduled_at FROM soloist.run ORDER BY 1")]
    assert {(after - before).total_seconds() for before, after in itertools.pairwise(rows)} == {0.25}
    keys = [line[1] for line in fleet.lines()]
    assert len(keys) == len(set(keys)), "a tick ran twice"
    newcomer = fleet.start(jobs)
    assert newcomer.ended() == 8
    assert f"soloist.{index}" in newcomer.said()
