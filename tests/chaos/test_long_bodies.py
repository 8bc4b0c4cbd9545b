"""A body longer than its lease stays its owner's: busy, deaf, in a drain, and while neighbours come and go."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from replicas import Fleet, Replica, eventually, jobs_file, once

LEASE = 4.0  # a machine that stands still for two seconds ends nobody's body


def _held(fleet: Fleet, **fields: object) -> dict[str, Any]:
    args = {"path": str(fleet.effects), "gate": str(fleet.gate), "slow": [1]}
    return {"call": "effects:hold", **once(), "args": args, **fields}


def _begun(fleet: Fleet) -> None:
    eventually(lambda: fleet.lines("begin"), "the body begins")


def _leases_pass(fleet: Fleet, leases: float) -> None:
    """So many leases of the run's first claim are over, by the database's clock."""
    over = "SELECT clock_timestamp() > started_at + make_interval(secs => %s) FROM soloist.run"
    eventually(lambda: fleet.sql(over, leases * LEASE) == [(True,)], f"{leases:g} leases pass")


def _undisturbed(fleet: Fleet, job: str = "work", outcome: str = "succeeded") -> None:
    """One attempt, one body, nobody took it over, no write was refused."""
    eventually(lambda: fleet.statuses(job) == [(outcome, 1)], f"attempt 1 has {outcome}", 90)
    assert len(fleet.lines("begin")) == 1
    for replica in fleet.replicas:
        found = replica.events("RunTakenOver", "LeaseLostEvent", "WriteFenced", "EngineFailed")
        assert not found, (replica.name, found)


@pytest.mark.case("C055")
@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_a_body_longer_than_its_lease_runs_once(fleet: Fleet, isolation: str) -> None:
    """Death is a missed renewal, never an age."""
    jobs = jobs_file(work=_held(fleet, isolation=isolation))
    for _ in range(3):
        fleet.start(jobs, lease=LEASE).ready()
    _begun(fleet)
    _leases_pass(fleet, 2.5)
    assert fleet.sql("SELECT claimed_until > clock_timestamp() FROM soloist.run") == [(True,)], "it is renewed"
    fleet.gate.touch()
    _undisturbed(fleet)


@pytest.mark.case("C055")
@pytest.mark.parametrize(("timeout", "lease"), [("3s", 15.0), ("5s", LEASE)], ids=["inside the lease", "beyond it"])
def test_a_timeout_and_a_lease_do_not_mind_each_other(fleet: Fleet, timeout: str, lease: float) -> None:
    jobs = jobs_file(work=_held(fleet, timeout=timeout))
    for _ in range(2):
        fleet.start(jobs, lease=lease).ready()
    _undisturbed(fleet, outcome="timed_out")
    assert [outcome for _, outcome, _ in fleet.outcomes("work")] == ["timed_out"]


def _toil(fleet: Fleet, call: str, **fields: Any) -> str:
    args = {"path": str(fleet.effects), **fields.pop("args")}
    return jobs_file(work={"call": f"toil:{call}", **once(), "args": args, **fields})


@pytest.mark.case("C057")
@pytest.mark.parametrize(
    ("isolation", "threads"),
    [("process", 1), ("thread", 1), pytest.param("thread", 8, marks=pytest.mark.full)],
)
def test_a_body_that_burns_starves_no_renewal(fleet: Fleet, isolation: str, threads: int) -> None:
    """In the replica's own process the body and the renewals share one interpreter lock."""
    jobs = _toil(fleet, "burn", isolation=isolation, args={"seconds": 2 * LEASE, "threads": threads})
    for _ in range(2):
        fleet.start(jobs, lease=LEASE).ready()
    _undisturbed(fleet)


@pytest.mark.case("C057")
def test_a_body_that_never_lets_go_of_the_interpreter_starves_no_renewal(fleet: Fleet) -> None:
    """Its interpreter is its own: that is what processes are the default for."""
    jobs = _toil(fleet, "clutch", args={"seconds": 2 * LEASE})
    for _ in range(2):
        fleet.start(jobs, lease=LEASE).ready()
    _undisturbed(fleet)


