"""Tick fan-in: J jobs due at one instant, R replicas.

    python -m benchmarks.fan_in [--jobs 1000 10000] [--replicas 3 8] [--seats 250] [--rounds 3]

`all_started_ms`, `all_finished_ms`: from the instant to the last start and to the last outcome written. `two_cores_ms`:
what two cores that do nothing else would need for all at the least, by the CPU seconds of replicas and server: a busy
machine does not touch it. All else is for one run. Fails when a run was started twice or not at all.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from dataclasses import replace

from benchmarks.effects import judge
from benchmarks.floor import DDL
from benchmarks.ground import Figures, Ground, Work, ground, medians, per_run, report

LAST = {
    "floor": "SELECT count(*), extract(epoch FROM max(finished))::float8 FROM floor.run WHERE status = 2",
    "soloist": "SELECT count(*), extract(epoch FROM max(finished_at))::float8 FROM soloist.run"
    " WHERE status = 'succeeded'",
}


class TooLate(Exception):
    """The replicas were not ready at the instant."""


def measure(place: Ground, work: Work, wrong: list[str]) -> Figures:
    """One round; again with more time to get ready when the machine was too busy."""
    lead = 8 + work.jobs / 500 + 2 * work.replicas
    for _ in range(3):
        try:
            return _measure(place, work, lead, wrong)
        except TooLate:
            lead *= 2
    raise SystemExit(f"{work.replicas} replicas were not ready within {lead / 2:g} s")


def _measure(place: Ground, work: Work, lead: float, wrong: list[str]) -> Figures:
    place.clear()
    if work.side == "floor":
        place.sql(DDL)
    due = float(int(time.time() + lead))
    team = [replace(work, number=n, due=due) for n in range(work.replicas)]
    with place.team(team) as replicas:
        if time.time() > due - 2:
            raise TooLate
        time.sleep(due - 2 - time.time())
        before = place.counters(replicas)
        if time.time() > due - 0.2:  # else part of the work would not be counted
            raise TooLate
        last = place.until(lambda: _last(place, work), "every run has succeeded")
        time.sleep(0.3)
        after = place.counters(replicas)
    starts = place.starts()
    key = str(due) if work.side == "floor" else starts[0].key
    wrong += judge(starts, ((f"j{i}", key) for i in range(work.jobs)))
    cost = per_run(before, after, work.jobs)
    return {
        "first_ms": (starts[0].at - due) * 1e3,
        "all_started_ms": (starts[-1].at - due) * 1e3,
        "all_finished_ms": (last - due) * 1e3,
        "two_cores_ms": (cost["cpu_ms"] + cost["server_cpu_ms"]) * work.jobs / 2,
        **cost,
    }


def _last(place: Ground, work: Work) -> float | None:
    count, last = place.sql(LAST[work.side])[0]
    return float(last) if count >= work.jobs else None


def main() -> int:
    """Run it; 1 when something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1000])
    parser.add_argument("--replicas", type=int, nargs="+", default=[3])
    parser.add_argument("--seats", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--isolation", choices=["thread", "process"], default="thread")
    parser.add_argument("--logs", action="store_true", help="with the log lines of `soloist serve`")
    options = parser.parse_args()
    all_wrong: list[str] = []
    with ground() as place:
        for jobs, replicas in itertools.product(options.jobs, options.replicas):
            cell = {**vars(options), "jobs": jobs, "replicas": replicas}
            rounds: dict[str, list[Figures]] = {"floor": [], "soloist": []}
            wrong: list[str] = []
            for _, side in itertools.product(range(options.rounds), rounds):
                work = Work(
                    side,
                    "fan_in",
                    place.url,
                    replicas=replicas,
                    jobs=jobs,
                    seats=options.seats,
                    isolation=options.isolation,
                    logs=options.logs,
                )
                rounds[side].append(measure(place, work, wrong))
            report(place, "fan_in", cell, {side: medians(found) for side, found in rounds.items()}, wrong)
            all_wrong += wrong
    return int(bool(all_wrong))


if __name__ == "__main__":
    sys.exit(main())
