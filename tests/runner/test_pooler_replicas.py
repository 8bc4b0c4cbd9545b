"""Replicas behind PgBouncer: what is off is said once, polling does its work, and each tick still has one run."""

from __future__ import annotations

import itertools
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from local import Local
from pooler import Pooler, direct
from replicas import Fleet, Nursery, eventually, jobs_file, once
from scene import Scene

from scheduler.core.events import PoolerFound
from scheduler.store.locks import job_key, presence_key

TICKS = 30
ADVISORY = "SELECT classid::bigint << 32 | objid::bigint AS key FROM pg_locks WHERE locktype = 'advisory'"
DIRECT, POOLED = "SOLOIST_DIRECT_DATABASE_URL", "SOLOIST_DATABASE_URL"
Start = Callable[..., Local]


@pytest.fixture
def facts(pooled_url: str) -> Iterator[Scene]:
    scene = Scene(direct(pooled_url))
    yield scene
    scene.leave()


@pytest.fixture
def start(pooled_url: str) -> Iterator[Start]:
    """A replica in this process, behind the pooler."""
    made: list[Local] = []

    def begin(jobs: str, **settings: Any) -> Local:
        made.append(Local(pooled_url, jobs, **settings))
        return made[-1]

    yield begin
    for local in made:
        local.close()


@pytest.fixture
def crew(nursery: Nursery, tmp_path: Path, pooled_url: str) -> Iterator[Fleet]:
    """Replica processes behind the pooler."""
    made = Fleet(nursery, tmp_path, pooled_url)
    yield made
    made.close()


def _manual(path: Path, **fields: Any) -> dict[str, Any]:
    return {"call": "effects:append", "isolation": "thread", "args": {"path": str(path / "seen")}, **fields}


def _locks(facts: Scene) -> set[int]:
    return {row["key"] for row in facts.sql(ADVISORY)}


def _enqueue(facts: Scene, job: str) -> None:
    """As another application does, without a notification: nobody here listens."""
    facts.sql(
        "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, ready_at)"
        " SELECT gen_random_uuid(), id, 'manual:1', now(), 'manual', 'queued', false, now()"
        " FROM soloist.job WHERE name = %s",
        job,
    )


def test_what_is_off_is_said_once(start: Start, facts: Scene, tmp_path: Path) -> None:
    local = start(jobs_file(a=_manual(tmp_path)))
    found = local.heard(PoolerFound)
    assert found.variable == POOLED
    for word in ("notifications", "presence", "leases"):
        assert word in found.consequence
    assert not _locks(facts), "no presence lock: it would belong to a connection that others are given, too"
    assert facts.sql("SELECT count(*) AS n FROM soloist.replica WHERE stopped_at IS NULL") == [{"n": 1}]
    local.close()
    assert len(local.of(PoolerFound)) == 1
    assert not _locks(facts)


def test_queued_work_starts_at_a_poll(start: Start, facts: Scene, tmp_path: Path) -> None:
    """With LISTEN the sweeper looks every 30 s; without it work must not wait for that."""
    local = start(jobs_file(a=_manual(tmp_path)))
    local.heard(PoolerFound)
    _enqueue(facts, "a")
    eventually(lambda: [row["status"] for row in facts.rows("a")] == ["succeeded"], "it is found by a look", 15)


def test_with_the_direct_url_nothing_is_off(start: Start, facts: Scene, tmp_path: Path, pooled_url: str) -> None:
    gate = tmp_path / "gate"
    hold = {"call": "effects:hold", **once(), "args": {"path": str(tmp_path / "seen"), "gate": str(gate)}}
    local = start(jobs_file(a={**hold, "guard": "advisory_lock"}), direct_database_url=direct(pooled_url))
    eventually((tmp_path / "seen").exists, "the guarded body begins")
    assert _locks(facts) == {presence_key(local.parts.room.owner.id), job_key("a")}
    look = "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s"
    (keeper,) = facts.sql(look, "soloist keeper")
    assert keeper["query"], "it passes the pooler by"
    gate.touch()
    eventually(lambda: [row["status"] for row in facts.rows("a")] == ["succeeded"], "it ends")
    assert not local.of(PoolerFound)
    local.close()
    eventually(lambda: not _locks(facts), "the locks went with the session")


@pytest.mark.case("C039")
def test_three_replicas_thirty_ticks_one_run_each(crew: Fleet, facts: Scene, tmp_path: Path) -> None:
    """C039: row claims alone decide, and no lock is left in the pool's connections."""
    tick = _manual(tmp_path, every="250ms", overlap="allow", misfire={"policy": "all"})
    tick["args"] = {"path": str(crew.effects)}
    for _ in range(3):
        crew.start(jobs_file(tick=tick), lease=15.0)
    for replica in crew.replicas:
        replica.ready()
    eventually(lambda: len(crew.lines("tick")) >= TICKS, "thirty ticks")
    assert not _locks(facts)
    for replica in crew.replicas:
        replica.signal(signal.SIGTERM)
    for replica in crew.replicas:
        assert replica.ended() == 0, replica.said()
        assert len(replica.events("PoolerFound")) == 1
        assert not replica.events("WriteFenced", "LeaseLostEvent", "DatabaseLost", "EngineFailed")
    rows = facts.rows("tick")
    assert {row["status"] for row in rows} <= {"succeeded", "queued"}, "what the last one left is queued, nothing else"
    assert max(Counter(row["scheduled_at"] for row in rows).values()) == 1
    effects = Counter(line[1] for line in crew.lines("tick"))
    assert set(effects.values()) == {1}
    assert set(effects) == {row["run_key"] for row in rows if row["status"] == "succeeded"}
    assert not _locks(facts)


