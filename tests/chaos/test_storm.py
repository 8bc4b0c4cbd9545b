"""Two minutes of everything at once: no tick lost, none done twice; and the same without the fence is found out."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path

import pytest
from chaos.faults import Kind, Weather, forecast
from chaos.history import Breach, breaches
from chaos.storm import Storm, report
from own_server import OwnServer
from replicas import Nursery

SEED, SECONDS = 20261129, 120.0
MOST = 600  # seconds that a storm may take with its beginning and its end, on a busy machine


@pytest.mark.timeout(MOST)
def test_a_storm_loses_no_tick_and_doubles_none(nursery: Nursery, tmp_path: Path, own_server: OwnServer) -> None:
    weather = Weather(SECONDS, slots=6)
    storm = Storm(nursery, tmp_path, own_server, weather)
    said = report(storm, storm.rage(forecast(SEED, weather)))
    print(f"seed {SEED}\n{said}")
    assert not said.findings
    assert not said.deaths
    # a storm in which nothing happened would prove nothing
    assert said.seen["takeovers"] >= 20
    assert said.seen["fenced writes"] >= 5
    assert said.seen["unclear commits"] >= 1
    assert said.faults.total() >= 60
    assert set(said.faults) == set(Kind)
    assert said.seen["runs"] >= SECONDS / 0.5 * len(storm.jobs)


@pytest.fixture
def unfenced(tmp_path: Path) -> Path:
    """The engine's statements, but that an attempt's end is written by whoever comes."""
    folder = tmp_path / "unfenced"
    shutil.copytree(str(files("scheduler.store").joinpath("sql")), folder / "sql")
    without = {
        "settle": (
            " AND run.attempt = ended.attempt AND run.claimed_by = %(me)s::uuid\n      AND run.status = ended.was",
        ),
        "succeed_in_transaction": (
            " AND attempt = %(attempt)s AND claimed_by = %(owner)s::uuid AND status = 'running'",
        ),
    }
    for name, fences in without.items():
        path = folder / "sql" / f"{name}.sql"
        text = path.read_text()
        for fence in fences:
            assert text.count(fence) == 1, f"{name}.sql has another fence by now: take that out here"
            text = text.replace(fence, "")
        path.write_text(text)
    # the history's own key would still refuse the zombie's line, and with it its effect
    door = folder / "sql" / "succeed_in_transaction.sql"
    door.write_text(door.read_text().partition("INSERT INTO")[0] + "SELECT id FROM won")
    return folder


@pytest.mark.timeout(MOST)
def test_without_the_fence_the_checker_finds_ticks_done_twice(
    nursery: Nursery, tmp_path: Path, own_server: OwnServer, unfenced: Path
) -> None:
    """Bodies in threads: nobody kills them while their replica is frozen, so nothing but the fence holds them off."""
    weather = Weather(25.0, slots=3, gap=0.2, spared=1, restart=False, weights={Kind.FREEZE: 1})
    storm = Storm(nursery, tmp_path, own_server, weather, jobs=("zombie", "flaky"), statements=unfenced)
    said = report(storm, storm.rage(forecast(SEED, weather)))
    print(f"seed {SEED}\n{said}")
    assert Breach.TWO_EFFECTIVE in breaches(said.findings)
