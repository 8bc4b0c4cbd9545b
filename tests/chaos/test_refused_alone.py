"""A server that refuses new sessions and keeps the old ones: the others' sessions stand, and they see an owner go.

Then its trust window must not let the owner's body live on: others take the run long before that is over.
"""

from __future__ import annotations

import os
import signal
import threading

import psutil
import psycopg
from cluster import Postgres
from proxy import Proxy
from replicas import Fleet, Replica, eventually, jobs_file, once
from sessions import keeper_of
from side_by_side import side_by_side


def _jobs(fleet: Fleet) -> str:
    args = {"path": str(fleet.effects), "gate": str(fleet.gate)}
    return jobs_file(work={"call": "effects:hold", **once(), "args": args, "crash_limit": 100})


def _owner_and_observer(fleet: Fleet, proxy: Proxy) -> tuple[Replica, int]:
    """The owner by its own way, another replica that has seen it renew; the owner's body's pid."""
    owner = fleet.start(_jobs(fleet), "owner", url=proxy.url, lease=30.0).ready()
    child = int(eventually(lambda: fleet.lines("begin"), "the body begins")[0][4])
    fleet.start(_jobs(fleet), "observer", lease=30.0).ready()
    renewed = "SELECT claimed_until FROM soloist.run"
    for _ in range(3):
        seen = fleet.sql(renewed)
        eventually(lambda seen=seen: fleet.sql(renewed) != seen, "the owner renews")
    return owner, child


def test_a_server_that_shuts_down_when_all_have_left(postgres_fleet: Fleet, postgres: Postgres) -> None:
    """A smart shutdown: who is in stays in, who comes is told that the server shuts down."""
    fleet = postgres_fleet
    with Proxy(postgres.url) as proxy:
        owner, child = _owner_and_observer(fleet, proxy)
        backend = keeper_of(fleet, owner)
        with psycopg.connect(postgres.url, autocommit=True) as person:
            os.kill(int(postgres.pid() or 0), signal.SIGTERM)
            eventually(lambda: _refused(postgres), "nobody new is let in")
            person.execute("SELECT pg_terminate_backend(%s)", [backend])
            _somebody_gives_way(fleet, child)
        assert side_by_side(fleet) == []
    postgres.close()


def _somebody_gives_way(fleet: Fleet, child: int) -> None:
    """Wait until the owner's body has ended, or another has begun: then both write for a while."""
    eventually(lambda: len(fleet.lines("begin")) == 2 or not psutil.pid_exists(child), "somebody gives way")
    threading.Event().wait(0.5)


def _refused(postgres: Postgres) -> bool:
    try:
        psycopg.connect(postgres.url).close()
    except psycopg.OperationalError as error:
        return "shutting down" in str(error)
    return False


def _tries(postgres: Postgres) -> int:
    """How often a dedicated session has connected: one that cannot write is left at once."""
    said = postgres.log.read_text(errors="replace").splitlines()
    return len([line for line in said if "authorized" in line and "soloist keeper" in line])


def test_a_server_that_is_read_only_for_a_moment(postgres_fleet: Fleet, postgres: Postgres) -> None:
    """Sessions that only read are not disturbed by it: what they have seen still counts when it is over."""
    fleet = postgres_fleet
    with Proxy(postgres.url) as proxy:
        postgres.sql("ALTER SYSTEM SET log_connections = 'on'", "SELECT pg_reload_conf()")
        owner, child = _owner_and_observer(fleet, proxy)
        postgres.sql("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
        eventually(lambda: owner.events("PresenceLost"), "the owner cannot renew")
        tried = _tries(postgres)
        eventually(lambda: _tries(postgres) >= tried + 2, "and is not let in again")
        proxy.stall()  # nor does it hear that this is over
        with psycopg.connect(postgres.url, autocommit=True, options="-c default_transaction_read_only=off") as person:
            person.execute("ALTER SYSTEM RESET default_transaction_read_only")
            person.execute("SELECT pg_reload_conf()")
        _somebody_gives_way(fleet, child)
        proxy.flow()
        fleet.gate.touch()
        eventually(lambda: [status for status, _ in fleet.statuses("work")] == ["succeeded"], "the run succeeds")
        assert side_by_side(fleet) == []
