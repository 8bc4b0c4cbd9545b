"""What it costs to check a large jobs file: `soloist check`, `soloist next` and the reading alone, without a server.

    python -m benchmarks.check [--jobs 1000 10000] [--rounds 3]

The jobs look like real ones: schedules, args, retries, descriptions, a few of several lines. Prints one JSON line for
each size: seconds of wall time and of CPU (the whole process, the interpreter's start and imports among them), the best
of all rounds. `yaml_cpu_s`: what ruamel.yaml alone takes to scan the same text, as the floor that a YAML library sets.

Goals: a check of 1,000 jobs in 3 s, of 10,000 in 30 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ruamel.yaml import YAML

from benchmarks.ground import REPO
from scheduler.config.jobs_file import load

FUNCTIONS = "".join(f"def task{n}(ctx, region: int, dry: bool = False, mode: str = 'full'): pass\n" for n in range(50))
HEAD = """\
version: 1
timezone: Europe/London
defaults: {timeout: 10m, retry: {attempts: 3, backoff: 1m, max: 1h}}
retention: {succeeded: 30d, failed: 180d, skipped: 7d}
jobs:
"""


def entry(number: int) -> str:
    """One job; every tenth has a description of several lines, every fifth an interval instead of a time."""
    when = f"every: {5 + number % 50}m" if number % 5 == 0 else f'schedule: "{number % 60} {number // 60 % 24} * * *"'
    text = (
        "|\n      Sends what is due.\n      Ask billing first." if number % 10 == 0 else f"Sends what is due, {number}"
    )
    return f"""\
  send-region-{number:05}:
    description: {text}
    {when}
    call: work:task{number % 50}
    args: {{region: {number}, mode: "full"}}
    timeout: {1 + number % 4}m
    retry: {{attempts: 2, backoff: 10s}}
    misfire: {{policy: latest, within: 26h}}
    jitter: 30s
    owner: team-{number % 9} # who is called at night
    runbook: https://example.com/runbooks/{number}
"""


def command(folder: Path, *words: str) -> tuple[float, float]:
    """Wall and CPU seconds of a command that has to end well."""
    began = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(REPO)}
    process = subprocess.Popen(
        [sys.executable, "-m", "scheduler", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"soloist {' '.join(words)} ended with {process.returncode}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime


def cpu(act: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    began = time.process_time()
    act()
    return time.process_time() - began


def measure(jobs: int, rounds: int) -> dict[str, float]:
    """The best of all rounds, figure by figure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "jobs.yaml"
        path.write_text(HEAD + "".join(map(entry, range(jobs))), encoding="utf-8")
        (folder / "work.py").write_text(FUNCTIONS, encoding="utf-8")
        found = []
        for _ in range(rounds):
            (check, check_cpu), (following, next_cpu) = command(folder, "check"), command(folder, "next")
            found.append(
                {
                    "check_s": check,
                    "check_cpu_s": check_cpu,
                    "next_s": following,
                    "next_cpu_s": next_cpu,
                    "read_cpu_s": cpu(lambda: load(path)),
                }
            )
        best = {key: round(min(one[key] for one in found), 2) for key in found[0]}
        text = path.read_text(encoding="utf-8")
        return best | {"yaml_cpu_s": round(cpu(lambda: list(YAML(typ="safe", pure=True).parse(text))), 2)}


def main() -> int:
    """Print one line a size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for jobs in options.jobs:
        print(
            json.dumps({"row": "check", "cell": {"jobs": jobs}, "soloist": measure(jobs, options.rounds)}), flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
