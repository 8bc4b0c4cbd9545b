"""One process of a benchmark: a whole replica of Soloist, or the floor's.

    python -m benchmarks.replica '{"side": "soloist", "row": "fan_in", …}'

It says `ready`, answers each line of its standard input with the number of statements it has sent, and stops in good
order when that input ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from benchmarks.ground import REPO, Work

if TYPE_CHECKING:
    from scheduler.core.model import JobSpec


def jobs_of(work: Work) -> tuple[JobSpec, ...]:
    """The plan of each benchmark."""
    from scheduler.core.model import Isolation, JobSpec, Overlap
    from scheduler.core.schedule import At, Cron, Every

    isolation = Isolation(work.isolation)

    def job(name: str, schedule: Any, call: str = "effect", overlap: Overlap = Overlap.SKIP) -> JobSpec:
        return JobSpec(name, schedule, f"benchmarks.effects:{call}", isolation=isolation, overlap=overlap)

    names = [f"j{i}" for i in range(work.jobs)]
    match work.row:
        case "fan_in":
            at = At(datetime.fromtimestamp(work.due, UTC))
            return tuple(job(name, at) for name in names)
        case "idle" | "history":
            far = datetime.fromtimestamp(work.due, UTC)
            return tuple(job(name, Cron(f"{far.minute} {far.hour} * * *", "UTC")) for name in names)
        case "latency":
            return (job("j0", Every(1.0)),)
        case "backlog":
            return (job("work", None, overlap=Overlap.ALLOW),)
        case "failover":
            return (job("work", None, "hold", Overlap.ALLOW),)
    raise SystemExit(f"no benchmark is called {work.row}")


def replica_of(work: Work) -> Any:
    """A `Soloist` as `soloist serve` would wire it; with its log lines only where asked for."""
    from scheduler.app import Soloist
    from scheduler.config.plan import Plan
    from scheduler.config.settings import load_settings
    from scheduler.core.retention import Retention
    from scheduler.edges import Edges

    jobs = jobs_of(work)
    plan = Plan(
        version=1,
        timezone="UTC",
        jobs=jobs,
        retention=Retention(),
        content="benchmark",
        content_hash="benchmark",
        root=REPO,
    )
    settings = load_settings(replica=f"r{work.number}", seats=work.seats, lease=work.lease)
    return Soloist(settings, plan, work.url, Edges(None, "").listeners if work.logs else ())


def counting() -> list[int]:
    """From now on every statement of the engine's sessions is counted here."""
    from scheduler.store.engine import Session

    sent, call = [0], Session._call

    def counted(self: Session, *words: Any, **named: Any) -> Any:
        sent[0] += 1
        return call(self, *words, **named)

    Session._call = counted  # type: ignore[method-assign]
    return sent


def converse(count: Callable[[], int]) -> None:
    """Say `ready`, then answer until the input ends."""
    print("ready", flush=True)
    for _ in sys.stdin:
        print(count(), flush=True)


def play(work: Work) -> None:
    """A whole replica: leases, fences, history, everything on."""
    from scheduler.runner.collector import rest_what_stays

    sent = counting()
    service = replica_of(work).service()
    service.start()
    rest_what_stays()  # as `soloist serve` does
    converse(lambda: sent[0])
    service.stop()
    service.drain()


def main() -> None:
    """Play one side."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the harness, which then ends us
    work = Work(**json.loads(sys.argv[1]))
    if work.side == "floor":
        from benchmarks.floor import Floor

        floor = Floor(work)
        floor.prepare()
        threading.Thread(target=floor.work, daemon=True).start()
        converse(lambda: floor.sent)
    else:
        play(work)
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
