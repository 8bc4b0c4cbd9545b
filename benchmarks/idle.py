"""What it costs to wait: R replicas, J jobs of which none is due.

    python -m benchmarks.idle [--jobs 100] [--replicas 10] [--seconds 60] [--warm]

All figures are for one replica, after `--settle` seconds. `statements_s` is what its sessions sent,
`statements_counted_s` what the server counted. Memory is that of the whole process tree; RSS counts what processes
share once for each, PSS once. `--warm`: each has run a body in a process before, and so keeps a zygote and a child.
Fails when something ran that was not asked for.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from dataclasses import replace
from typing import Any

from benchmarks.enqueue import enqueue
from benchmarks.floor import DDL
from benchmarks.ground import Figures, Ground, Replica, Work, ground, report

CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'peer' AND backend_type = 'client backend'"


def measure(place: Ground, side: str, options: argparse.Namespace) -> Figures:
    """Both sides are measured over the same length of time, one after the other."""
    place.clear()
    if side == "floor":
        place.sql(DDL)
    due = time.time() + 12 * 3600
    common = Work(side, "idle", place.url, 0, options.replicas, options.jobs, due, isolation="process")
    with place.team(replace(common, number=n) for n in range(options.replicas)) as team:
        if options.warm and side == "soloist":
            _warm_up(place, team, options.jobs)
        time.sleep(options.settle)
        before, began = place.counters(team), time.monotonic()
        time.sleep(options.seconds)
        after, seconds = place.counters(team), time.monotonic() - began
        memory = [_memory(replica) for replica in team]
        connections = place.sql(CONNECTIONS)[0][0]
    share = {name: (after[name] - before[name]) / options.replicas / seconds for name in before}
    figures = {
        "statements_s": share["sent"],
        "cpu_s_min": share["cpu"] * 60,
        "server_cpu_s_min": share["server_cpu"] * 60,
        "wal_bytes_s": share["wal"],
        "connections": connections / options.replicas,
        "rss_mib": sum(found["rss"] for found in memory) / options.replicas / 2**20,
        "pss_mib": sum(found["pss"] for found in memory) / options.replicas / 2**20,
        "processes": sum(found["processes"] for found in memory) / options.replicas,
    }
    return figures | ({"statements_counted_s": share["counted"]} if "counted" in share else {})


def _warm_up(place: Ground, team: list[Replica], jobs: int) -> None:
    """Ask for runs until every replica has had one."""
    turns = itertools.count()

    def ask() -> bool:
        asked = [(f"j{turn % jobs}", str(turn)) for turn in itertools.islice(turns, len(team))]
        enqueue(place.url, asked, gap=0.3)  # not all at once: a burst would leave each with many children
        time.sleep(2)
        return all(replica.warm() for replica in team)

    place.until(ask, "every replica has run once")
    place.until(lambda: not place.sql("SELECT 1 FROM soloist.run WHERE finished_at IS NULL LIMIT 1"), "all have ended")


def _memory(replica: Replica) -> dict[str, float]:
    tree: list[Any] = [replica.process, *replica.process.children(recursive=True)]
    found = [process.memory_full_info() for process in tree]
    return {"rss": sum(one.rss for one in found), "pss": sum(one.pss for one in found), "processes": len(found)}


def main() -> int:
    """Run it; 1 when something ran."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--replicas", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settle", type=float, default=12)
    parser.add_argument("--warm", action="store_true")
    options = parser.parse_args()
    with ground() as place:
        sides = {side: measure(place, side, options) for side in ("floor", "soloist")}
        unasked = [effect for effect in place.starts() if not effect.key.startswith("manual:")]
        wrong = [f"{len(unasked)} runs started"] if unasked else []
        report(place, "idle", vars(options), sides, wrong)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
