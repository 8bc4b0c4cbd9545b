"""SIGTERM: nothing new, bodies go on until the drain is over, then their runs are handed back; nothing is left."""

from __future__ import annotations

import signal

import pooler
import pytest
from replicas import Fleet, eventually, jobs_file, once


def _entry(fleet: Fleet, **fields: object) -> dict[str, object]:
    args = {"path": str(fleet.effects), "gate": str(fleet.gate), "slow": [1]}
    entry = {"call": "effects:hold", **once(), "args": args}
    return {**entry, **fields}


def _begun(fleet: Fleet) -> None:
    eventually(lambda: fleet.lines("begin"), "the body begins")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_replica_stops_at_once_and_leaves_nothing(fleet: Fleet, number: signal.Signals) -> None:
    replica = fleet.start(jobs_file(work=_entry(fleet, misfire={})), drain=60.0).ready()
    replica.signal(number)
    assert replica.ended(15) == 0
    assert fleet.sql("SELECT stopped_at IS NOT NULL FROM soloist.replica") == [(True,)]
    assert replica.events("ReplicaStopped", handed_back=0)
    assert not fleet.strays()
    ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'soloist%%'"
    kept = " AND state <> 'idle'" if pooler.mode() else ""  # a pooler keeps its own connections, and our name on them
    ours += " AND datname = current_database()"
    eventually(lambda: fleet.sql(ours + kept) == [(0,)], "the server has seen its sessions go", 15)


@pytest.mark.case("C058")
@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_a_body_that_ends_within_the_drain_succeeds(fleet: Fleet, isolation: str) -> None:
    """The lease is shorter than the wait: renewals go on until the body has ended."""
    jobs = jobs_file(work=_entry(fleet, isolation=isolation))
    replica = fleet.start(jobs, drain=60.0, lease=8.0).ready()
    _begun(fleet)
    fleet.start(jobs).ready()
    replica.signal(signal.SIGTERM)
    eventually(lambda: replica.events("ReplicaDraining", running=1), "it drains")
    ((until,),) = fleet.sql("SELECT claimed_until FROM soloist.run")
    eventually(lambda: fleet.sql("SELECT now() > %s + interval '1 s'", until) == [(True,)], "more than a lease passes")
    assert fleet.statuses("work") == [("running", 1)]
    fleet.gate.touch()
    assert replica.ended() == 0
    assert fleet.statuses("work") == [("succeeded", 1)]
    assert replica.events("ReplicaStopped", handed_back=0)


@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_a_body_longer_than_the_drain_is_handed_back_at_no_cost(fleet: Fleet, isolation: str) -> None:
    jobs = jobs_file(work=_entry(fleet, isolation=isolation))
    first = fleet.start(jobs, drain=0.5, lease=600.0).ready()
    _begun(fleet)
    first.signal(signal.SIGTERM)
    assert first.ended(20) == 0
    assert first.events("ReplicaStopped", handed_back=1)
    assert fleet.sql("SELECT status, attempt, crashes, retries_left, claimed_by FROM soloist.run") == [
        ("queued", 1, 0, 0, None)
    ]
    second = fleet.start(jobs, lease=600.0)
    eventually(
        lambda: fleet.statuses("work") == [("succeeded", 2)], "another replica finishes it, with no lease to wait for"
    )
    assert fleet.outcomes("work") == [(1, "handed_back", first.name), (2, "succeeded", second.name)]


def test_a_body_that_ends_by_itself_after_the_drain_is_not_counted_as_handed_back(fleet: Fleet) -> None:
    """It does not look whether it should stop, and nobody can end a thread: what counts is what was written."""
    args = {"path": str(fleet.effects), "hold": 1.0}
    entry = {"call": "toil:keyed", **once(), "isolation": "thread", "args": args}
    replica = fleet.start(jobs_file(work=entry), drain=0.2).ready()
    eventually(lambda: fleet.lines("work"), "the body begins")
    replica.signal(signal.SIGTERM)
    assert replica.ended(40) == 0
    assert fleet.statuses("work") == [("succeeded", 1)]
    assert replica.events("ReplicaStopped", handed_back=0)


def test_at_most_once_is_lost_when_its_replica_has_to_go(fleet: Fleet) -> None:
    replica = fleet.start(jobs_file(work=_entry(fleet, after_crash="fail")), drain=0.5).ready()
    _begun(fleet)
    replica.signal(signal.SIGTERM)
    assert replica.ended(20) == 0
    assert fleet.statuses("work") == [("lost", 1)]


def test_a_second_signal_is_in_a_hurry(fleet: Fleet) -> None:
    replica = fleet.start(jobs_file(work=_entry(fleet)), drain=3600.0).ready()
    _begun(fleet)
    replica.signal(signal.SIGTERM)
    eventually(lambda: replica.events("ReplicaDraining"), "it drains")
    assert replica.exit_code is None
    replica.signal(signal.SIGTERM)
    assert replica.ended(20) == 0
    assert fleet.statuses("work") == [("queued", 1)]


def test_ticks_stop_at_once(fleet: Fleet) -> None:
    tick = {"call": "effects:append", "every": "200ms", "isolation": "thread", "args": {"path": str(fleet.effects)}}
    replica = fleet.start(jobs_file(work=_entry(fleet), tick={**tick, "overlap": "allow"}), drain=60.0).ready()
    _begun(fleet)
    eventually(lambda: fleet.lines("tick"), "it ticks")
    replica.signal(signal.SIGTERM)
    eventually(lambda: replica.events("ReplicaDraining"), "it drains")
    ((last,),) = fleet.sql("SELECT max(created_at) FROM soloist.run")
    eventually(lambda: fleet.sql("SELECT now() > %s + interval '2 s'", last) == [(True,)], "ten ticks' time passes")
    assert fleet.sql("SELECT max(created_at) FROM soloist.run") == [(last,)]
    fleet.gate.touch()
    assert replica.ended() == 0


def test_a_signal_during_the_start_is_not_lost(fleet: Fleet) -> None:
    """The plan cannot be put in force yet: the start waits for a lock."""
    import psycopg

    fleet.apply(jobs_file(work=_entry(fleet, misfire={})))
    with psycopg.connect(fleet.url) as other:
        other.execute("LOCK TABLE soloist.config IN EXCLUSIVE MODE")
        replica = fleet.start(jobs_file(work=_entry(fleet, misfire={})))
        waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'soloist.config'::regclass"
        eventually(lambda: fleet.sql(waits), "it waits for the lock")
        replica.signal(signal.SIGTERM)
    assert replica.ended(20) == 0