def test_a_dead_replica_is_told_by_its_lease(crew: Fleet, facts: Scene) -> None:
    hold = {"call": "effects:hold", **once(), "args": {"path": str(crew.effects), "gate": str(crew.gate), "slow": [1]}}
    for _ in range(2):
        crew.start(jobs_file(hold=hold), lease=5.0).ready()
    owner = crew.owner_of("hold")
    eventually(lambda: crew.lines("begin"), "the body begins")
    owner.signal(signal.SIGKILL)
    eventually(lambda: crew.statuses("hold") == [("succeeded", 2)], "the other one runs it")
    (other,) = [replica for replica in crew.replicas if replica is not owner]
    assert [event["how"] for event in other.events("RunTakenOver")] == ["lease"]


def test_a_guarded_job_is_refused_before_the_first_claim(crew: Fleet, facts: Scene) -> None:
    """A running plan must not be harmed by it either: the refusal comes before anything is claimed."""
    plain = {"call": "effects:append", **once(), "args": {"path": str(crew.effects)}}
    replica = crew.start(jobs_file(plain=plain, guarded={**plain, "guard": "advisory_lock"}))
    assert replica.ended() == 8
    said = replica.said()
    assert DIRECT in said, said
    assert "guarded" in said
    assert "advisory_lock" in said
    assert "Traceback" not in said
    assert facts.rows() == []
    assert not crew.lines()
    assert not replica.events("RunClaimed", "AttemptStarted")


def _elsewhere(server: Any, url: str) -> str:
    return str(server.url)


def _nobody(server: Any, url: str) -> str:
    return "postgresql://me:s3cret@127.0.0.1:1/x"


def _no_such_database(server: Any, url: str) -> str:
    return str(server.url_of("not_there"))


@pytest.mark.parametrize("leads", [_elsewhere, _nobody, _no_such_database])
@pytest.mark.parametrize("guard", ["run_row", "advisory_lock"])
def test_a_wrong_direct_url_is_named(
    crew: Fleet, server: Any, pooled_url: str, leads: Callable[[Any, str], str], guard: str
) -> None:
    plain = {"call": "effects:append", **once(), "args": {"path": str(crew.effects)}, "guard": guard}
    replica = crew.start(jobs_file(a=plain), direct_database_url=leads(server, pooled_url))
    assert replica.ended() == 8
    said = replica.said()
    assert DIRECT in said, said
    assert "s3cret" not in said
    assert "Traceback" not in said
    assert crew.sql("SELECT count(*) FROM soloist.run") == [(0,)]


def test_a_direct_url_that_is_pooled_too_is_named(crew: Fleet, pooled_url: str) -> None:
    plain = {"call": "effects:append", **once(), "args": {"path": str(crew.effects)}}
    guarded = crew.start(jobs_file(a={**plain, "guard": "advisory_lock"}), direct_database_url=pooled_url)
    assert guarded.ended() == 8
    assert f"{DIRECT} leads through a pooler" in guarded.said()
    unguarded = crew.start(jobs_file(a=plain), direct_database_url=pooled_url).ready()
    assert [event["variable"] for event in unguarded.events("PoolerFound")] == [DIRECT]


def test_a_wrong_database_url_beside_a_right_direct_one_is_named(
    nursery: Nursery, tmp_path: Path, server: Any, database_url: str
) -> None:
    crew = Fleet(nursery, tmp_path, server.url_of("not_there"))
    replica = crew.start(jobs_file(a=_manual(tmp_path)), direct_database_url=direct(database_url))
    assert replica.ended() == 8
    assert f"is {POOLED} right" in replica.said()
    assert DIRECT not in replica.said()
    crew.close()


def test_a_pooler_that_restarts_costs_nothing(
    nursery: Nursery, tmp_path: Path, server: Any, database_url: str, facts: Scene
) -> None:
    """Its clients are cut off all at once; the replicas come back by themselves, and no tick is lost or doubled."""
    between = Pooler(server.url, server.data.parent)
    crew = Fleet(nursery, tmp_path, between.url_of(database_url))
    tick = _manual(tmp_path, every="250ms", overlap="allow", misfire={"policy": "all"})
    tick["args"] = {"path": str(crew.effects)}
    for _ in range(2):
        crew.start(jobs_file(tick=tick), lease=15.0)
    for replica in crew.replicas:
        replica.ready()
    eventually(lambda: len(crew.lines("tick")) >= 4, "they work")
    between.close()
    for replica in crew.replicas:
        eventually(lambda replica=replica: replica.events("DatabaseLost"), "it notices")
    between.start()
    seen = len(crew.lines("tick"))
    eventually(lambda: len(crew.lines("tick")) >= seen + 8, "ticks go on")
    crew.close()
    between.close()
    rows = facts.sql("SELECT scheduled_at FROM soloist.run ORDER BY 1")
    gaps = {(b["scheduled_at"] - a["scheduled_at"]).total_seconds() for a, b in itertools.pairwise(rows)}
    assert gaps == {0.25}, "a tick has no row"
    assert set(Counter(line[1] for line in crew.lines("tick")).values()) == {1}
