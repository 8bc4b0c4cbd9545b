"""The benchmarks run, and so does Soloist's part in the harness that measures several job runners side by side."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from replicas import eventually

from benchmarks.ground import REPO

HARNESS = REPO.parent / "shared" / "bench" / "benchlib.py"


@pytest.mark.full
def test_a_benchmark_leaves_a_line_with_both_sides_and_nothing_wrong(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    environment = {**os.environ, "PYTHONPATH": str(REPO), "BENCH_RESULTS": str(results)}
    words = ["--jobs", "60", "--replicas", "2", "--rounds", "1", "--seats", "20"]
    command = [sys.executable, "-m", "benchmarks.fan_in", *words]
    done = subprocess.run(command, env=environment, cwd=REPO, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(results.read_text())
    assert found["wrong"] == []
    for side in ("floor", "soloist"):
        assert found[side]["all_finished_ms"] > 0
        assert found[side]["cpu_ms"] > 0
    assert found["ratio"]["statements"] > 0


@pytest.mark.full
@pytest.mark.skipif(not HARNESS.exists(), reason="the harness that measures several job runners is not here")
@pytest.mark.parametrize("variant", ["", "threads"])
def test_the_harness_can_play_soloist(tmp_path: Path, database_url: str, variant: str) -> None:
    (tmp_path / "adapters").mkdir()
    (tmp_path / "effects").mkdir()
    shutil.copy(HARNESS, tmp_path)
    adapter = tmp_path / "adapters" / "soloist_.py"
    shutil.copy(REPO / "benchmarks" / "adapter_soloist.py", adapter)
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPO),
        "BENCH_DSN": database_url,
        "BENCH_EFFECTS": str(tmp_path / "effects"),
        "BENCH_WORKLOAD": json.dumps({"kind": "queue", "jobs": 0}),
        "BENCH_VARIANT": variant,
    }

    def call(*words: str) -> str:
        command = [sys.executable, str(adapter), *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def starts() -> list[str]:
        lines = [
            line.split("\t") for file in (tmp_path / "effects").glob("*.log") for line in file.read_text().splitlines()
        ]
        return sorted(words[1] for words in lines if words[0] == "start")

    assert json.loads(call("caps"))["resolution"] == "second"
    call("setup")
    call("enqueue", "3")
    replica = subprocess.Popen([sys.executable, str(adapter), "replica"], env=environment)
    try:
        eventually(lambda: starts() == ["e0", "e1", "e2"], "the backlog has run")
        call("probe", "2", "0.01")
        eventually(lambda: starts() == ["e0", "e1", "e2", "p0", "p1", "warm"], "the probes have run")
    finally:
        replica.terminate()
        assert replica.wait(60) == 0


def test_the_pieces_of_a_run_can_be_weighed() -> None:
    command = [sys.executable, "-m", "benchmarks.pieces", "--rounds", "4"]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["soloist"]
    assert set(figures) == {"wins_us", "loses_us", "attempt_us", "whole_us"}
    assert all(figure > 0 for figure in figures.values())
