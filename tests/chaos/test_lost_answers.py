"""Connections are cut again and again: no answer that is lost makes a run begin twice, or stay with nobody."""

from __future__ import annotations

import signal
import threading
from collections import Counter

from replicas import Fleet, eventually, jobs_file

CUTS = 40
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name = %s AND datname = current_database()"
)


def test_cut_sessions_never_make_two_bodies_of_one_run(fleet: Fleet) -> None:
    """The ticker's and the sweeper's, together: a claim that commits while orphans are looked for is no orphan."""
    entry = {
        "call": "effects:append",
        "every": "100ms",
        "isolation": "thread",
        "overlap": "allow",
        "misfire": {"policy": "all", "grace": "1s", "within": "1h", "limit": 1000},
        "args": {"path": str(fleet.effects)},
    }
    jobs = jobs_file(**{f"j{number}": entry for number in range(4)})
    replicas = [fleet.start(jobs, name).ready() for name in ("one", "two")]
    pause = threading.Event()
    for _ in range(CUTS):
        for room in ("ticker", "sweeper"):
            fleet.sql(CUT, f"soloist {room}")
        pause.wait(0.1)
    seen = len(fleet.lines())
    eventually(lambda: len(fleet.lines()) > seen + 20, "they go on after the cuts")
    for replica in replicas:
        assert replica.exit_code is None, (replica.said()[-3000:], replica.events("EngineFailed"))
        replica.signal(signal.SIGTERM)
        assert replica.ended() == 0
    bodies = Counter((job, key) for job, key, *_ in fleet.lines())
    assert [run for run, times in bodies.items() if times > 1] == []
    assert fleet.sql("SELECT count(*) FROM soloist.run WHERE status = 'running'") == [(0,)]
