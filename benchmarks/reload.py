"""Whether ticks stay on time while a large jobs file is edited under a replica.

    python -m benchmarks.reload [--jobs 1000 10000] [--edits 3]

A replica (`soloist serve`, 16 seats, threads) has a job that ticks five times a second beside many that do not tick.
One of those is edited, again and again. Prints one JSON line for each size: `taken_s`, from the end of the write until
the edit is in force in the database (the slowest edit); `quiet_*` and `edited_*`, milliseconds from a tick to the start
of its body by the database's clock, before the first edit and while they go on. Fails when a tick has no run.

Goals: an edit of 1,000 jobs is in force within 5 s, of 10,000 within 30 s, and no tick is missed meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.check import FUNCTIONS, HEAD, entry
from benchmarks.ground import REPO, Ground, ground, percentile

PULSE = "  pulse: {every: 200ms, call: work:pulse, isolation: thread, overlap: allow, timeout: 10s}\n"
DELAYS = """
    SELECT extract(epoch FROM run.started_at - run.scheduled_at) * 1000
    FROM soloist.run JOIN soloist.job ON job.id = run.job
    WHERE job.name = 'pulse' AND run.started_at IS NOT NULL
      AND run.scheduled_at BETWEEN to_timestamp(%s) AND to_timestamp(%s)
"""


def write(folder: Path, jobs: int, edit: int) -> None:
    """The file with so many jobs; `edit` differs in one of them. It takes its name when it is whole."""
    text = HEAD + PULSE + "".join(map(entry, range(1, jobs)))
    text = text.replace("    args: {region: 1, ", f"    args: {{region: {1000 + edit}, ", 1)
    beside = folder / "jobs.new"
    beside.write_text(text, encoding="utf-8")
    beside.rename(folder / "jobs.yaml")


def generation(place: Ground) -> int:
    """Of the newest edit that is in force."""
    return int(place.sql("SELECT COALESCE(max(generation), 0) FROM soloist.job")[0][0])


def delays(place: Ground, since: float, until: float) -> tuple[dict[str, float], int]:
    """Start delays of the ticks in a stretch of time, and how many there were."""
    found = [float(row[0]) for row in place.sql(DELAYS, since, until)]
    return {"p50_ms": percentile(found, 0.5), "p99_ms": percentile(found, 0.99), "max_ms": max(found)}, len(found)


def measure(place: Ground, folder: Path, jobs: int, edits: int) -> tuple[dict[str, float], int]:
    """The figures, and how many ticks were missed while the file was edited."""
    write(folder, jobs, 0)
    (folder / "work.py").write_text(FUNCTIONS + "def pulse(ctx): pass\n", encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(REPO), "SOLOIST_DATABASE_URL": place.url}
    with (folder / "log").open("w") as log:
        replica = subprocess.Popen(
            [sys.executable, "-m", "scheduler", "serve"], cwd=folder, env=environment, stdout=log, stderr=log
        )
    try:
        place.until(lambda: bool(place.sql("SELECT to_regclass('soloist.run')")[0][0]), "the schema is there")
        place.until(lambda: bool(place.sql(DELAYS + " LIMIT 1", 0, 1e11)), "it ticks")
        time.sleep(3)
        began = time.time()
        time.sleep(10)
        quiet, _ = delays(place, began, time.time() - 1)
        taken, first = [], time.time()
        for edit in range(1, edits + 1):
            known = generation(place)
            write(folder, jobs, edit)
            at = time.time()
            place.until(lambda known=known: generation(place) > known, "the edit is in force")  # type: ignore[misc]
            taken.append(time.time() - at)
        last = time.time()
        time.sleep(2)
        edited, ticks = delays(place, first, last)
    finally:
        replica.send_signal(signal.SIGTERM)
        replica.wait(60)
    figures = {"taken_s": max(taken)} | {f"quiet_{k}": v for k, v in quiet.items()}
    figures |= {f"edited_{k}": v for k, v in edited.items()}
    return {key: round(value, 2) for key, value in figures.items()}, max(0, int((last - first) * 5) - ticks)


def main() -> int:
    """Print one line a size; 1 when a tick was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--edits", type=int, default=3)
    options = parser.parse_args()
    failed = False
    for jobs in options.jobs:
        with ground() as place, tempfile.TemporaryDirectory() as name:
            figures, missed = measure(place, Path(name), jobs, options.edits)
        failed = failed or missed > 0
        print(
            json.dumps({"row": "reload", "cell": {"jobs": jobs}, "soloist": figures | {"missed": missed}}), flush=True
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
