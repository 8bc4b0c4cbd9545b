"""What bodies of the benchmarks do, and how it is counted: by nobody's own word.

A body appends one line to a file of its process. That costs about 2 µs, adds no database traffic, and survives whatever
happens to the process, so starts, doubles and misses are seen from outside of what is measured.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = "BENCH_EFFECTS"
BEAT = 0.02  # seconds between two signs of life of a body that holds on

_files: dict[int, int] = {}  # by pid: a child that was forked must not write to its parent's file


@dataclass(frozen=True, slots=True)
class Effect:
    """One line. `scheduled`, `at`: seconds since the epoch; `what`: `start` or `beat`."""

    what: str
    job: str
    key: str
    attempt: int
    scheduled: float
    at: float
    pid: int


def record(job: str, key: str, attempt: int = 1, scheduled: float = 0.0, what: str = "start") -> None:
    """The effect: one write with O_APPEND."""
    pid = os.getpid()
    file = _files.get(pid)
    if file is None:
        flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY
        file = _files[pid] = os.open(f"{os.environ[FOLDER]}/{pid}.log", flags, 0o644)
    os.write(file, f"{what}\t{job}\t{key}\t{attempt}\t{scheduled}\t{time.time()}\t{pid}\n".encode())


def read(folder: Path) -> list[Effect]:
    """Every effect so far, in order of time."""
    found = []
    for file in folder.glob("*.log"):
        for line in file.read_text().split("\n")[:-1]:
            what, job, key, attempt, scheduled, at, pid = line.split("\t")
            found.append(Effect(what, job, key, int(attempt), float(scheduled), float(at), int(pid)))
    return sorted(found, key=lambda effect: effect.at)


def judge(starts: Iterable[Effect], expected: Iterable[tuple[str, str]]) -> list[str]:
    """What is wrong: runs, by (job, key), that started twice, never, or that nobody asked for. Empty: nothing is."""
    seen = Counter((effect.job, effect.key) for effect in starts)
    wanted = set(expected)
    wrong = {
        "doubled": [run for run, times in seen.items() if times > 1],
        "lost": [run for run in wanted if run not in seen],
        "unexpected": [run for run in seen if run not in wanted],
    }
    return [f"{len(runs)} runs {how}, e.g. {sorted(runs)[0]}" for how, runs in wrong.items() if runs]


def effect(ctx: Any) -> None:
    """The body of nearly all: one effect and no work."""
    record(ctx.job, ctx.run_key, ctx.attempt, ctx.scheduled_at.timestamp())


def hold(ctx: Any) -> None:
    """A body that works, a beat every 20 ms, until its gate (a file beside the effects) stands open."""
    record(ctx.job, ctx.run_key, ctx.attempt)
    gate = Path(os.environ[FOLDER]) / f"{ctx.run_key.removeprefix('manual:')}.gate"
    while not gate.exists():
        record(ctx.job, ctx.run_key, ctx.attempt, what="beat")
        time.sleep(BEAT)
