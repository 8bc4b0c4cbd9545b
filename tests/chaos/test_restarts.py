"""Replicas that are replaced more often than a job ticks: ticks belong to the calendar, not to a process."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest
from replicas import Fleet, eventually, jobs_file


@pytest.mark.case("C069")
def test_deploys_that_come_faster_than_the_interval_lose_no_tick(fleet: Fleet) -> None:
    """An interval that is counted from the start of a process would never be over."""
    jobs = jobs_file(slow={"call": "effects:append", "every": "3s", "args": {"path": str(fleet.effects)}})
    fleet.apply(jobs)
    first = fleet.sql("SELECT watermark FROM soloist.job")[0][0]
    ended = 0
    while ended < 8:  # each lives for a moment, always under the interval
        replica = fleet.start(jobs).ready()
        replica.signal(signal.SIGTERM)
        assert replica.ended() == 0
        ended += 1
    last = fleet.start(jobs).ready()
    after = fleet.sql("SELECT clock_timestamp()")[0][0]
    eventually(lambda: fleet.sql("SELECT 1 FROM soloist.job WHERE watermark > %s", after), "a tick comes by itself")
    ticks = [at for (at,) in fleet.sql("SELECT scheduled_at FROM soloist.run ORDER BY 1")]
    assert len(ticks) >= 2, "there were ticks while the deploys went on"
    assert ticks == [ticks[0] + n * timedelta(seconds=3) for n in range(len(ticks))], "at their anchored instants"
    assert ticks[0] - first <= timedelta(seconds=3), "from the first one on"
    assert last.exit_code is None