@pytest.mark.case("C057")
def test_one_that_clutches_its_replicas_own_interpreter_is_overtaken_and_commits_nothing(fleet: Fleet) -> None:
    """In a thread nothing can help it. What counts: of two bodies only one has an outcome."""
    jobs = _toil(fleet, "clutch", isolation="thread", args={"seconds": 4 * LEASE})
    for _ in range(2):
        fleet.start(jobs, lease=LEASE).ready()
    eventually(lambda: fleet.statuses("work") == [("succeeded", 2)], "attempt 2 succeeds elsewhere")
    eventually(lambda: len(fleet.lines("end")) == 2, "the first body comes to its end")
    eventually(lambda: any(one.events("WriteFenced") for one in fleet.replicas), "its outcome is refused")
    assert [outcome for _, outcome, _ in fleet.outcomes("work")] == ["lease_lost", "succeeded"]


@pytest.fixture
def busy_host() -> Iterator[None]:
    """More that wants to run than the machine has processors, for as long as a few leases."""
    burn = f"import time; end = time.monotonic() + {3 * LEASE}\nwhile time.monotonic() < end: pass"
    started = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(8)]
    yield
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.full
@pytest.mark.case("C057")
@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_a_busy_host_starves_no_renewal(fleet: Fleet, isolation: str, request: pytest.FixtureRequest) -> None:
    jobs = jobs_file(work=_held(fleet, isolation=isolation))
    for _ in range(2):
        fleet.start(jobs, lease=2 * LEASE).ready()
    _begun(fleet)
    request.getfixturevalue("busy_host")
    _leases_pass(fleet, 5)
    fleet.gate.touch()
    _undisturbed(fleet)


@pytest.mark.case("C058")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_renewals_go_on_in_a_drain_until_the_last_body_has_ended(fleet: Fleet, number: signal.Signals) -> None:
    """One of two bodies ends at once: the other is kept all the same, beside a replica that would take it over."""
    brief = {"call": "effects:nap", **once(), "args": {"path": str(fleet.effects), "seconds": 1.0}}
    jobs = jobs_file(work=_held(fleet), brief=brief)
    owner = fleet.start(jobs, lease=LEASE, drain=60.0).ready()
    _begun(fleet)
    eventually(lambda: fleet.lines("brief"), "the other body begins")
    fleet.start(jobs, lease=LEASE).ready()
    owner.signal(number)
    eventually(lambda: fleet.statuses("brief") == [("succeeded", 1)], "the short one ends")
    over = (
        "SELECT clock_timestamp() > finished_at + make_interval(secs => %s) FROM soloist.run WHERE status <> 'running'"
    )
    eventually(lambda: fleet.sql(over, 2 * LEASE) == [(True,)], "two leases pass")
    assert fleet.statuses("work") == [("running", 1)]
    fleet.gate.touch()
    assert owner.ended() == 0
    _undisturbed(fleet)


def _come_and_go(fleet: Fleet, jobs: str, name: str | None, number: signal.Signals) -> Replica:
    known = "SELECT count(*) FROM soloist.replica WHERE name = %s"
    before = 0 if name is None else fleet.sql(known, name)[0][0]
    come = fleet.start(jobs, name, lease=LEASE)
    eventually(lambda: fleet.sql(known, come.name) == [(before + 1,)], "it is registered")
    eventually(
        lambda: len(come.events("ReplicaStarted")) == before + 1, "it has started"
    )  # a namesake's journal is one
    come.signal(number)
    come.ended()
    return come


@pytest.mark.case("C062")
@pytest.mark.parametrize("overlap", ["skip", "allow"])
def test_neighbours_that_restart_leave_a_run_where_it_is(fleet: Fleet, overlap: str) -> None:
    """They start with an empty memory, one of them under the owner's own name, and find in the rows what runs."""
    jobs = jobs_file(work=_held(fleet, overlap=overlap, misfire={"first_sight": "run", "policy": "all"}))
    owner = fleet.start(jobs, lease=LEASE).ready()
    _begun(fleet)
    for name, number in [(None, signal.SIGTERM), (None, signal.SIGKILL), (owner.name, signal.SIGKILL)]:
        _come_and_go(fleet, jobs, name, number)
        assert fleet.statuses("work") == [("running", 1)]
    watching = fleet.start(jobs, lease=LEASE).ready()
    _leases_pass(fleet, 2.5)
    fleet.gate.touch()
    _undisturbed(fleet)
    assert owner.exit_code is None
    assert not watching.events("AttemptStarted")
