"""Throughput of queued runs that do nothing, and how soon a lone one starts.

    python -m benchmarks.backlog [--runs 20000] [--replicas 2] [--isolation thread process] [--seats N]

The replicas are up and warm; then all runs become visible in one commit. `runs_s`: from the first start to the last;
`finished_s`: to the last outcome written. `two_cores_runs_s`: what two cores that do nothing else could do at the most,
by the CPU seconds of replicas and server: the one of the three that a busy machine does not touch. Seats are 250 for
threads and 16 for processes unless said otherwise.
`enqueue_p50_ms`: from just before the statement that creates a run to its body's first line, with nothing else to do.
Fails when a run was started twice or not at all.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Sequence
from functools import partial

from benchmarks.effects import judge
from benchmarks.enqueue import enqueue
from benchmarks.floor import ADD, DDL
from benchmarks.ground import Figures, Ground, Replica, Work, ground, medians, per_run, percentile, report

FILL = """INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, ready_at, spec_hash)
SELECT wanted.id, job.id, wanted.key, now(), 'manual', 'queued', false, now(), job.spec_hash
FROM soloist.job, unnest(%s::uuid[], %s::text[]) AS wanted (id, key) WHERE job.name = 'work'"""
DONE = {
    "floor": "SELECT count(*), extract(epoch FROM max(finished))::float8 FROM floor.run WHERE status = 2",
    "soloist": "SELECT count(*), extract(epoch FROM max(finished_at))::float8 FROM soloist.run"
    " WHERE status = 'succeeded'",
}
SEATS = {"thread": 250, "process": 16}
Run = tuple[str, str]


class Queue:
    """Puts work into one side's queue."""

    def __init__(self, place: Ground, side: str) -> None:
        self._place, self.side = place, side

    def fill(self, name: str, runs: int) -> list[Run]:
        """Many at once, visible in one commit; returns (job, key) of each."""
        words = [f"{name}{i}" for i in range(runs)]
        if self.side == "floor":
            with self._place.connection.transaction():
                self._place.sql(ADD, words)
                self._place.sql("NOTIFY run")
            return [("work", word) for word in words]
        from scheduler.runner.clock import new_id

        keys = [f"manual:{word}" for word in words]
        with self._place.connection.transaction():
            self._place.sql(FILL, [new_id() for _ in keys], keys)
            self._place.sql("NOTIFY soloist")
        return [("work", key) for key in keys]

    def probe(self, probes: int, gap: float) -> dict[Run, float]:
        """One at a time, as an application does; returns when each was sent."""
        sent: dict[Run, float] = {}
        if self.side == "floor":
            for i in range(probes):
                sent["work", f"p{i}"] = time.time()
                statement = f"WITH a AS ({ADD}) SELECT pg_notify('run', '')"
                self._place.connection.execute(statement, ([f"p{i}"],), prepare=True)
                time.sleep(gap)
            return sent
        return enqueue(self._place.url, [("work", f"p{i}") for i in range(probes)], gap)


def measure(place: Ground, works: Sequence[Work], options: argparse.Namespace, wrong: list[str]) -> Figures:
    """One round."""
    side = works[0].side
    place.clear()
    if side == "floor":
        place.sql(DDL)
    queue = Queue(place, side)
    with place.team(works) as team:
        expected = _warm_up(place, team, queue, works[0])
        figures = _drain(place, team, queue, options.runs, expected)
        sent = queue.probe(options.probes, options.gap)
        place.until(lambda: _done(place, queue, len(expected) + len(sent)), "every probe has run", within=30)
    starts = place.starts()
    wrong += [f"{side}: {what}" for what in judge(starts, [*expected, *sent])]
    delays = [(effect.at - sent[run]) * 1e3 for effect in starts if (run := (effect.job, effect.key)) in sent]
    return figures | {"enqueue_p50_ms": percentile(delays, 0.5), "enqueue_p99_ms": percentile(delays, 0.99)}


def _warm_up(place: Ground, team: list[Replica], queue: Queue, work: Work) -> list[Run]:
    """Give out small batches until every replica has had some and, where bodies need one, a child; returns them all."""
    given: list[Run] = []
    for batch in range(50):
        given += queue.fill(f"warm{batch}-", 4 * work.seats)
        place.until(partial(_done, place, queue, len(given)), "the replicas are warm")
        if queue.side == "floor" or work.isolation == "thread" or all(replica.warm() for replica in team):
            break
    time.sleep(1)
    return given


def _done(place: Ground, queue: Queue, runs: int) -> bool:
    return bool(place.sql(DONE[queue.side])[0][0] >= runs)


def _drain(place: Ground, team: list[Replica], queue: Queue, runs: int, expected: list[Run]) -> Figures:
    side = queue.side
    base = len(expected)
    before_fill = place.counters(team)
    added = queue.fill("e", runs)
    filled = place.counters(team)
    expected += added
    place.until(lambda: _done(place, queue, base + runs), "the queue is empty", step=0.2)
    last = place.sql(DONE[side])[0][1]
    after = place.counters(team)
    wanted = set(added)
    times = [effect.at for effect in place.starts() if (effect.job, effect.key) in wanted]
    # what the harness's own INSERT wrote is not the runner's; the runs that began beside it are few
    before = before_fill | {name: filled[name] for name in ("wal", "xacts")}
    cost = per_run(before, after, runs)
    return {
        "runs_s": (len(times) - 1) / (times[-1] - times[0]),
        "finished_s": runs / (last - times[0]),
        "two_cores_runs_s": 2e3 / (cost["cpu_ms"] + cost["server_cpu_ms"]),
        **cost,
    }


def main() -> int:
    """Run it; 1 when something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20000)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--isolation", nargs="+", choices=["thread", "process"], default=["thread", "process"])
    parser.add_argument("--seats", type=int, default=0)
    parser.add_argument("--probes", type=int, default=100)
    parser.add_argument("--gap", type=float, default=0.05)
    options = parser.parse_args()
    failed = False
    with ground() as place:
        for isolation in options.isolation:
            seats = options.seats or SEATS[isolation]
            rounds: dict[str, list[Figures]] = {"floor": [], "soloist": []}
            wrong: list[str] = []
            for _, side in itertools.product(range(options.rounds), rounds):
                works = [
                    Work(side, "backlog", place.url, n, options.replicas, seats=seats, isolation=isolation)
                    for n in range(options.replicas)
                ]
                rounds[side].append(measure(place, works, options, wrong))
            cell = {**vars(options), "isolation": isolation, "seats": seats}
            report(place, "backlog", cell, {side: medians(found) for side, found in rounds.items()}, wrong)
            failed |= bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
