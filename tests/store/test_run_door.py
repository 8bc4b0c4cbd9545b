"""The body's door to the database, where the database's own settings are against it."""

from __future__ import annotations

import uuid

from scene import BASE, Scene, spec
from sqlalchemy import text

from scheduler.core.context import RunInfo
from scheduler.store import runs
from scheduler.store.transaction import RunDoor

JOB = spec("a")


def info(run: uuid.UUID, owner: uuid.UUID) -> RunInfo:
    return RunInfo(run, "a", "k", BASE, 1, str(owner))


def test_a_stricter_default_does_not_fail_a_commit_that_a_renewal_has_crossed(scene: Scene) -> None:
    scene.jobs(JOB)
    owner = scene.owner()
    run = scene.running(owner, JOB)
    role = scene.sql("SELECT current_user AS name")[0]["name"]
    scene.sql(f"ALTER ROLE {role} SET default_transaction_isolation = 'repeatable read'")
    door = RunDoor(scene.url)
    try:
        with door.transaction(info(run, owner.id), checkpoint=None, has_checkpoint=False) as connection:
            connection.execute(text("SELECT 1"))
            assert set(runs.renew(scene.mine, owner, [(run, 1, None)]).renewed) == {(run, 1)}
    finally:
        scene.sql(f"ALTER ROLE {role} RESET default_transaction_isolation")
        door.close()
    assert scene.row(run)["status"] == "succeeded"
