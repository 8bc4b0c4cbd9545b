"""What a run costs our own side, piece by piece: CPU of one process in µs, with nothing else to do and no server.

    python -m benchmarks.pieces [--rounds 40] [--logs]

A stand-in answers each statement at once, so this is no measure of Soloist; it shows where its CPU goes. Best of all
rounds: in a real herd each piece costs about twice as much, for three replicas and their server share two cores, their
caches and, inside each replica, one interpreter lock.

`wins_us`: a tick is decided, claimed and seated; `loses_us`: another replica was faster; `attempt_us`: a body that does
nothing in a thread, its events and its outcome; `whole_us`: a queued run from its row to its written outcome, with the
hand-over to a seat and the settlement.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from benchmarks import effects
from benchmarks.ground import REPO, Work
from benchmarks.replica import jobs_of
from scheduler.core.events import Bus
from scheduler.core.model import Isolation, Status
from scheduler.kinds.thread import ThreadKind
from scheduler.runner.attempt import Attempts, Leave
from scheduler.runner.clock import SystemClock, new_id
from scheduler.runner.collector import rest_what_stays
from scheduler.runner.plan import PlanInForce
from scheduler.runner.room import Room
from scheduler.runner.seats import Held, Seats
from scheduler.runner.settler import Settler, Written
from scheduler.runner.tally import Tally
from scheduler.runner.ticker import Ticker
from scheduler.runner.witness import Witness
from scheduler.store import claims
from scheduler.store.claims import Owner
from scheduler.store.jobs import KnownJob

JOBS, SEATS = 1000, 250
DUE = float(int(time.time()) - 1)


class Answers:
    """In a session's place: every tick is won, every outcome written, and what is looked at is gone."""

    def run(self, name: str, params: dict[str, Any], **_: Any) -> list[tuple[Any, ...]]:
        """Canned rows."""
        now = datetime.now(UTC)

        def column(key: str, kind: Callable[[str], Any]) -> list[Any]:
            return [kind(text) for text in params[key].strip("{}").split(",") if text]

        match name:
            case "claim":
                jobs = column("due_job", int)
                return [(jobs, jobs, column("id", UUID), ["running"] * len(jobs), [None] * len(jobs), now, 0)]
            case "settle":
                return [(id_, 1, "succeeded", False, 0) for id_ in column("id", UUID)]
            case "dequeue":
                row = ("manual:e1", now, 1, 0, 0, "manual", None, None, None, now)
                return [(new_id(), 1, *row) for _ in range(params["seats"])]
            case "read_moved":
                jobs = column("job", int)
                return [(jobs, [datetime.fromtimestamp(DUE, UTC)] * len(jobs), [False] * len(jobs))]
        return []


class Trusted:
    """In the presence's place: every body may begin."""

    def wait(self, _: Held) -> bool:
        """At once."""
        return True


class Bench:
    """The rooms of a replica, as far as they are needed."""

    def __init__(self, logs: bool) -> None:
        self.answers: Any = Answers()
        clock, bus = SystemClock(), Bus()
        self.room = Room(Owner(new_id(), "r0", 15.0), clock, bus)
        bus.subscribe(Tally(), *Tally.COUNTS)
        bus.subscribe(Witness(self.room), *Witness.REMEMBERS)
        if logs:
            from scheduler.edges import Edges

            for listener in Edges(None, "").listeners:
                bus.subscribe(listener)
        self.kinds = {Isolation.THREAD: ThreadKind(REPO)}
        (self.spec,) = jobs_of(Work("soloist", "backlog", ""))
        self.settler, self.seats = Settler(self.answers, self.room), Seats(SEATS)
        self.seats.attend = self.attempts(self.settler).attend

    def attempts(self, settler: Any) -> Attempts:
        """Bodies in threads."""
        leave: Any = Leave(Trusted(), None)  # type: ignore[arg-type]
        return Attempts(self.kinds, settler, self.room, leave)

    def taken(self, seats: int) -> list[Held]:
        """Runs from the queue."""
        rows = claims.dequeue(self.answers, self.room.owner, 1, seats, {1: "work"})
        return [Held(claim, self.spec, self.room.clock.boottime() + 60) for _, claim in rows]

    def ticker(self, live: int) -> Ticker:
        """One before a herd of due ticks: of one replica, or of so many that all of it is others' to begin with."""
        specs, before = jobs_of(Work("soloist", "fan_in", "", jobs=JOBS, due=DUE)), datetime.fromtimestamp(DUE - 1, UTC)
        plan = PlanInForce(specs)
        known = [KnownJob(n, s.name, s.hash, 1, before, paused=False, removed=False) for n, s in enumerate(specs)]
        plan.swap(known, 1)
        made = Ticker(self.answers, self.room, plan, Seats(JOBS))
        made.rank, made.live = live // 2, live
        made.next_tick()
        return made


class AtOnce:
    """In the settler's place."""

    def settle(self, _: Any, told: Callable[[Written], None]) -> None:
        """Written as soon as it is there."""
        told(Written(Status.SUCCEEDED))


def best(rounds: int, prepare: Callable[[], Any], act: Callable[[Any], None], runs: int) -> float:
    """µs of this process's CPU for one of `runs`, in the best round."""
    found = []
    for _ in range(rounds):
        ready = prepare()
        before = time.process_time()
        act(ready)
        found.append(time.process_time() - before)
    return round(min(found) * 1e6 / runs, 1)


def measure(bench: Bench, rounds: int) -> dict[str, float]:
    """All pieces."""
    alone = bench.attempts(AtOnce())

    def attempts(held: list[Held]) -> None:
        for one in held:
            alone.attend(one, lambda: None)

    def queue(_: None) -> None:
        bench.seats.reserve(SEATS)
        bench.seats.begin(*bench.taken(SEATS))
        if not bench.seats.wait_empty(30):
            raise SystemExit("a body did not end")

    queue(None)  # threads are started, functions found
    rest_what_stays()
    return {
        "wins_us": best(rounds // 4, lambda: bench.ticker(1), lambda ticker: ticker.tick(), JOBS),
        "loses_us": best(rounds // 4, lambda: bench.ticker(10**6), lambda ticker: ticker.tick(), JOBS),
        "attempt_us": best(rounds, lambda: bench.taken(SEATS), attempts, SEATS),
        "whole_us": best(rounds, lambda: None, queue, SEATS),
    }


def main() -> int:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--logs", action="store_true", help="with the log lines of `soloist serve`, to stderr")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ[effects.FOLDER] = folder
        print(
            json.dumps(
                {"row": "pieces", "cell": vars(options), "soloist": measure(Bench(options.logs), options.rounds)}
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
