"""The sweeper's look: what is ready, when the next is, and whose queued runs nobody will ever take."""

from __future__ import annotations

import pytest
from scene import Scene, spec

from scheduler.core.model import Overlap
from scheduler.store import claims, runs

OPEN, NEWER, GONE = (spec(name, overlap=Overlap.ALLOW) for name in ("open", "newer", "gone"))


def _look(scene: Scene) -> runs.Look:
    return runs.look(scene.mine, scene.owner(), 1)


def _queue(scene: Scene, *of: tuple[str, int, float]) -> None:
    """Runs of (job, priority, ready in so many seconds)."""
    for n, (job, priority, seconds) in enumerate(of):
        scene.sql(
            "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, exclusive, status, priority, ready_at)"
            " SELECT gen_random_uuid(), id, %s || gen_random_uuid(), now(), 'manual', false, 'queued', %s,"
            " clock_timestamp() + make_interval(secs => %s) FROM soloist.job WHERE name = %s",
            str(n),
            priority,
            seconds,
            job,
        )


@pytest.mark.parametrize(
    ("queued", "ready", "next_in"),
    [
        ([], False, None),
        ([("open", 0, -1)], True, None),
        ([("open", 0, 900)], False, 900),
        ([("open", -5, 900), ("open", 0, 600), ("open", 3, 300), ("open", 3, 1200)], False, 300),
        ([("open", -5, 300), ("open", -7, 600), ("open", 3, 900)], False, 300),
        ([("open", -5, 900), ("open", 0, 600), ("open", 3, -1)], True, 600),
        ([("open", -5, -1), ("open", 0, 600), ("open", 3, 300)], True, 300),
        ([("open", -5, -2), ("open", -5, -1), ("open", -5, 60), ("open", 0, -1)], True, 60),
        ([("newer", -5, -1), ("newer", 3, -1)], False, None),
        ([("newer", -5, -1), ("open", 3, -1)], True, None),
        ([("newer", 0, -2), ("open", 0, -1)], True, None),
    ],
)
def test_a_look_sees_what_is_ready_and_what_comes_next_in_every_priority(
    scene: Scene, queued: list[tuple[str, int, float]], ready: bool, next_in: float | None
) -> None:
    scene.jobs(OPEN, NEWER)
    scene.sql("UPDATE soloist.job SET spec_hash = 'newer' WHERE name = 'newer'")  # nothing that this replica may take
    _queue(scene, *queued)
    seen = _look(scene)
    assert (seen.ready, seen.stale) == (ready, False)
    assert seen.next_in == (None if next_in is None else pytest.approx(next_in, abs=30))


@pytest.mark.parametrize("priority", [-5, 0, 3])
def test_a_look_sees_queued_runs_of_a_removed_job(scene: Scene, priority: int) -> None:
    scene.jobs(OPEN, GONE)
    _queue(scene, ("open", -1, 900), ("open", 0, -1), ("open", 1, 900), ("gone", priority, -1))
    assert not _look(scene).stale
    scene.sql("UPDATE soloist.job SET removed_at = now() WHERE name = 'gone'")
    assert _look(scene).stale
    assert [job for _, job, _, _ in runs.end_stale(scene.mine)] == ["gone"]
    assert not _look(scene).stale


def test_a_look_sees_waiting_runs_of_a_removed_job(scene: Scene) -> None:
    scene.jobs(OPEN, GONE)
    _queue(scene, ("gone", 0, -1))
    scene.sql("UPDATE soloist.run SET status = 'waiting', ready_at = NULL")
    assert not _look(scene).stale
    scene.sql("UPDATE soloist.job SET removed_at = now() WHERE name = 'gone'")
    seen = _look(scene)
    assert (seen.ready, seen.next_in, seen.stale) == (False, None, True)


def test_runs_of_a_removed_job_come_to_the_front_of_a_long_queue(scene: Scene) -> None:
    scene.jobs(OPEN, GONE)
    _queue(scene, *[("open", 0, -1.0)] * 120, ("gone", 0, 0.0))
    scene.sql("UPDATE soloist.job SET removed_at = now() WHERE name = 'gone'")
    assert not _look(scene).stale
    assert len(claims.dequeue(scene.mine, scene.owner(), 1, 100)) == 100
    assert _look(scene).stale
