"""The server is away, restarts, ends sessions, is read-only: runs stay accounted for, and replicas recover alone."""

from __future__ import annotations

import random
import signal
import threading

import pooler
import psutil
import psycopg
import pytest
from cluster import Postgres
from pooler import direct
from proxy import Proxy
from pulse import accounted, begun, finished, plan, quiet, ticks_go_on
from replicas import Fleet, eventually, jobs_file, once
from sessions import NAMES, terminate_all
from side_by_side import side_by_side

LONG = pytest.param(180, marks=[pytest.mark.full, pytest.mark.timeout(400)])


@pytest.mark.parametrize("seconds", [15, LONG])
def test_an_outage(postgres_fleet: Fleet, postgres: Postgres, seconds: float) -> None:
    """`lost_contact: stop` ends the body with its lease and goes on later; `continue` lets it work through."""
    fleet = postgres_fleet
    path, gate = str(fleet.effects), str(fleet.gate)
    hold = {"call": "effects:hold", **once(), "args": {"path": path, "gate": gate}}
    tick = {"call": "effects:append", "every": "1s", "overlap": "allow", "isolation": "thread", "args": {"path": path}}
    jobs = jobs_file(
        stops=hold,
        goes_on={**hold, "lost_contact": "continue"},
        tick={**tick, "misfire": {"policy": "all", "limit": 1000}},
    )
    replica = fleet.start(jobs, lease=4.0).ready()
    eventually(lambda: len(fleet.lines("begin")) == 2 and len(fleet.lines("tick")) > 1, "all work")
    children = {line[1]: int(line[4]) for line in fleet.lines("begin")}
    postgres.stop()
    eventually(lambda: not psutil.pid_exists(children["stops"]), "the one that is to stop is stopped", 20)
    threading.Event().wait(seconds)  # the outage's length is what is tested
    assert psutil.pid_exists(children["goes-on"]), "the other works on, long after its lease"
    postgres.start()
    ticks_go_on(fleet, 3)
    eventually(lambda: len(fleet.lines("begin")) == 3, "what was stopped goes on")
    fleet.gate.touch()
    eventually(lambda: fleet.statuses("goes-on") == [("succeeded", 1)], "no second attempt was needed")
    eventually(lambda: fleet.statuses("stops") == [("succeeded", 2)], "its second attempt succeeds")
    for job in ("stops", "goes-on"):
        assert side_by_side(fleet, job) == []
    accounted(fleet, 1.0)
    quiet(replica)


def test_a_body_that_goes_on_and_was_overtaken_is_discarded(fleet: Fleet) -> None:
    """`continue` means that bodies may overlap; one result counts."""
    jobs = plan(fleet, lost_contact="continue")
    with Proxy(fleet.url) as proxy:
        cut_off = fleet.start(jobs, "cut-off", url=proxy.url, lease=4.0).ready()
        begun(fleet)
        other = fleet.start(jobs, "other", lease=4.0).ready()
        proxy.stall()
        eventually(lambda: other.events("RunTakenOver"), "the other takes over")
        eventually(lambda: len(fleet.lines("begin")) == 2, "and begins")
        assert other.events("RunTakenOver")[0]["how"] == "lease", "its session stands, as far as the server knows"
        proxy.flow()
        eventually(lambda: cut_off.events("LeaseLostEvent", "WriteFenced"), "it hears that it was overtaken")
        attempt = finished(fleet)
        assert attempt == 2
        assert fleet.outcomes("work")[-1] == (2, "succeeded", "other")
        eventually(lambda: cut_off.events("WriteFenced"), "its own outcome is refused")
    assert cut_off.exit_code is None


def test_a_replica_that_cannot_renew_does_not_take_its_own_run_for_a_dead_one_s(fleet: Fleet) -> None:
    """Its sweeper's session came back before its keeper's: it would end a body that was to go on."""
    with Proxy(direct(fleet.url)) as proxy:
        replica = fleet.start(plan(fleet, lost_contact="continue"), lease=4.0, direct_database_url=proxy.url).ready()
        begun(fleet)
        proxy.refuse()
        proxy.cut()
        over = (
            "SELECT 1 FROM soloist.run WHERE status = 'running' AND claimed_until < clock_timestamp() - interval '3 s'"
        )
        eventually(lambda: fleet.sql(over), "its lease is over for longer than a take-over takes")
        proxy.admit()
        eventually(lambda: not fleet.sql(over), "it renews again")
        assert finished(fleet) == 1
    assert replica.events("RunTakenOver", job="work") == []


