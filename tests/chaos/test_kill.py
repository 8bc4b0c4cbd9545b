"""kill -9: the run goes on elsewhere, once, and nothing of the dead replica is left."""

from __future__ import annotations

import os
import signal

import pytest
from replicas import Fleet, eventually, jobs_file, once


def _job(fleet: Fleet, **fields: object) -> str:
    """One run, wanted at once; its first attempt holds until the gate opens, later ones do not."""
    args = {"path": str(fleet.effects), "gate": str(fleet.gate), "slow": [1]}
    entry = {"call": "effects:hold", **once(), "args": args}
    return jobs_file(work={**entry, **fields})


def _begun(fleet: Fleet) -> list[str]:
    return eventually(lambda: fleet.lines("begin"), "the body begins")[0]


@pytest.mark.case("C054")
@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_a_killed_replicas_run_goes_on_elsewhere(fleet: Fleet, isolation: str) -> None:
    jobs = _job(fleet, isolation=isolation)
    for _ in range(2):
        fleet.start(jobs).ready()
    _begun(fleet)
    owner = fleet.owner_of("work")
    owner.signal(signal.SIGKILL)
    eventually(lambda: fleet.statuses("work") == [("succeeded", 2)], "attempt 2 succeeds elsewhere")
    survivor = next(one for one in fleet.replicas if one is not owner)
    assert fleet.outcomes("work") == [(1, "lease_lost", owner.name), (2, "succeeded", survivor.name)]
    assert [line[3] for line in fleet.lines("begin")] == ["1", "2"]
    assert [line[3] for line in fleet.lines("end")] == ["2"]
    assert len(survivor.events("RunTakenOver", owner=owner.name, status="queued")) == 1


def test_a_killed_replica_takes_its_children_with_it(fleet: Fleet) -> None:
    owner = fleet.start(_job(fleet), lease=600.0).ready()  # no deadline ends them
    child = int(_begun(fleet)[4])
    assert child in {process.pid for process in owner.children()}
    owner.signal(signal.SIGKILL)
    eventually(lambda: not fleet.strays(), "zygote and children are gone")


@pytest.mark.case("C054")
def test_a_replica_that_is_alone_goes_on_with_its_run_when_it_is_started_again(fleet: Fleet) -> None:
    jobs = _job(fleet)
    fleet.start(jobs).ready()
    _begun(fleet)
    fleet.replicas[0].signal(signal.SIGKILL)
    fleet.start(jobs)
    eventually(lambda: fleet.statuses("work") == [("succeeded", 2)], "the same tick's run succeeds")


@pytest.mark.case("C054")
def test_at_most_once_is_lost_when_its_replica_is_killed(fleet: Fleet) -> None:
    jobs = _job(fleet, after_crash="fail")
    for _ in range(2):
        fleet.start(jobs).ready()
    _begun(fleet)
    fleet.owner_of("work").signal(signal.SIGKILL)
    eventually(lambda: fleet.statuses("work") == [("lost", 1)], "the run is lost")
    assert len(fleet.lines("begin")) == 1


def test_a_killed_child_is_seen_at_once_and_costs_no_wait(fleet: Fleet) -> None:
    """The lease is long: what brings attempt 2 is the child's own death."""
    fleet.start(_job(fleet), lease=600.0).ready()
    os.kill(int(_begun(fleet)[4]), signal.SIGKILL)
    eventually(lambda: fleet.statuses("work") == [("succeeded", 2)], "attempt 2 succeeds", 30)
    assert [outcome for _, outcome, _ in fleet.outcomes("work")] == ["crashed", "succeeded"]
    ((error,),) = fleet.sql("SELECT error_text FROM soloist.attempt WHERE outcome = 'crashed'")
    assert "SIGKILL" in error
    assert fleet.sql("SELECT crashes, retries_left FROM soloist.run") == [(1, 0)]


def test_at_most_once_is_lost_when_its_child_is_killed(fleet: Fleet) -> None:
    fleet.start(_job(fleet, after_crash="fail"), lease=600.0).ready()
    os.kill(int(_begun(fleet)[4]), signal.SIGKILL)
    eventually(lambda: fleet.statuses("work") == [("lost", 1)], "the run is lost", 30)
    assert len(fleet.lines("begin")) == 1


def test_a_job_that_kills_its_process_each_time_ends_as_failed(fleet: Fleet) -> None:
    args = {"path": str(fleet.effects)}
    entry = {"call": "effects:leave", **once(), "args": args}
    fleet.start(jobs_file(work={**entry, "retry": {"backoff": "200ms"}})).ready()
    eventually(lambda: fleet.statuses("work") == [("failed", 3)], "three crashes are enough")
    assert [outcome for _, outcome, _ in fleet.outcomes("work")] == ["crashed"] * 3
    assert len(fleet.lines("begin")) == 3
    ((text, code),) = fleet.sql("SELECT error_text, exit_code FROM soloist.attempt WHERE number = 3")
    assert "exit code 3" in text
    assert code == 3
