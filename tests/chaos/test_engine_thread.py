"""An engine thread that dies ends the process with exit code 1: a runner without one must not look alive."""

from __future__ import annotations

import pytest
from replicas import Fleet, eventually, jobs_file, once


@pytest.mark.parametrize(
    ("table", "room"), [("job", "ticker"), ("run", "sweeper"), ("replica", "keeper"), ("attempt", "seat")]
)
def test_a_dead_engine_thread_ends_the_process(fleet: Fleet, table: str, room: str) -> None:
    """A table is renamed under the running replica, so that a statement of that thread fails for good."""
    tick = {"call": "effects:append", "every": "300ms", "isolation": "thread", "args": {"path": str(fleet.effects)}}
    hold = {"call": "effects:hold", **once(), "args": {"path": str(fleet.effects), "gate": str(fleet.gate)}}
    # a ticker reads replicas too, when it has lost a tick: without ticks only the keeper does
    jobs = jobs_file(hold=hold) if table == "replica" else jobs_file(tick=tick, hold=hold)
    replica = fleet.start(jobs, drain=1.0).ready()
    eventually(lambda: fleet.lines("begin") and (table == "replica" or len(fleet.lines("tick")) > 2), "it works")
    fleet.sql(f"ALTER TABLE soloist.{table} RENAME TO gone")
    assert replica.ended(45) == 1
    failed = [event["room"] for event in replica.events("EngineFailed")]
    assert failed
    assert room in failed or table in ("job", "run"), failed
    assert "Traceback" not in replica.said()
    assert not fleet.strays()
