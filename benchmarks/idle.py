"""What it costs to wait: R replicas, J jobs of which none is due.

    python -m benchmarks.idle [--jobs 100] [--replicas 10] [--seconds 60]

All figures are for one replica, after `--settle` seconds. `statements_s` is what its sessions sent,
`statements_counted_s` what the server counted. Memory is that of the whole process tree. Fails when something ran.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from benchmarks.floor import DDL
from benchmarks.ground import Figures, Ground, Replica, Work, ground, report

CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'peer' AND backend_type = 'client backend'"


def measure(place: Ground, side: str, options: argparse.Namespace) -> Figures:
    """Both sides are measured over the same length of time, one after the other."""
    place.clear()
    if side == "floor":
        place.sql(DDL)
    due = time.time() + 12 * 3600
    works = [Work(side, "idle", place.url, n, options.replicas, options.jobs, due) for n in range(options.replicas)]
    with place.team(works) as team:
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
    options = parser.parse_args()
    with ground() as place:
        sides = {side: measure(place, side, options) for side in ("floor", "soloist")}
        wrong = [f"{len(place.starts())} runs started"] if place.starts() else []
        report(place, "idle", vars(options), sides, wrong)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
