"""A database that ends sessions which sit in a transaction: the engine never does, and a body that does is told so."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest
from replicas import Fleet, eventually, jobs_file, once
from sessions import NAMES

OURS = "application_name LIKE 'soloist%%'"


@pytest.fixture(autouse=True)
def impatient(fleet: Fleet) -> None:
    """Far shorter than any body here."""
    fleet.sql("CREATE TABLE public.effect (run uuid NOT NULL)")
    ((name,),) = fleet.sql("SELECT current_database()")
    fleet.sql(f"ALTER DATABASE {name} SET idle_in_transaction_session_timeout = '700ms'")


def _sample(fleet: Fleet) -> tuple[float, set[tuple[int, str]]]:
    """(seconds that the oldest transaction of ours is idle, which of ours hold vacuum back while idle, since when)."""
    rows = fleet.sql(
        "SELECT pid, state_change::text, state = 'idle' AND backend_xmin IS NOT NULL,"
        " CASE WHEN state LIKE 'idle in transaction%%'"
        " THEN extract(epoch FROM clock_timestamp() - state_change)::float8 ELSE 0 END"
        f" FROM pg_stat_activity WHERE {OURS}"
    )
    return max((idle for *_, idle in rows), default=0.0), {(pid, since) for pid, since, pins, _ in rows if pins}


def _sessions(fleet: Fleet) -> set[tuple[int, str]]:
    """Those that stand; one that put the plan in force may be on its way out."""
    return set(
        fleet.sql("SELECT pid, backend_start::text FROM pg_stat_activity WHERE application_name = ANY(%s)", list(NAMES))
    )


@pytest.mark.case("C050")
@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_a_body_of_many_timeouts_costs_no_session_and_no_second_run(fleet: Fleet, isolation: str) -> None:
    args = {"path": str(fleet.effects), "gate": str(fleet.gate), "slow": [1]}
    jobs = jobs_file(work={"call": "effects:hold", **once(), "isolation": isolation, "args": args})
    for _ in range(2):
        fleet.start(jobs, lease=15.0).ready()
    eventually(lambda: fleet.lines("begin"), "the body begins")
    backends = _sessions(fleet)
    ((begun_at,),) = fleet.sql("SELECT clock_timestamp()")
    pause, samples = threading.Event(), [_sample(fleet)]
    while not fleet.sql("SELECT 1 WHERE clock_timestamp() > %s + interval '5 s'", begun_at):
        samples.append(_sample(fleet))
        pause.wait(0.1)
    assert max(idle for idle, _ in samples) < 0.7, "a transaction of ours sat there"
    # in two samples: state and snapshot are not read at one instant
    pinned = [before & after for (_, before), (_, after) in itertools.pairwise(samples)]
    assert not any(pinned), "an idle session of ours holds vacuum back"
    assert backends <= _sessions(fleet)
    fleet.gate.touch()
    eventually(lambda: fleet.statuses("work") == [("succeeded", 1)], "attempt 1 succeeds")
    assert len(fleet.lines("begin")) == 1
    for replica in fleet.replicas:
        assert not replica.events("DatabaseLost", "RunTakenOver", "LeaseLostEvent")


@pytest.mark.case("C050")
@pytest.mark.parametrize("isolation", ["process", "thread"])
@pytest.mark.parametrize("attempts", [1, 2])
def test_a_body_that_sits_in_its_own_transaction_for_too_long_commits_nothing(
    fleet: Fleet, isolation: str, attempts: int
) -> None:
    """Its session goes, its lock with it: the attempt fails and says of what, and each further one begins afresh."""
    entry: dict[str, Any] = {"call": "effects:in_transaction", **once(), "isolation": isolation}
    retry = {"attempts": attempts, "backoff": "100ms"}
    jobs = jobs_file(work={**entry, "retry": retry, "args": {"path": str(fleet.effects), "seconds": 2.5}})
    fleet.start(jobs, lease=15.0).ready()
    eventually(lambda: fleet.statuses("work") == [("failed", attempts)], "it fails")
    assert fleet.sql("SELECT count(*) FROM public.effect") == [(0,)]
    assert [outcome for _, outcome, _ in fleet.outcomes("work")] == ["failed"] * attempts
    ((error,),) = fleet.sql("SELECT last_error FROM soloist.run")
    assert "idle-in-transaction timeout" in error or "terminating connection" in error or "closed" in error, error