@pytest.mark.case("C087")
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_restarts_one_after_another(postgres_fleet: Fleet, postgres: Postgres, mode: str) -> None:
    """Each connection is stale once after a restart: that costs no tick."""
    fleet = postgres_fleet
    for _ in range(2):
        fleet.start(plan(fleet), lease=20.0).ready()
    begun(fleet)
    for _ in range(3):
        postgres.restart(mode)
        ticks_go_on(fleet)
    finished(fleet)
    accounted(fleet)
    for replica in fleet.replicas:
        quiet(replica, 3 * len(NAMES))  # a session that was idle all along finds out when the outage is over


@pytest.mark.parametrize("names", [*((name,) for name in NAMES), NAMES], ids="+".join)
def test_sessions_ended_by_an_administrator_again_and_again(fleet: Fleet, names: tuple[str, ...]) -> None:
    for _ in range(2):
        fleet.start(plan(fleet), lease=10.0).ready()
    begun(fleet)
    pause, chance, rounds, ended = threading.Event(), random.Random(20261201), 15, 0
    for _ in range(rounds):
        pause.wait(chance.uniform(0.05, 0.6))
        # a pooler's connections have the name of whoever spoke last on them
        ended += terminate_all(fleet, *(NAMES if pooler.mode() else names))
    assert ended > rounds / 2
    ticks_go_on(fleet)
    finished(fleet)
    accounted(fleet)
    for replica in fleet.replicas:
        # who won no tick for these seconds had no outcome to write
        quiet(replica, len(names) * rounds, least=0 if names == ("soloist settler",) else 1)
    assert pooler.mode() or any(replica.events("DatabaseLost") for replica in fleet.replicas)


@pytest.mark.parametrize("how", ["for new sessions", "for all sessions"])
def test_a_server_that_is_read_only_for_a_while(postgres_fleet: Fleet, postgres: Postgres, how: str) -> None:
    """As after a failover that has left us on what is a standby now: a session that cannot write is a dead one."""
    fleet = postgres_fleet
    for _ in range(2):
        fleet.start(plan(fleet), lease=5.0).ready()
    begun(fleet)
    if how == "for all sessions":
        postgres.sql("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
    else:
        postgres.sql("ALTER DATABASE postgres SET default_transaction_read_only = on")
        terminate_all(fleet, *NAMES)
    for replica in fleet.replicas:
        eventually(lambda replica=replica: replica.events("DatabaseLost"), "it notices")
    states = "SELECT status, count(*) FROM soloist.run GROUP BY 1 ORDER BY 1"
    eventually(
        lambda: fleet.sql(states) == (threading.Event().wait(1.0), fleet.sql(states))[1], "nothing moves any more"
    )
    threading.Event().wait(6.0)  # longer than the lease: the state's length is what is tested
    with psycopg.connect(postgres.url, autocommit=True, options="-c default_transaction_read_only=off") as person:
        person.execute("ALTER SYSTEM RESET default_transaction_read_only")
        person.execute("ALTER DATABASE postgres RESET default_transaction_read_only")
        person.execute("SELECT pg_reload_conf()")
    ticks_go_on(fleet)
    finished(fleet)
    accounted(fleet)
    for replica in fleet.replicas:
        quiet(replica, 2)


@pytest.mark.case("C089")
def test_a_network_that_swallows_everything(fleet: Fleet) -> None:
    """No error, no answer: the call's deadline ends it, the body stops in time, the others take over."""
    with Proxy(fleet.url) as proxy:
        deaf = fleet.start(plan(fleet), "deaf", url=proxy.url, lease=6.0).ready()
        child = begun(fleet)
        fleet.start(plan(fleet), "other", lease=6.0).ready()
        proxy.stall()
        eventually(lambda: not psutil.pid_exists(child), "the body is stopped", 20)
        eventually(lambda: len(fleet.lines("begin")) == 2, "the other goes on with it")
        eventually(lambda: deaf.events("DatabaseLost"), "the deaf one notices")
        ticks_go_on(fleet)
        proxy.flow()
        eventually(lambda: deaf.events("DatabaseRegained"), "it recovers alone")
        assert finished(fleet) == 2
        accounted(fleet)
        quiet(deaf, 2)
        deaf.signal(signal.SIGTERM)
        assert deaf.ended() == 0
