"""A replica that slept through many ticks, and one that comes before its database does."""

from __future__ import annotations

import itertools
import signal
import threading
from typing import Any

import pytest
from cluster import Postgres
from replicas import Fleet, Nursery, eventually, jobs_file

SLEPT = 6


def _jobs(fleet: Fleet, **misfire: Any) -> str:
    entry = {"call": "effects:append", "every": "500ms", "overlap": "allow", "isolation": "thread"}
    return jobs_file(work={**entry, "args": {"path": str(fleet.effects)}, "misfire": misfire})


def _rows(fleet: Fleet) -> list[tuple[Any, ...]]:
    """(tick, status, how it came to be, attempts) in the order of ticks."""
    return fleet.sql("SELECT scheduled_at, status, trigger, attempt FROM soloist.run ORDER BY 1")


@pytest.mark.case("C052")
@pytest.mark.parametrize("policy", ["skip", "latest", "all"])
def test_a_replica_that_slept_does_what_its_job_wants(fleet: Fleet, policy: str) -> None:
    """The machine, not the program, was suspended: every process of it, for longer than the lease."""
    replica = fleet.start(_jobs(fleet, policy=policy, grace="1s")).ready()
    eventually(lambda: len(fleet.lines("work")) >= 3, "ticks run")
    sleepers = [*replica.children()]
    replica.signal(signal.SIGSTOP)
    for process in sleepers:
        process.suspend()
    asleep = "SELECT clock_timestamp() - max(scheduled_at) > interval '5 s' FROM soloist.run"
    eventually(lambda: fleet.sql(asleep) == [(True,)], "ticks come and go")
    ((woke,),) = fleet.sql("SELECT clock_timestamp()")
    for process in sleepers:
        process.resume()
    replica.signal(signal.SIGCONT)
    later = "SELECT count(*) >= 4 FROM soloist.run WHERE scheduled_at > %s AND status = 'succeeded'"
    eventually(lambda: fleet.sql(later, woke) == [(True,)], "the next ticks run as ever")
    missed = [row for row in _rows(fleet) if row[0] < woke and row[2] == "catch_up"]
    made_up_for = [row for row in missed if row[1] == "succeeded"]
    skipped = [row for row in _rows(fleet) if row[1] == "skipped"]
    if policy == "all":
        assert len(made_up_for) >= SLEPT
        assert not skipped
    else:
        assert len(skipped) >= SLEPT
        assert len(made_up_for) <= (policy == "latest"), "none, or the newest of them where the one after it is not due"
        assert all(row[0] > skipped[-1][0] for row in made_up_for)
    ticks = [row[0] for row in _rows(fleet)]
    steps = {(after - before).total_seconds() for before, after in itertools.pairwise(ticks)}
    assert steps == {0.5}, "every tick that was slept through has its row"
    keys = [line[1] for line in fleet.lines("work")]
    assert len(keys) == len(set(keys))
    assert replica.exit_code is None


@pytest.mark.case("C086")
def test_a_replica_that_comes_before_its_database(nursery: Nursery, tmp_path: Any, postgres: Postgres) -> None:
    """It waits, says so once, and starts when the database is there; ticks that came meanwhile are made up for."""
    fleet = Fleet(nursery, tmp_path, postgres.url)
    try:
        fleet.apply(_jobs(fleet, policy="all"))
        ((applied,),) = fleet.sql("SELECT watermark FROM soloist.job")
        postgres.stop()
        early = fleet.start(_jobs(fleet, policy="all"))
        eventually(early.said, "it says that it waits")
        threading.Event().wait(4.0)  # some tries: the length of its wait is what is tested
        assert early.exit_code is None, early.said()
        assert len(early.said().splitlines()) <= 3, early.said()
        postgres.start()
        early.ready()
        eventually(lambda: len(fleet.lines("work")) >= SLEPT, "it works")
        first = min(row[0] for row in _rows(fleet))
        assert (first - applied).total_seconds() <= 0.5, "from the first tick that nobody was there for"
        assert "Traceback" not in early.said()
    finally:
        fleet.close()
