"""Every benchmark, one after the other.

    python -m benchmarks            a short set: a look, about five minutes
    python -m benchmarks --long     the figures of docs/performance.md, about an hour, into benchmarks/results.jsonl
    python -m benchmarks --only fan_in idle

Exit code 1 when a run of any of them was doubled or lost.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from benchmarks.ground import REPO, RESULTS

SHORT = {
    "fan_in": ["--jobs 1000 --rounds 2"],
    "idle": ["--seconds 15"],
    "latency": ["--seconds 15"],
    "backlog": ["--runs 5000 --rounds 1 --probes 40"],
    "failover": ["--rounds 3 --frozen 0"],
    "history": ["--rows 0 100000 --repeats 20"],
}
LONG = {
    "fan_in": ["--jobs 1000 10000 --replicas 3 8", "--jobs 1000 --logs"],
    "idle": ["", "--warm"],
    "latency": [""],
    "backlog": ["", "--isolation process --seats 64"],
    "failover": [""],
    "history": [""],
}


def main() -> int:
    """Run them; 1 when one has failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", nargs="+", choices=list(SHORT), default=list(SHORT))
    options = parser.parse_args()
    chosen = LONG if options.long else SHORT
    environment = dict(os.environ)
    if options.long:
        environment.setdefault(RESULTS, str(REPO / "benchmarks" / "results.jsonl"))
    failed = []
    for row in options.only:
        for words in chosen[row]:
            command = [sys.executable, "-m", f"benchmarks.{row}", *words.split()]
            print("\n" + " ".join(["python", *command[1:]]), flush=True)
            if subprocess.run(command, cwd=REPO, env=environment, check=False).returncode:
                failed.append(" ".join(command[2:]))
    for name in failed:
        print(f"FAILED {name}", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
