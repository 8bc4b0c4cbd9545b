"""Start delay of one job a second.

    python -m benchmarks.latency [--replicas 3] [--seconds 60] [--isolation thread process]

`p50_ms`, `p99_ms`, `max_ms`: from the tick to the body's first line. `statements` and the like are for one tick, of all
replicas together. Fails when a tick was missed or ran twice.
"""

from __future__ import annotations

import argparse
import math
import sys
import time

from benchmarks.effects import judge
from benchmarks.floor import DDL
from benchmarks.ground import Figures, Ground, Work, ground, per_run, percentile, report


def measure(place: Ground, side: str, isolation: str, options: argparse.Namespace) -> tuple[Figures, list[str]]:
    """Watch the ticks of a stretch of time."""
    place.clear()
    if side == "floor":
        place.sql(DDL)
    replicas, seconds = options.replicas, options.seconds
    works = [Work(side, "latency", place.url, n, replicas, isolation=isolation) for n in range(replicas)]
    with place.team(works) as team:
        if side == "soloist" and isolation == "process":
            # the first body of a replica waits for its zygote; that is told apart from what every later one waits for
            place.until(lambda: all(replica.warm() for replica in team), "every replica has run once")
        first = math.ceil(time.time() + options.settle)
        time.sleep(first - 0.8 - time.time())
        before = place.counters(team)
        time.sleep(first + seconds - 0.8 - time.time())
        after = place.counters(team)
        time.sleep(2)
    starts = [effect for effect in place.starts() if first <= effect.scheduled < first + seconds]
    keys = {effect.scheduled: effect.key for effect in starts}
    wrong = judge(starts, (("j0", keys.get(float(first + n), f"at {first + n}")) for n in range(seconds)))
    delays = [(effect.at - effect.scheduled) * 1e3 for effect in starts]
    return {
        "p50_ms": percentile(delays, 0.5),
        "p99_ms": percentile(delays, 0.99),
        "max_ms": max(delays),
        **per_run(before, after, seconds),
    }, wrong


def main() -> int:
    """Run it; 1 when something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--settle", type=float, default=4)
    parser.add_argument("--isolation", nargs="+", choices=["thread", "process"], default=["thread", "process"])
    options = parser.parse_args()
    failed = False
    with ground() as place:
        for isolation in options.isolation:
            sides, wrong = {}, []
            for side in ("floor", "soloist"):
                sides[side], found = measure(place, side, isolation, options)
                wrong += [f"{side}: {what}" for what in found]
            cell = {**vars(options), "isolation": isolation}
            report(place, "latency", cell, sides, wrong)
            failed |= bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
