"""A dead owner is overtaken at once, a frozen one only by its lease, and one that lost its session stops in time."""

from __future__ import annotations

import random
import signal
import threading
from contextlib import suppress
from datetime import datetime
from typing import Any

import psutil
import pytest
from pooler import direct
from proxy import Proxy
from replicas import Fleet, eventually, jobs_file, once
from sessions import NAMES, holder, keeper_of, presence_key, terminate, terminate_all
from side_by_side import side_by_side

pytestmark = pytest.mark.own_session


def _jobs(fleet: Fleet, **fields: object) -> str:
    args = {"path": str(fleet.effects), "gate": str(fleet.gate), "slow": [1]}
    entry = {"call": "effects:hold", **once(), "args": args, "crash_limit": 100}
    return jobs_file(work={**entry, **fields})


def _held_at_any_attempt(fleet: Fleet) -> str:
    return _jobs(fleet, args={"path": str(fleet.effects), "gate": str(fleet.gate)})


def _child(fleet: Fleet) -> int:
    """The pid of the first body."""
    return int(eventually(lambda: fleet.lines("begin"), "the body begins")[0][4])


def _until(fleet: Fleet) -> datetime:
    """When the lease of the first attempt is over, as it stands."""
    rows = fleet.sql("SELECT claimed_until FROM soloist.run WHERE status = 'running' AND attempt = 1")
    assert rows, f"attempt 1 is over: {fleet.sql('SELECT status, attempt, last_error FROM soloist.run')}"
    return rows[0][0]


def _renewed(fleet: Fleet, times: int = 3) -> None:
    """Let the owner renew so often: the others have seen it meanwhile."""
    for _ in range(times):
        seen = _until(fleet)
        eventually(lambda seen=seen: _until(fleet) > seen, "the owner renews")


def _second_attempt(fleet: Fleet) -> datetime:
    """When attempt 2 began, by the database's clock; it has succeeded."""
    eventually(lambda: fleet.statuses("work") == [("succeeded", 2)], "attempt 2 succeeds elsewhere")
    ((at,),) = eventually(lambda: fleet.sql("SELECT started_at FROM soloist.attempt WHERE number = 2"), "its line")
    return at


def _taken_over(fleet: Fleet) -> list[Any]:
    return [event["how"] for replica in fleet.replicas for event in replica.events("RunTakenOver")]


def test_a_killed_owner_is_overtaken_long_before_its_lease_ends(fleet: Fleet) -> None:
    for _ in range(2):
        fleet.start(_jobs(fleet), lease=30.0).ready()
    _child(fleet)
    _renewed(fleet)
    owner = fleet.owner_of("work")
    owner.signal(signal.SIGKILL)
    until = _until(fleet)
    assert (until - _second_attempt(fleet)).total_seconds() > 10
    assert _taken_over(fleet) == ["presence"]
    assert side_by_side(fleet) == []


def test_who_never_saw_the_owner_waits_for_its_lease(fleet: Fleet) -> None:
    """A lock that is not there may be one that this observer could not see: only its disappearance says something."""
    fleet.start(_jobs(fleet), lease=6.0).ready()
    _child(fleet)
    owner = fleet.owner_of("work")
    owner.signal(signal.SIGKILL)
    until = _until(fleet)
    owner.ended()
    fleet.start(_jobs(fleet), lease=6.0)
    assert _second_attempt(fleet) > until
    assert _taken_over(fleet) == ["lease"]


@pytest.mark.parametrize("ended", [NAMES, ("soloist keeper",)], ids=["all", "dedicated"])
def test_what_was_seen_on_an_earlier_session_does_not_count(fleet: Fleet, ended: tuple[str, ...]) -> None:
    """The server may have been another one in between, or the same one restarted: all locks are gone then.

    Where a pooler keeps the session that looks, the end of the dedicated one tells.
    """
    for _ in range(2):
        fleet.start(_jobs(fleet), lease=10.0).ready()
    _child(fleet)
    _renewed(fleet)
    owner = fleet.owner_of("work")
    until = _until(fleet)
    (other,) = (replica for replica in fleet.replicas if replica is not owner)
    other.signal(signal.SIGSTOP)  # it must not see the owner go before its own session does
    owner.signal(signal.SIGKILL)
    terminate_all(fleet, *ended)
    other.signal(signal.SIGCONT)
    assert _second_attempt(fleet) > until
    assert _taken_over(fleet) == ["lease"]


