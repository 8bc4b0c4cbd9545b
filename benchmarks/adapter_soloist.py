"""Soloist in a harness that measures several job runners side by side; the harness's own README says what it asks for.

Copy this file into the harness as `adapters/soloist_.py` (no link: a job's function has to lie beside its jobs file);
`$BENCH_HOME/v-soloist` is a virtual environment that has Soloist, for example a link to this repository's `.venv`:

    cp benchmarks/adapter_soloist.py HARNESS/adapters/soloist_.py && ln -s "$PWD/.venv" "$BENCH_HOME/v-soloist"

Variants (`soloist.NAME`):

    (none)      bodies in warm child processes, 16 seats: the defaults
    threads     bodies in threads, 250 seats
    process64   warm child processes, 64 seats
    logs        the defaults, and the log lines of `soloist serve` (otherwise off, as they are with the other runners)
"""
# ruff: noqa: E402

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

import benchlib  # the harness's own

VARIANT = os.environ.get("BENCH_VARIANT", "")
ISOLATION = "thread" if VARIANT == "threads" else "process"
SEATS = {"threads": 250, "process64": 64}.get(VARIANT, 16)
CAPS = {
    "resolution": "second",
    "finished_sql": "select count(*) from soloist.run where status = 'succeeded'",
    "lead_per_job": 1 / 40,
    "note": f"{SEATS} seats, isolation {ISOLATION}; due at one instant: `at:`; runs are created one by one",
}


def noop(ctx: Any) -> None:
    """The harness's job body. A run on request goes by the name in its key."""
    name = ctx.run_key.removeprefix("manual:") if ctx.job == "work" else ctx.job
    benchlib.record(name, ctx.scheduled_at.timestamp())


def slow(ctx: Any) -> None:
    """The harness's long body."""
    benchlib.sleeper_body(ctx.job)


def _jobs() -> tuple[Any, ...]:
    from scheduler.core.model import Isolation, JobSpec, Overlap
    from scheduler.core.schedule import At, Cron, Every

    work, isolation = benchlib.W, Isolation(ISOLATION)

    def job(name: str, schedule: Any, call: str = "noop", overlap: Overlap = Overlap.SKIP) -> JobSpec:
        return JobSpec(name, schedule, f"{Path(__file__).stem}:{call}", isolation=isolation, overlap=overlap)

    match work["kind"]:
        case "fanin":
            at = At(datetime.fromtimestamp(work["due"], UTC))
            return tuple(job(name, at) for name in benchlib.jobs())
        case "tick":
            return (job("j0", Every(1.0)),)
        case "idle":
            return tuple(job(name, Cron(work["cron5"], "UTC")) for name in benchlib.jobs())
    return job("work", None, overlap=Overlap.ALLOW), job("sleeper", None, "slow", Overlap.ALLOW)


def _soloist() -> Any:
    from scheduler.app import Soloist
    from scheduler.config.plan import Plan
    from scheduler.config.settings import load_settings
    from scheduler.core.retention import Retention
    from scheduler.edges import Edges

    plan = Plan(
        version=1,
        timezone="UTC",
        jobs=_jobs(),
        retention=Retention(),
        content="benchmark",
        content_hash="benchmark",
        root=FOLDER,
    )
    settings = load_settings(replica=f"r{benchlib.RID}", seats=SEATS)
    return Soloist(settings, plan, benchlib.DSN, Edges(None, "").listeners if VARIANT == "logs" else ())


def setup() -> None:
    """The schema, and the plan in force."""
    parts, _ = _soloist().wire()
    parts.follower.start()
    for kind in parts.kinds.values():
        kind.close()
    import psycopg

    with psycopg.connect(benchlib.DSN, autocommit=True) as connection:  # it planned, and is no replica
        connection.execute("UPDATE soloist.replica SET stopped_at = now()")


def replica() -> None:
    """One replica, until SIGTERM."""
    service = _soloist().service()
    signal.signal(signal.SIGTERM, lambda *_: service.stop())
    service.start()
    benchlib.ready()
    service.stopping.wait()
    service.drain()


def _request(names: list[str], job: str = "work", gap: float | None = None) -> None:
    """Create runs as an application does, one by one; with a gap, each is told to the harness just before."""
    from scheduler.core.model import Trigger
    from scheduler.runner.clock import SystemClock, new_id
    from scheduler.store.claims import Request, create_run
    from scheduler.store.visit import visit_session

    with visit_session(benchlib.DSN, "bench", SystemClock()) as session:
        for number, name in enumerate(names):
            if gap is not None:
                benchlib.sent(number)
            create_run(session, Request(new_id(), job, f"manual:{name}", Trigger.MANUAL, "bench"))
            if gap is not None:
                time.sleep(gap)


def enqueue(n: int) -> None:
    """A backlog."""
    _request([f"e{i}" for i in range(n)])


def probe(n: int, gap: float) -> None:
    """Lone runs."""
    _request(["warm"])
    time.sleep(0.5)
    _request([f"p{i}" for i in range(n)], gap=gap)


def sleeper() -> None:
    """One run that lasts."""
    _request(["s"], job="sleeper")


if __name__ == "__main__":
    benchlib.main(globals())
