"""Connections are cut again and again: no answer that is lost makes a run begin twice, or stay with nobody."""

from __future__ import annotations

import random
import signal
import threading
from collections import Counter

from replicas import Fleet, eventually, jobs_file

JOBS, CUTS = 100, 25
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name = 'soloist worker' AND datname = current_database()"
)


def test_cut_sessions_never_make_two_bodies_of_one_run(fleet: Fleet) -> None:
    """A claim that commits while the sweeper looks for orphans is none: its body may have begun."""
    entry = {
        "call": "effects:nap",
        "every": "1s",
        "isolation": "thread",
        "overlap": "allow",
        "args": {"path": str(fleet.effects), "seconds": 0.6},
    }
    jobs = jobs_file(**{f"j{number:03}": entry for number in range(JOBS)})
    replicas = [fleet.start(jobs, name, seats=200, lease=15.0).ready() for name in ("one", "two")]
    pause, chance = threading.Event(), random.Random(20261129)
    for _ in range(CUTS):
        pause.wait(chance.uniform(0.3, 0.9))
        fleet.sql(CUT)
    seen = len(fleet.lines())
    eventually(lambda: len(fleet.lines()) > seen + JOBS, "they go on after the cuts")
    for replica in replicas:
        assert replica.exit_code is None, (replica.said()[-3000:], replica.events("EngineFailed"))
        replica.signal(signal.SIGTERM)
        assert replica.ended() == 0
    bodies = Counter((job, key) for job, key, *_ in fleet.lines())
    assert [run for run, times in bodies.items() if times > 1] == []
    assert fleet.sql("SELECT count(*) FROM soloist.run WHERE status = 'running'") == [(0,)]