@pytest.mark.parametrize("frozen", ["replica", "group"])
def test_a_frozen_owner_is_overtaken_by_its_lease_alone(fleet: Fleet, frozen: str) -> None:
    for _ in range(2):
        fleet.start(_jobs(fleet), lease=6.0).ready()
    child = _child(fleet)
    _renewed(fleet)
    owner = fleet.owner_of("work")
    tree = owner.children()
    owner.signal(signal.SIGSTOP)
    if frozen == "group":
        for process in tree:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
    until = _until(fleet)
    assert _second_attempt(fleet) > until
    assert _taken_over(fleet) == ["lease"]
    for process in tree:
        with suppress(psutil.NoSuchProcess):
            process.resume()
    owner.signal(signal.SIGCONT)
    eventually(lambda: not psutil.pid_exists(child), "its child is gone", 20)
    eventually(lambda: owner.events("WriteFenced"), "its outcome is refused")
    assert not [line for line in fleet.lines("end") if line[3] == "1"]


def test_the_child_of_a_frozen_owner_dies_with_its_session(fleet: Fleet) -> None:
    """The owner cannot act: the zygote watches the session's socket for it. Else two bodies would run."""
    for _ in range(2):
        fleet.start(_jobs(fleet), lease=30.0).ready()
    child = _child(fleet)
    _renewed(fleet)
    owner = fleet.owner_of("work")
    backend = keeper_of(fleet, owner)
    owner.signal(signal.SIGSTOP)
    until = _until(fleet)
    terminate(fleet, backend)
    at = _second_attempt(fleet)
    assert not psutil.pid_exists(child)
    assert (until - at).total_seconds() > 10
    assert _taken_over(fleet) == ["presence"]
    assert side_by_side(fleet) == []
    owner.signal(signal.SIGCONT)
    eventually(lambda: owner.events("WriteFenced", "LeaseLostEvent"), "the owner wakes and sees it")
    assert owner.exit_code is None


def test_an_owner_that_stands_again_in_time_goes_on(fleet: Fleet) -> None:
    """The lock died, the job did not: the row is still its, and nobody else may have it.

    It has one renewal's time for that. A machine that is too busy for it stops the body and makes a new attempt, which
    is right too; it must not be so each time.
    """
    for _ in range(2):
        fleet.start(_held_at_any_attempt(fleet), lease=30.0).ready()
    _child(fleet)
    survived = 0
    for _ in range(4):
        owner = fleet.owner_of("work")
        backend, before = keeper_of(fleet, owner), fleet.statuses("work")
        told = len(owner.events("PresenceRegained"))
        terminate(fleet, backend)
        eventually(lambda owner=owner, told=told: len(owner.events("PresenceRegained")) > told, "it stands again")
        assert keeper_of(fleet, owner) != backend
        bodies = len(fleet.lines("begin"))
        renewed = fleet.sql("SELECT claimed_until FROM soloist.run")
        eventually(lambda renewed=renewed: fleet.sql("SELECT claimed_until FROM soloist.run") != renewed, "it goes on")
        eventually(lambda: [status for status, _ in fleet.statuses("work")] == ["running"], "it runs")
        survived += (before, bodies) == (fleet.statuses("work"), len(fleet.lines("begin")))
    assert survived
    fleet.gate.touch()
    eventually(lambda: [status for status, _ in fleet.statuses("work")] == ["succeeded"], "the run succeeds")
    assert side_by_side(fleet) == []


