"""The floor: the least that a correct runner can do, with raw psycopg. No lease, no fence, no retries, no policies.

Multi-row claims, each replica from another chunk, and one UPDATE for the ends of a chunk; LISTEN and sleep when idle;
a neighbour that is blocked on the dead one's session lock for the failover.
"""

from __future__ import annotations

import select
import threading
import time
from typing import Any, LiteralString

import psycopg

from benchmarks.effects import BEAT, record
from benchmarks.ground import Work

DDL = """
CREATE SCHEMA floor;
CREATE TABLE floor.run (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job text NOT NULL, due timestamptz NOT NULL,
  status smallint NOT NULL, attempt smallint NOT NULL DEFAULT 1, owner int NOT NULL DEFAULT 0,
  started timestamptz, finished timestamptz, UNIQUE (job, due)) WITH (fillfactor = 70);
CREATE INDEX run_live ON floor.run (id) WHERE status < 2;
"""
CLAIM: LiteralString = """INSERT INTO floor.run (job, due, status, owner, started)
SELECT job, to_timestamp(%s), 1, %s, clock_timestamp() FROM unnest(%s::text[]) job
ON CONFLICT DO NOTHING RETURNING id, job"""
PULL: LiteralString = """UPDATE floor.run SET status = 1, owner = %s, started = clock_timestamp() WHERE id IN
(SELECT id FROM floor.run WHERE status = 0 ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING id, job"""
FINISH: LiteralString = "UPDATE floor.run SET status = 2, finished = clock_timestamp() WHERE id = ANY (%s)"
ADD: LiteralString = "INSERT INTO floor.run (job, due, status) SELECT job, now(), 0 FROM unnest(%s::text[]) job"
CHUNK = 250


class Floor:
    """One replica. `sent`: its statements."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._connection = psycopg.connect(work.url, autocommit=True)
        self.sent = 0

    def prepare(self) -> None:
        """Have the statements planned before anything is measured."""
        warm = f"warm{self._work.number}"
        self._send(CLAIM, 0, self._work.number, [warm])
        self._send("DELETE FROM floor.run WHERE job = %s", warm)
        self._send(PULL, self._work.number, 0)
        if self._work.row == "failover":
            self._send("SELECT pg_advisory_lock(1000, %s)", self._work.number)

    def work(self) -> None:
        """What this benchmark is about; returns never, or when there is nothing more to do."""
        getattr(self, self._work.row)()

    def _send(self, statement: LiteralString, *params: Any) -> list[Any]:
        self.sent += 1
        cursor = self._connection.execute(statement, params or None, prepare=True)
        return cursor.fetchall() if cursor.description else []

    def _tick(self, due: float) -> None:
        work = self._work
        names = [f"j{i}" for i in range(work.jobs)]
        size = max(25, min(CHUNK, -(-work.jobs // (2 * work.replicas))))
        chunks = [names[i : i + size] for i in range(0, work.jobs, size)]
        first = work.number * len(chunks) // work.replicas
        for chunk in chunks[first:] + chunks[:first]:
            won = self._send(CLAIM, due, work.number, chunk)
            for _, job in won:
                record(job, str(due), scheduled=due)
            if won:
                self._send(FINISH, [id_ for id_, _ in won])

    def fan_in(self) -> None:
        """All jobs at one instant."""
        _sleep_until(self._work.due)
        self._tick(self._work.due)

    def latency(self) -> None:
        """One job a second."""
        due = float(int(time.time()) + 1)
        while True:
            _sleep_until(due)
            self._tick(due)
            due += 1

    def idle(self) -> None:
        """LISTEN and sleep."""
        self._send("LISTEN run")
        select.select([self._connection.fileno()], [], [])

    def backlog(self) -> None:
        """Take what is queued, in chunks; sleep until told of more."""
        self._send("LISTEN run")
        while True:
            taken = self._send(PULL, self._work.number, CHUNK)
            for _, job in taken:
                record("work", job)
            if taken:
                self._send(FINISH, [id_ for id_, _ in taken])
            else:
                for _ in self._connection.notifies(timeout=5, stop_after=1):
                    pass

    def failover(self) -> None:
        """Replica 0 takes the run and holds it; the other waits for 0's session to die, and does the run again."""
        me, neighbour = self._work.number, 1 - self._work.number
        if me == 0:
            self._hold(1)
            return
        with psycopg.connect(self._work.url, autocommit=True) as waiting:
            waiting.execute("SELECT pg_advisory_lock(1000, %s)", (neighbour,))
        self._send("UPDATE floor.run SET status = 0, attempt = attempt + 1 WHERE status = 1 AND owner = %s", neighbour)
        self._hold(2)

    def _hold(self, attempt: int) -> None:
        while not (taken := self._send(PULL, self._work.number, 1)):
            time.sleep(0.01)
        record("work", taken[0][1], attempt)
        pause = threading.Event()
        while True:
            pause.wait(BEAT)
            record("work", taken[0][1], attempt, what="beat")


def _sleep_until(instant: float) -> None:
    while (left := instant - time.time()) > 0:
        time.sleep(left)
