"""Tick fan-in: J jobs due at one instant, R replicas, beside the least that a correct runner can do with raw psycopg.

    python benchmarks/fan_in.py [--jobs 1000 10000] [--replicas 3] [--seats 250] [--rounds 3]

Prints a line per cell (medians over the rounds) and the ratios to the floor of the same session. Fails when a run was
started twice or not at all.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.ground import Ground, finish, ground, start, wait_ready

SCRIPT = str(Path(__file__).absolute())
FLOOR_DDL = """
CREATE SCHEMA floor;
CREATE TABLE floor.run (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job text NOT NULL, due timestamptz NOT NULL,
  status smallint NOT NULL, owner int NOT NULL, started timestamptz, finished timestamptz,
  UNIQUE (job, due)) WITH (fillfactor = 70);
CREATE INDEX run_live ON floor.run (id) WHERE status < 2;
"""
FLOOR_CLAIM = """INSERT INTO floor.run (job, due, status, owner, started)
SELECT job, to_timestamp(%s), 1, %s, clock_timestamp() FROM unnest(%s::text[]) job
ON CONFLICT DO NOTHING RETURNING id, job"""
FLOOR_FINISH = "UPDATE floor.run SET status = 2, finished = clock_timestamp() WHERE id = ANY (%s)"


def floor_replica(url: str, number: int, replicas: int, jobs: int, due: float) -> None:
    """Multi-row claims, each replica from another chunk; one UPDATE per chunk. No lease, no fence, no history."""
    import psycopg

    from benchmarks.ground import record

    connection = psycopg.connect(url, autocommit=True)
    names = [f"j{i}" for i in range(jobs)]
    size = max(25, min(250, -(-jobs // (2 * replicas))))
    chunks = [names[i : i + size] for i in range(0, jobs, size)]
    first = number * len(chunks) // replicas
    connection.execute(FLOOR_CLAIM, (0, 0, [f"warm{number}"]), prepare=True)
    connection.execute("DELETE FROM floor.run WHERE job = %s", (f"warm{number}",))
    print("ready", flush=True)
    while (left := due - time.time()) > 0:
        time.sleep(left)
    sent = 0
    for chunk in chunks[first:] + chunks[:first]:
        won = connection.execute(FLOOR_CLAIM, (due, number, chunk), prepare=True).fetchall()
        sent += 1
        for _, job in won:
            record(job)
        if won:
            connection.execute(FLOOR_FINISH, ([id_ for id_, _ in won],), prepare=True)
            sent += 1
    signal.signal(signal.SIGTERM, lambda *_: (print(sent, flush=True), sys.exit(0)))
    signal.pause()


def body(ctx: Any) -> None:
    """The job: one effect."""
    from benchmarks.ground import record

    record(ctx.job)


def soloist_replica(url: str, number: int, jobs: int, due: float, seats: int, isolation: str) -> None:
    """A whole replica: leases, fences, history, everything on."""
    from scheduler.app import Soloist
    from scheduler.config.plan import Plan
    from scheduler.config.settings import load_settings
    from scheduler.core.model import Isolation, JobSpec
    from scheduler.core.retention import Retention
    from scheduler.core.schedule import At
    from scheduler.store.engine import Session

    sent = [0]
    call = Session._call

    def counted(self: Session, *arguments: Any) -> Any:
        sent[0] += 1
        return call(self, *arguments)

    Session._call = counted  # type: ignore[method-assign]
    at = At(datetime.fromtimestamp(due, UTC))
    specs = tuple(JobSpec(f"j{i}", at, "benchmarks.fan_in:body", isolation=Isolation(isolation)) for i in range(jobs))
    plan = Plan(
        version=1,
        timezone="UTC",
        jobs=specs,
        retention=Retention(),
        content="benchmark",
        content_hash="bench",
        root=Path(SCRIPT).parents[1],
    )
    service = Soloist(load_settings(replica=f"r{number}", seats=seats), plan, url).service()
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    service.start()
    if isolation == "process":
        time.sleep(1)
    sent[0] = 0
    print("ready", flush=True)
    while not done.is_set():
        done.wait(0.5)
    counted_statements = sent[0]
    service.stop()
    service.drain()
    print(counted_statements, flush=True)
    os._exit(0)


def cell(place: Ground, what: str, jobs: int, replicas: int, seats: int, isolation: str) -> dict[str, float]:
    place.clear()
    due = float(int(time.time()) + 8 + jobs // 500 + 2 * replicas)
    if what == "floor":
        with place.connect() as connection:
            connection.execute(FLOOR_DDL)
    common = (str(jobs), repr(due))
    processes = [
        start(
            SCRIPT,
            what,
            place.url,
            str(n),
            str(replicas),
            *common,
            str(seats),
            isolation,
            BENCH_EFFECTS=str(place.effects),
        )
        for n in range(replicas)
    ]
    wait_ready(processes)
    late = time.time() > due
    while time.time() < due - 0.3:
        time.sleep(0.05)
    wal, xids = place.counters()
    query = (
        "SELECT count(*), extract(epoch FROM max(finished)) FROM floor.run WHERE status = 2"
        if what == "floor"
        else "SELECT count(*), extract(epoch FROM max(finished_at)) FROM soloist.run WHERE status = 'succeeded'"
    )
    deadline = time.time() + 120
    with place.connect() as connection:
        while time.time() < deadline:
            count, last = connection.execute(query).fetchone()  # type: ignore[misc, call-overload]
            if count >= jobs:
                break
            time.sleep(0.05)
    time.sleep(0.3)
    wal_after, xids_after = place.counters()
    starts = place.starts()
    statements = sum(int(line or 0) for line in finish(processes))
    times = sorted(at - due for _, at in starts)
    return {
        "late": float(late),
        "started": float(len({job for job, _ in starts})),
        "duplicates": float(len(starts) - len({job for job, _ in starts})),
        "first_ms": times[0] * 1e3,
        "all_started_ms": times[-1] * 1e3,
        "all_finished_ms": (float(last) - due) * 1e3,
        "statements": statements / jobs,
        "wal_bytes": (wal_after - wal) / jobs,
        "write_xacts": (xids_after - xids) / jobs,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--seats", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--isolation", choices=["thread", "process"], default="thread")
    options = parser.parse_args()
    wrong = False
    with ground() as place:
        for jobs in options.jobs:
            medians: dict[str, dict[str, float]] = {}
            for what in ("floor", "soloist"):
                rounds = [
                    cell(place, what, jobs, options.replicas, options.seats, options.isolation)
                    for _ in range(options.rounds)
                ]
                wrong |= any(r["started"] != jobs or r["duplicates"] for r in rounds)
                medians[what] = {key: round(statistics.median(r[key] for r in rounds), 3) for key in rounds[0]}
                print(
                    json.dumps({"runner": what, "jobs": jobs, **vars(options), **medians[what]}, default=str),
                    flush=True,
                )
            ratios = {
                key: round(medians["soloist"][key] / medians["floor"][key], 2)
                for key in ("all_started_ms", "all_finished_ms", "wal_bytes")
            }
            print(f"{jobs} jobs: × the floor: {ratios}", flush=True)
    return int(wrong)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "floor":
        _, _, url, number, replicas, jobs, due, _, _ = sys.argv
        floor_replica(url, int(number), int(replicas), int(jobs), float(due))
    elif len(sys.argv) > 2 and sys.argv[1] == "soloist":
        _, _, url, number, _, jobs, due, seats, isolation = sys.argv
        soloist_replica(url, int(number), int(jobs), float(due), int(seats), isolation)
    else:
        sys.exit(main())
