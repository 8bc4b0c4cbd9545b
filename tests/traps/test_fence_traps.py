"""Traps of the lease: a body's transaction that blocks all renewals, the fence that comes last, writers crosswise."""

from __future__ import annotations

import random
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from scene import Scene, birth, spec
from sqlalchemy import text

from scheduler.core.context import RunInfo
from scheduler.core.errors import LeaseLost
from scheduler.core.model import Ending, Outcome, Status
from scheduler.core.policy import Decision
from scheduler.store import runs
from scheduler.store.claims import Owner
from scheduler.store.runs import Settlement
from scheduler.store.transaction import RunDoor
from scheduler.store.visit import patiently

JOBS = [spec(f"j-{n}") for n in range(5)]


def _info(scene: Scene, owner: Owner, run: uuid.UUID) -> RunInfo:
    row = scene.row(run)
    return RunInfo(run, "j-0", row["run_key"], row["scheduled_at"], row["attempt"], str(owner.id))


def _started(scene: Scene, lease: float = 60.0) -> tuple[Owner, list[uuid.UUID]]:
    scene.jobs(*JOBS)
    owner = scene.owner(lease=lease)
    made = scene.claim(owner, *(scene.want(one, birth(1)) for one in JOBS)).made
    return owner, [row.id for row in made]


def test_a_body_in_its_transaction_blocks_no_renewal_and_no_finish(scene: Scene) -> None:
    """Trap: with the fence taken first, the renewal of all five came back after the body's six seconds."""
    owner, ids = _started(scene)
    door = RunDoor(scene.url)
    scene.sql("CREATE TABLE IF NOT EXISTS public.effect (run uuid)")
    with door.transaction(_info(scene, owner, ids[0]), checkpoint=None, has_checkpoint=False) as connection:
        connection.execute(text("INSERT INTO public.effect VALUES (:run)"), {"run": ids[0]})
        scene.mine.execute("SET statement_timeout = '5s'")
        renewal = runs.renew(scene.mine, owner, [(run, 1, None) for run in ids])
        assert set(renewal.renewed) == {(run, 1) for run in ids}
        end = Settlement(ids[1], 1, Decision(Status.SUCCEEDED), Ending(Outcome.SUCCEEDED))
        assert len(runs.settle(scene.mine, owner, [end])) == 1
    assert scene.row(ids[0])["status"] == "succeeded"
    door.close()


def test_while_a_commit_holds_one_row_the_others_are_renewed(scene: Scene) -> None:
    owner, ids = _started(scene)
    with scene.facts.transaction():
        scene.sql("SELECT 1 FROM soloist.run WHERE id = %s FOR NO KEY UPDATE", ids[0])
        assert set(runs.renew(scene.mine, owner, [(run, 1, None) for run in ids]).renewed) == {
            (run, 1) for run in ids[1:]
        }


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_zombie_in_its_transaction_commits_nothing(scene: Scene, checkpoint: bool) -> None:
    owner, ids = _started(scene)
    door = RunDoor(scene.url)
    scene.sql("CREATE TABLE IF NOT EXISTS public.effect (run uuid)")
    with pytest.raises(LeaseLost, match="attempt 1"):  # noqa: PT012
        door_of = door.transaction(_info(scene, owner, ids[0]), checkpoint={"step": 1}, has_checkpoint=checkpoint)
        with door_of as connection:
            connection.execute(text("INSERT INTO public.effect VALUES (:run)"), {"run": ids[0]})
            scene.expire(ids[0])
            assert len(runs.take_over(scene.mine, [(ids[0], scene.row(ids[0])["claimed_until"])])) == 1
    assert scene.sql("SELECT count(*) AS n FROM public.effect WHERE run = %s", ids[0]) == [{"n": 0}]
    row = scene.row(ids[0])
    assert (row["status"], row["checkpoint"]) == ("queued", None)
    door.close()


def test_renewals_beside_finishes_neither_deadlock_nor_starve(scene: Scene) -> None:
    specs = [spec(f"n-{n}") for n in range(200)]
    scene.jobs(*specs)
    owner = scene.owner()
    ids = [row.id for row in scene.claim(owner, *(scene.want(one, birth(1)) for one in specs)).made]
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before, renewals = scene.sql(deadlocks), []
    left = set(ids)
    lock = threading.Lock()

    def keep() -> None:
        session, asked = scene.session("keeper"), [(run, 1, None) for run in ids]
        while left or len(renewals) <= 20:
            renewals.append(len(patiently(lambda: runs.renew(session, owner, asked)).renewed))

    def back_and_forth(seed: int) -> None:
        """Ends that put the run back to `queued`, in random order, and dequeues that give it back to the owner."""
        session, chance = scene.session(f"settler{seed}"), random.Random(seed)
        while left:
            with lock:
                batch = chance.sample(sorted(left), min(20, len(left)))
                left.difference_update(batch)
            chance.shuffle(batch)
            done = Decision(Status.SUCCEEDED), Ending(Outcome.SUCCEEDED)
            ends = [Settlement(run, 1, *done) for run in batch]
            settled = patiently(lambda ends=ends: runs.settle(session, owner, ends))
            assert len(settled) == len(batch)
            threading.Event().wait(0.1)

    with ThreadPoolExecutor(3) as threads:
        for part in [threads.submit(keep), threads.submit(back_and_forth, 1), threads.submit(back_and_forth, 2)]:
            part.result(60)
    assert scene.sql(deadlocks) == before
    assert {row["status"] for row in scene.rows()} == {"succeeded"}


def test_a_checkpoint_is_fenced_and_refuses_what_is_not_json(scene: Scene) -> None:
    owner, ids = _started(scene)
    door = RunDoor(scene.url)
    info = _info(scene, owner, ids[0])
    door.save_checkpoint(info, {"step": 3})
    assert scene.row(ids[0])["checkpoint"] == {"step": 3}
    bad: Any
    for bad in ({1, 2}, float("nan"), "x" * 70_000):
        with pytest.raises(ValueError, match="checkpoint"):
            door.save_checkpoint(info, bad)
    scene.sql("UPDATE soloist.run SET attempt = 2 WHERE id = %s", ids[0])
    with pytest.raises(LeaseLost):
        door.save_checkpoint(info, {"step": 4})
    assert scene.row(ids[0])["checkpoint"] == {"step": 3}
    door.close()
