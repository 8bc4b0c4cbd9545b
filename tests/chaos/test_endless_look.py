"""A look at the jobs file that never ends: the replica ticks on beside it, follows the others, and stops when told."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from replicas import Fleet, Replica, eventually, jobs_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Written by whoever starts replicas with it."""
    folder = tmp_path / "config"
    folder.mkdir()
    return folder / "jobs.yaml"


def _plan(fleet: Fleet, **more: str) -> str:
    ticks = {"call": "effects:append", "every": "300ms", "isolation": "thread", "args": {"path": str(fleet.effects)}}
    return jobs_file(a=ticks, **{name: {"call": call} for name, call in more.items()})


def _import_without_end(fleet: Fleet, file: Path) -> None:
    file.write_text(_plan(fleet, late="endless_import:work"))


def _file_without_end(fleet: Fleet, file: Path) -> None:
    """Whoever opens it waits for somebody to write into it."""
    beside = file.with_suffix(".new")
    os.mkfifo(beside)
    beside.rename(file)


def _start(fleet: Fleet, file: Path) -> Replica:
    fleet.environment["SOLOIST_TEST_GATE"] = str(fleet.gate)
    file.write_text(_plan(fleet))
    replica = fleet.start("", file=file).ready()
    eventually(lambda: len(fleet.lines()) > 2, "it ticks")
    return replica


@pytest.mark.parametrize("hang", [_import_without_end, _file_without_end])
def test_a_replica_goes_on_and_stops_beside_it(fleet: Fleet, file: Path, hang: Callable[[Fleet, Path], None]) -> None:
    replica = _start(fleet, file)
    hang(fleet, file)
    replica.signal(signal.SIGHUP)  # it looks at once
    ticked = len(fleet.lines())
    eventually(lambda: len(fleet.lines()) > ticked + 5, "it ticks on")
    fleet.sql("UPDATE soloist.job SET paused_at = now(), paused_reason = 'by hand'")
    fleet.sql("NOTIFY soloist, 'plan'")
    eventually(lambda: replica.events("JobPaused", job="a"), "it sees what was done in the database")
    assert not replica.events("PlanReloaded", "PlanRefused")
    replica.signal(signal.SIGTERM)
    assert replica.ended() == 0
    assert replica.events("ReplicaStopped")


def test_an_edit_whose_import_took_long_is_taken_when_it_ends(fleet: Fleet, file: Path) -> None:
    replica = _start(fleet, file)
    _import_without_end(fleet, file)
    replica.signal(signal.SIGHUP)
    ticked = len(fleet.lines())
    eventually(lambda: len(fleet.lines()) > ticked + 5, "it ticks on")
    assert not replica.events("PlanReloaded")
    fleet.gate.touch()
    eventually(lambda: replica.events("JobEdited", job="late", change="added"), "it is in force")
