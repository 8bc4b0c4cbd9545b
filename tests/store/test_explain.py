"""Every protocol statement, planned against a long history: none may read the history from end to end."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import psycopg
import pytest
from uuid_utils.compat import uuid7

from scheduler.store.sql import load

HISTORY, JOBS = 200_000, 100
NAMES = sorted(entry.name.removesuffix(".sql") for entry in files("scheduler.store").joinpath("sql").iterdir())
LARGE = {"run", "attempt"}
LIVE = {"run_queued", "run_running", "run_waiting", "run_exclusive"}  # partial, on live states: as small as those
SCANS = {
    # looks at all that a purge may delete, by its nature; only a person asks for it (`--dry-run`), never the engine
    "purge_count",
    # stops at the first expired row it meets; asked once a purge, when that had reached its limit
    "purge_left",
}

ME, NOW = uuid.uuid4(), datetime.now(UTC)
IDS = [uuid.UUID(str(uuid7())) for _ in range(50)]
TEN = list(range(1, 11))
ENDED = {
    "id": IDS,
    "attempt": [1] * 50,
    "result": [None] * 50,
    "error_text": ["no"] * 50,
    "output_tail": [""] * 50,
    "output_bytes": [0] * 50,
    "exit_code": [0] * 50,
    "cpu": [0.1] * 50,
    "peak_rss": [1] * 50,
}
BOUNDS = {
    "after": uuid.UUID(int=0),
    "before": IDS[0],
    "succeeded": NOW - timedelta(days=30),
    "failed": NOW - timedelta(days=90),
    "skipped": NOW - timedelta(days=7),
}
SECONDS = {"succeeded": 86400.0, "failed": 86400.0, "skipped": None}
REGISTRATION = {
    "id": ME,
    "name": "r",
    "host": "h",
    "pid": 1,
    "version": "0",
    "config_hash": "x",
    "generation": 1,
    "tzdata": "2026",
    "clock_offset": 0.0,
    "seats": 16,
    "serves": True,
    "lease": 15.0,
}
COUNTS = {"fenced_writes": 0, "leases_lost": 0, "takeovers": 0}
PARAMETERS: dict[str, dict[str, Any]] = {
    "add_jobs": {"name": ["new"], "spec": ["{}"], "spec_hash": ["x"], "watermark": [NOW], "generation": 2},
    "backfill": {
        "job": 1,
        "spec_hash": "x",
        "who": "me",
        "dry_run": False,
        "priority": 100,
        "id": IDS,
        "run_key": [f"k{n}" for n in range(50)],
        "tick_key": [f"k{n}" for n in range(50)],
        "scheduled_at": [NOW] * 50,
    },
    "change_jobs": {
        "id": TEN,
        "spec": ["{}"] * 10,
        "spec_hash": ["x"] * 10,
        "generation": [2] * 10,
        "watermark": [NOW] * 10,
    },
    "claim": {
        "me": ME,
        "lease": 15.0,
        "job": list(range(1, JOBS + 1)),
        "seen": [NOW] * JOBS,
        "spec_hash": ["x"] * JOBS,
        "due_job": list(range(1, JOBS + 1)),
        "id": [uuid.uuid4() for _ in range(JOBS)],
        "run_key": [f"k{n}" for n in range(JOBS)],
        "tick_key": [f"k{n}" for n in range(JOBS)],
        "scheduled_at": [NOW] * JOBS,
        "status": ["running"] * JOBS,
        "skip_reason": [None] * JOBS,
        "if_blocked": ["skipped"] * JOBS,
        "trigger": ["schedule"] * JOBS,
        "note": [None] * JOBS,
        "delay": [0.0] * JOBS,
    },
    "complete_record": ENDED,
    "create_run": {
        "id": uuid.uuid4(),
        "job": "j-1",
        "run_key": "k",
        "tick_key": "k",
        "scheduled_at": NOW,
        "trigger": "manual",
        "triggered_by": "me",
        "retry_of": None,
        "payload": None,
        "if_blocked": "waiting",
        "action": "trigger",
        "heeds_pause": False,
        "me": None,
        "lease": 0.0,
    },
    "dequeue": {"me": ME, "lease": 15.0, "generation": 1, "seats": 16},
    "dequeue_one": {"me": ME, "lease": 15.0, "id": IDS[0]},
    "end_stale": {},
    "find_run": {"job": "j-1", "run_key": "k", "payload": "{}"},
    "heartbeat": {"me": ME, "clock_offset": 0.0, "pooled": False, "silence": 35.0, **COUNTS},
    "last_runs": {"job": TEN},
    "leave": {"me": ME, **COUNTS},
    "see_jobs": {},
    "lock_jobs": {"id": TEN},
    "look": {"me": ME, "generation": 1},
    "read_mine": {"me": ME},
    "register_plan": {"generation": 1, "name": ["a"], "spec_hash": ["h"]},
    "note_problem": {"me": ME, "problem": None},
    "pause_job": {"job": "j-1", "who": "me", "why": "x", "until": None, "lasting": 60.0},
    "pause_failing": {"job": ["j-1", "j-2"]},
    "promote": {"job": TEN},
    "purge_batch": {**BOUNDS, "batch": 1000, "room": 1000},
    "purge_bounds": SECONDS,
    "purge_count": {name: bound for name, bound in BOUNDS.items() if name != "after"},
    "purge_left": BOUNDS,
    "purge_retention": {},
    "read_generation": {"config_hash": "x", "me": ME, "silence": 35.0},
    "read_held": {"me": ME, "id": IDS, "attempt": [1] * 50},
    "read_expired_pauses": {},
    "read_job": {"job": "j-1"},
    "read_jobs": {"name": None},
    "read_moved": {"job": TEN, "seen": [NOW] * 10, "spec_hash": ["x"] * 10},
    "read_lost": {"job": TEN, "run_key": ["k"] * 10},
    "register_config": {"config_hash": "y", "content": "", "retention": "{}", "after": 0},
    "register_replica": REGISTRATION,
    "remove_jobs": {"id": TEN, "generation": 2},
    "renew": {"me": ME, "lease": 15.0, "id": IDS, "attempt": [1] * 50, "progress": [None] * 50},
    "replace": {"job": TEN},
    "resume_job": {
        "job": 1,
        "paused_at": NOW,
        "paused_until": None,
        "seen": NOW,
        "spec_hash": "x",
        "upto": NOW,
        "ends": True,
        "id": ME,
        "run_key": "k",
        "tick_key": "j/k",
        "scheduled_at": NOW,
        "note": "{}",
        "who": "me",
        "why": None,
    },
    "save_checkpoint": {"state": "{}", "id": IDS[0], "attempt": 1, "owner": str(ME)},
    "settle": {
        **ENDED,
        "me": ME,
        "name": "r",
        "status": ["succeeded"] * 50,
        "skip_reason": [None] * 50,
        "ready_in": [0.0] * 50,
        "spent": [0] * 50,
        "crashed": [0] * 50,
        "outcome": ["succeeded"] * 50,
        "error_class": [None] * 50,
    },
    "succeed_in_transaction": {"id": IDS[0], "attempt": 1, "owner": str(ME)},
    "take_over": {"id": IDS, "until": [NOW] * 50, "gone": False},
    "take_presence": {"key": 1},
    "watch_owners": {"me": ME},
    "witness": {"id": IDS},
    "read_guard": {"job": "j1"},
    "end_guards": {"id": IDS},
    "end_idle_guard": {"job": "j1", "pid": 1},
}


@pytest.fixture(scope="module")
def long_history(server: Any, template: str) -> Iterator[psycopg.Connection]:
    """200,000 runs that have ended, their attempts, and a few that live."""
    name = f"history_{os.getpid()}"
    server.clone(name, template)
    with psycopg.connect(server.url_of(name), autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute(
            "INSERT INTO soloist.job (name, spec, spec_hash, generation, watermark)"
            " SELECT 'j-' || n, '{}', 'x', 1, now() FROM generate_series(1, %s) n",
            (JOBS,),
        )
        connection.execute(
            "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, skip_reason, exclusive, attempt,"
            " started_at, finished_at)"
            " SELECT (lpad(to_hex(floor(extract(epoch FROM now() - (%(n)s - n) * interval '10 s') * 1000)::bigint), 12,"
            " '0') || lpad(to_hex(n), 20, '0'))::uuid, 1 + n %% %(jobs)s, 'old-' || n,"
            "   now() - (%(n)s - n) * interval '10 s',"
            "   'schedule', CASE n %% 10 WHEN 0 THEN 'failed' WHEN 1 THEN 'skipped' ELSE 'succeeded' END,"
            "   CASE n %% 10 WHEN 1 THEN 'overlap' END, true, 1, now(), now() - (%(n)s - n) * interval '10 s'"
            " FROM generate_series(1, %(n)s) n",
            {"n": HISTORY, "jobs": JOBS},
        )
        connection.execute(
            "INSERT INTO soloist.attempt (run, number, started_at, outcome)"
            " SELECT id, 1, started_at, 'succeeded' FROM soloist.run"
        )
        for status, jobs in (("running", (1, 30)), ("queued", (31, 60)), ("waiting", (1, 60))):
            connection.execute(
                "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, attempt,"
                " claimed_by, claimed_until, ready_at)"
                " SELECT gen_random_uuid(), n, %(status)s, now(), 'manual', %(status)s, true, 1,"
                " gen_random_uuid(), now(), now() FROM generate_series(%(first)s::int, %(last)s::int) n",
                {"status": status, "first": jobs[0], "last": jobs[1]},
            )
        connection.execute("ANALYZE")
        yield connection
    server.drop(name)


def test_every_statement_has_its_parameters_here() -> None:
    assert sorted(PARAMETERS) == NAMES, "a new file in store/sql needs its parameters in this test"


def _prepared(name: str) -> tuple[str, list[str]]:
    """The statement with $1, $2, … and the names they stand for, in order."""
    order: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in order:
            order.append(match[1])
        return f"${order.index(match[1]) + 1}"

    return re.sub(r"%\((\w+)\)s", number, load(name)).replace("%%", "%"), order


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("name", NAMES)
def test_the_plan_does_not_grow_with_the_history(long_history: psycopg.Connection, name: str, mode: str) -> None:
    if name not in PARAMETERS:
        pytest.fail(f"sql/{name}.sql has no parameters in this test: add some that are typical")
    statement, order = _prepared(name)
    assert set(order) == set(PARAMETERS[name])
    long_history.execute(f"SET plan_cache_mode = {mode}")  # type: ignore[call-overload]
    long_history.execute(f"PREPARE it AS {statement}")  # type: ignore[call-overload]
    try:
        slots = f"({', '.join(['%s'] * len(order))})" if order else ""
        execute = f"EXPLAIN (FORMAT JSON) EXECUTE it{slots}"
        client = psycopg.ClientCursor(long_history)
        row = client.execute(execute, [PARAMETERS[name][each] for each in order] or None).fetchone()  # type: ignore[arg-type]
    finally:
        long_history.execute("DEALLOCATE it")
    assert row is not None
    nodes = list(_nodes(row[0][0]["Plan"]))
    scans = [node for node in nodes if node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE]
    if name in SCANS:
        return
    assert not scans, [(node["Relation Name"], node["Plan Rows"]) for node in scans]
    # an index that is read from end to end is no better
    full = [n for n in nodes if "Index" in n["Node Type"] and "Index Cond" not in n and n.get("Relation Name") in LARGE]
    assert {node["Index Name"] for node in full} <= LIVE, full


def test_the_check_itself_sees_a_scan(long_history: psycopg.Connection) -> None:
    row = long_history.execute("EXPLAIN (FORMAT JSON) SELECT count(last_error) FROM soloist.run").fetchone()
    assert row is not None
    assert any(
        node.get("Relation Name") == "run" and node["Node Type"] == "Seq Scan" for node in _nodes(row[0][0]["Plan"])
    )
