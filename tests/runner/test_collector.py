"""The garbage collector keeps away from a plan in the making, and a plan that is gone is gone without it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from replicas import HERE, jobs_file

from scheduler.app import Soloist
from scheduler.config.jobs_file import parse
from scheduler.config.settings import Settings
from scheduler.core.model import JobSpec
from scheduler.runner.collector import FullRounds

MANY = 300_000  # lists: so many are walked over as a whole several times while they are made


@pytest.fixture
def full_rounds() -> Iterator[list[str]]:
    """Grows with each full round. What was frozen is given back to the collector in the end."""
    seen: list[str] = []

    def count(phase: str, info: dict[str, Any]) -> None:
        if phase == "start" and info["generation"] == 2:
            seen.append(phase)

    gc.collect()
    gc.freeze()
    gc.collect()  # a full round comes when a quarter has come to what the last one left: of this process, that is a lot
    gc.callbacks.append(count)
    yield seen
    gc.callbacks.remove(count)
    gc.unfreeze()


def test_no_full_round_while_a_plan_is_made(full_rounds: list[str]) -> None:
    made = [[number] for number in range(MANY)]
    assert full_rounds, "this test would prove nothing"
    full_rounds.clear()
    usual, frozen = gc.get_threshold(), gc.get_freeze_count()
    with FullRounds().put_off():
        more = [[number] for number in range(MANY)]
    assert not full_rounds
    assert gc.get_threshold() == usual
    assert gc.get_freeze_count() > frozen + len(made + more) // 2  # others may have let go of theirs meanwhile


@pytest.mark.usefixtures("full_rounds")
def test_what_fails_is_left_to_the_collector() -> None:
    usual, frozen = gc.get_threshold(), gc.get_freeze_count()
    with suppress(KeyError), FullRounds().put_off():
        raise KeyError
    assert gc.get_threshold() == usual
    assert gc.get_freeze_count() <= frozen


@pytest.mark.usefixtures("full_rounds")
def test_two_who_make_something_leave_the_collector_as_it_was() -> None:
    usual, rounds = gc.get_threshold(), FullRounds()
    first, second = rounds.put_off(), rounds.put_off()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() != usual, "the other is still at it"
    second.__exit__(None, None, None)
    assert gc.get_threshold() == usual


def _file(edit: int) -> str:
    job = {"call": "effects:append", "schedule": "0 3 * * *", "args": {"path": f"x{edit}"}}
    return jobs_file(**{f"j{number}": job for number in range(20)})


@pytest.mark.parametrize("mark", ["", "#\t\n"], ids=["read by libyaml", "read by ruamel.yaml"])
def test_a_plan_goes_without_the_collector(database_url: str, tmp_path: Path, mark: str) -> None:
    """What is frozen with the plan of an edit would stay for ever if it had cycles."""
    file = tmp_path / "jobs.yaml"
    plan = parse(_file(0).encode(), "jobs.yaml", HERE / "bodies")
    parts, _ = Soloist(Settings(replica="r"), plan, database_url, watched=file).wire()
    follower, reloader = parts.follower, parts.follower.reloader
    assert reloader is not None
    follower.make_by(FullRounds().put_off)
    follower.start()
    specs = []
    gc.collect()
    gc.disable()
    try:
        for edit in range(1, 5):
            file.write_text(mark + _file(edit))
            reloader.ask()
            reloader._step()
            follower.step()
            assert parts.plan.specs["j0"].args["path"] == f"x{edit}"
            gc.unfreeze()
            specs.append(sum(isinstance(one, JobSpec) for one in gc.get_objects()))
    finally:
        gc.enable()
        for session in parts.sessions.values():
            session.close()
        for kind in parts.kinds.values():
            kind.close()
    assert specs[1:] == specs[1:2] * 3, "specs of former plans are still there"
