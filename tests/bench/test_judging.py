"""The benchmarks' own judgement, on planted effects: a run that was doubled or lost must never pass for a fast one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import effects
from benchmarks.effects import Effect, judge
from benchmarks.ground import REPO, medians, per_run, percentile, ratios

RUNS = [("j0", "k"), ("j1", "k"), ("j2", "k")]


def started(job: str, key: str = "k") -> Effect:
    return Effect("start", job, key, 1, 0.0, 0.0, 1)


def test_one_start_of_each_run_is_right() -> None:
    assert judge([started(job) for job, _ in RUNS], RUNS) == []


@pytest.mark.parametrize(
    ("starts", "word"),
    [
        ([started("j0"), started("j1"), started("j2"), started("j1")], "1 runs doubled, e.g. ('j1', 'k')"),
        ([started("j0"), started("j2")], "1 runs lost, e.g. ('j1', 'k')"),
        ([*(started(job) for job, _ in RUNS), started("j0", "other")], "1 runs unexpected, e.g. ('j0', 'other')"),
    ],
)
def test_what_is_wrong_is_said(starts: list[Effect], word: str) -> None:
    assert judge(starts, RUNS) == [word]


def test_a_start_under_another_key_is_both_lost_and_unexpected() -> None:
    found = judge([started("j0", "late"), started("j1"), started("j2")], RUNS)
    assert [what.split(",")[0] for what in found] == ["1 runs lost", "1 runs unexpected"]


FORKED = """
import os
from benchmarks import effects
effects.record("j0", "a", attempt=2, scheduled=12.5)
child = os.fork()
if child == 0:
    effects.record("j1", "b", what="beat")
    os._exit(0)
os.waitpid(child, 0)
effects.record("j2", "c")
"""


def test_effects_of_forked_processes_are_read_back_in_order(tmp_path: Path) -> None:
    environment = {**os.environ, effects.FOLDER: str(tmp_path), "PYTHONPATH": str(REPO)}
    subprocess.run([sys.executable, "-c", FORKED], env=environment, check=True, timeout=60)
    found = effects.read(tmp_path)
    assert [(e.what, e.job, e.key, e.attempt, e.scheduled) for e in found] == [
        ("start", "j0", "a", 2, 12.5),
        ("beat", "j1", "b", 1, 0.0),
        ("start", "j2", "c", 1, 0.0),
    ]
    assert found[0].pid == found[2].pid != found[1].pid
    assert len(list(tmp_path.iterdir())) == 2, "each process has a file of its own"


def test_figures() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([float(n) for n in range(1, 101)], 0.99) == 99.0
    assert percentile([7.0], 0.01) == 7.0
    assert medians([{"a": 1.0}, {"a": 9.0}, {"a": 2.0}]) == {"a": 2.0}
    assert ratios({"a": 3.0, "b": 1.0, "c": 1.0}, {"a": 2.0, "b": 0.0}) == {"a": 1.5}


def test_the_cost_of_a_run_is_what_was_used_between_two_counts() -> None:
    before = {"sent": 10.0, "wal": 100.0, "xacts": 5.0, "cpu": 1.0, "server_cpu": 2.0}
    after = {"sent": 30.0, "wal": 1100.0, "xacts": 15.0, "cpu": 1.5, "server_cpu": 2.1}
    cost = per_run(before, after, 10)
    assert cost == pytest.approx(
        {"statements": 2.0, "wal_bytes": 100.0, "write_xacts": 1.0, "cpu_ms": 50.0, "server_cpu_ms": 10.0}
    )
    counted = per_run(before | {"counted": 0.0}, after | {"counted": 40.0}, 10)
    assert counted["statements_counted"] == 4.0
