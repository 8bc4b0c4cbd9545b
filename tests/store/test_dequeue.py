"""The dequeue: never more than the seats, in order, only what this replica's file still says."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from scene import BASE, Scene, at, birth, registration, spec

from scheduler.core.model import Overlap, Status
from scheduler.store import claims

JOB = spec("a", overlap=Overlap.ALLOW)


def _queue(scene: Scene, number: int) -> None:
    scene.claim(scene.owner(), scene.want(JOB, *(birth(n + 1, Status.QUEUED) for n in range(number))))


def test_it_takes_no_more_than_the_free_seats_and_the_oldest_first(scene: Scene) -> None:
    scene.jobs(JOB)
    _queue(scene, 5)
    scene.sql("UPDATE soloist.run SET priority = -1 WHERE scheduled_at = %s", at(5))
    taken = claims.dequeue(scene.mine, scene.owner("other"), 1, 2)
    assert len(taken) == 2
    assert at(5) in {claim.scheduled_at for _, claim in taken}
    assert len([row for row in scene.rows() if row["status"] == "queued"]) == 3


def test_each_dequeue_is_an_attempt_of_its_own(scene: Scene) -> None:
    scene.jobs(JOB)
    _queue(scene, 1)
    ((_, claim),) = claims.dequeue(scene.mine, scene.owner(), 1, 9)
    assert claim.attempt == 1
    scene.sql("UPDATE soloist.run SET status = 'queued', ready_at = clock_timestamp(), claimed_by = NULL")
    ((_, again),) = claims.dequeue(scene.mine, scene.owner(), 1, 9)
    assert again.attempt == 2


def test_what_is_not_ready_stays(scene: Scene) -> None:
    scene.jobs(JOB)
    _queue(scene, 2)
    scene.sql("UPDATE soloist.run SET ready_at = clock_timestamp() + interval '1 h' WHERE scheduled_at = %s", at(1))
    taken = claims.dequeue(scene.mine, scene.owner(), 1, 9)
    assert [claim.scheduled_at for _, claim in taken] == [at(2)]


def test_a_replica_with_an_older_file_takes_nothing_that_changed_or_was_removed(scene: Scene) -> None:
    scene.jobs(JOB)
    _queue(scene, 2)
    held = scene.known()["a"].spec_hash
    scene.sql("UPDATE soloist.job SET spec_hash = 'newer'")
    assert claims.dequeue(scene.mine, scene.owner(), 1, 9) == ()
    scene.sql("UPDATE soloist.job SET spec_hash = %s, removed_at = now()", held)
    assert claims.dequeue(scene.mine, scene.owner(), 1, 9) == ()


def test_many_at_once_share_the_queue_without_a_double_or_a_leftover(scene: Scene) -> None:
    scene.jobs(JOB)
    _queue(scene, 400)
    gate = threading.Barrier(6)

    def take(number: int) -> list[object]:
        session, owner = scene.session(f"t{number}"), scene.owner(f"r{number}")
        gate.wait()
        mine: list[object] = []
        while got := claims.dequeue(session, owner, 1, 7):
            assert len(got) <= 7
            mine += [claim.id for _, claim in got]
        return mine

    with ThreadPoolExecutor(6) as threads:
        owners = [number for number in range(6)]
        taken = [run for part in threads.map(take, owners) for run in part]
    assert len(taken) == len(set(taken)) == 400
    assert {row["attempt"] for row in scene.rows()} == {1}


def test_dequeue_one_takes_the_named_run_once(scene: Scene) -> None:
    scene.jobs(JOB)
    run = scene.queued(JOB)
    owner = scene.owner()
    claim = claims.dequeue_one(scene.mine, owner, run)
    assert claim is not None
    assert claim.attempt == 1
    assert claims.dequeue_one(scene.mine, owner, run) is None


def test_a_generation_in_between_takes_nothing_after_a_rollback(scene: Scene) -> None:
    """v1, v2, back to v1, then a pod of v2 again: its own spec of the job is not the one in force, though newer."""
    one, two, three = registration("1"), registration("2"), registration("3")
    scene.apply(JOB, content="1", me=one)
    scene.apply(replace(JOB, timeout=5.0), content="2", me=two)
    scene.sql("UPDATE soloist.replica SET stopped_at = now() WHERE id = %s", two.id)
    scene.apply(JOB, content="1", me=one)
    scene.apply(JOB, spec("other"), content="3", me=three)
    scene.apply(replace(JOB, timeout=5.0), content="2", me=registration("2"))
    scene.sql("DELETE FROM soloist.run")
    scene.sql("UPDATE soloist.job SET watermark = %s", BASE)
    _queue(scene, 1)
    assert claims.dequeue(scene.mine, scene.owner(), 2, 9) == ()
    assert len(claims.dequeue(scene.mine, scene.owner(), 3, 9)) == 1