@pytest.mark.case("C042")
@pytest.mark.parametrize("whose", ["the owner's dedicated one", "all of everybody"])
def test_sessions_ended_again_and_again_never_make_two_bodies_at_once(fleet: Fleet, whose: str) -> None:
    for _ in range(3):
        fleet.start(_held_at_any_attempt(fleet), lease=8.0).ready()
    _child(fleet)
    keys = {presence_key(fleet, replica) for replica in fleet.replicas}
    pause, chance, ended = threading.Event(), random.Random(20261130), 0
    for round_ in range(24):
        # bursts that keep the owner from standing again, and calm in which somebody begins anew
        pause.wait(chance.uniform(0.02, 0.12) if round_ % 12 < 9 else chance.uniform(2.0, 3.0))
        if whose == "all of everybody":
            ended += terminate_all(fleet, *NAMES)
            continue
        for backend in [holder(fleet, key) for key in keys]:
            if backend is not None:
                terminate(fleet, backend)
                ended += 1
    fleet.gate.touch()
    eventually(lambda: [status for status, _ in fleet.statuses("work")] == ["succeeded"], "the run ends")
    assert side_by_side(fleet) == []
    assert ended > 20
    ((attempt,),) = fleet.sql("SELECT attempt FROM soloist.run")
    assert len(fleet.lines("end")) == 1
    assert [number for number, *_ in fleet.outcomes("work")] == list(range(1, attempt + 1))
    for replica in fleet.replicas:
        assert replica.exit_code is None, replica.said()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_of_postgresql_costs_no_run(postgres_fleet: Fleet, postgres: Any, mode: str) -> None:
    """It is away for longer than a renewal: refused as everybody is, the owner goes by its trust window.

    It has to have been refused within one renewal. A machine that is too busy for that stops the body and makes a new
    attempt, which is right too; it must not be so each time.
    """
    fleet = postgres_fleet
    for _ in range(3):
        fleet.start(_held_at_any_attempt(fleet), lease=20.0).ready()
    eventually(lambda: fleet.lines("begin"), "the body begins")
    survived = 0
    for _ in range(4):
        eventually(lambda: [status for status, _ in fleet.statuses("work")] == ["running"], "it runs")
        before, bodies = fleet.statuses("work"), len(fleet.lines("begin"))
        postgres.stop(mode)
        threading.Event().wait(1.5)  # longer than the renewal interval: the outage's length is what is tested
        postgres.start()
        seen = len(fleet.lines("beat"))
        renewed = fleet.sql("SELECT claimed_until FROM soloist.run")
        eventually(lambda renewed=renewed: fleet.sql("SELECT claimed_until FROM soloist.run") != renewed, "it goes on")
        eventually(lambda seen=seen: len(fleet.lines("beat")) > seen, "a body works")
        survived += (before, bodies) == (fleet.statuses("work"), len(fleet.lines("begin")))
    fleet.gate.touch()
    eventually(lambda: [status for status, _ in fleet.statuses("work")] == ["succeeded"], "the run succeeds")
    assert survived
    assert side_by_side(fleet) == []


def test_an_owner_whose_way_is_cut_stops_before_another_begins(fleet: Fleet) -> None:
    """Refused, but by something in between: the server itself may be well, and the others see the lock go."""
    jobs = _held_at_any_attempt(fleet)
    with Proxy(direct(fleet.url)) as proxy:
        fleet.start(jobs, "cut-off", url=proxy.url, direct_database_url=proxy.url, lease=30.0).ready()
        child = _child(fleet)
        other = fleet.start(jobs, "other", lease=30.0).ready()
        _renewed(fleet)
        proxy.refuse()
        proxy.cut()
        eventually(lambda: len(fleet.lines("begin")) == 2, "the other goes on with it")
        assert not psutil.pid_exists(child)
        assert other.events("RunTakenOver")[0]["how"] == "presence"
        proxy.admit()
        fleet.gate.touch()
        eventually(lambda: fleet.statuses("work") == [("succeeded", 2)], "attempt 2 succeeds")
    assert side_by_side(fleet) == []


def test_ways_cut_again_and_again_never_make_two_bodies_at_once(fleet: Fleet) -> None:
    jobs = _held_at_any_attempt(fleet)
    with Proxy(direct(fleet.url)) as one, Proxy(direct(fleet.url)) as two:
        proxies = (one, two)
        for proxy in proxies:
            fleet.start(jobs, url=proxy.url, direct_database_url=proxy.url, lease=8.0).ready()
        _child(fleet)
        pause, chance = threading.Event(), random.Random(20261202)
        for _ in range(20):
            proxy = chance.choice(proxies)
            match chance.choice(("cut", "refuse", "stall")):
                case "cut":
                    proxy.cut()
                case "refuse":
                    proxy.refuse()
                    proxy.cut()
                case "stall":
                    proxy.stall()
            pause.wait(chance.uniform(0.05, 2.0))
            proxy.admit()
            proxy.flow()
        fleet.gate.touch()
        eventually(lambda: [status for status, _ in fleet.statuses("work")] == ["succeeded"], "the run ends")
        assert side_by_side(fleet) == []
        for replica in fleet.replicas:
            assert replica.exit_code is None, replica.said()
            replica.signal(signal.SIGTERM)
            assert replica.ended() == 0
