"""Take-over: only what is over, only what was seen, once; the policy is in the row."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from scene import Scene, birth, spec

from scheduler.core.model import AfterCrash, JobSpec, RetryPolicy, Status
from scheduler.store import claims, runs

JOB = spec("a")


def _abandon(scene: Scene, job: JobSpec = JOB) -> tuple[object, list[tuple[object, object]]]:
    scene.jobs(job)
    run = scene.running(scene.owner("dead"), job)
    scene.expire(run)
    return run, [(run, scene.row(run)["claimed_until"])]


def test_a_run_is_queued_at_once_with_the_dead_owners_line(scene: Scene) -> None:
    run, seen = _abandon(scene)
    (taken,) = runs.take_over(scene.mine, seen)  # type: ignore[arg-type]
    assert (taken.owner, taken.status, taken.attempt) == ("dead", Status.QUEUED, 1)
    row = scene.row(run)  # type: ignore[arg-type]
    assert (row["status"], row["crashes"], row["claimed_by"], row["claimed_until"]) == ("queued", 1, None, None)
    assert [(line["outcome"], line["replica_name"]) for line in scene.attempts(run)] == [("lease_lost", "dead")]  # type: ignore[arg-type]
    ((_, claim),) = claims.dequeue(scene.mine, scene.owner("heir"), 1, 9)
    assert (claim.attempt, claim.crashes) == (2, 1)


def test_a_renewal_between_the_look_and_the_take_over_wins(scene: Scene) -> None:
    scene.jobs(JOB)
    owner = scene.owner("slow but alive", lease=0.0)
    run = scene.running(owner, JOB)
    seen = runs.look(scene.mine, scene.owner(), 1).expired
    assert [one for one, _ in seen] == [run]
    assert set(runs.renew(scene.mine, owner, [(run, 1, None)]).renewed) == {(run, 1)}
    assert runs.take_over(scene.mine, seen) == ()
    assert scene.row(run)["status"] == "running"


def test_a_living_lease_is_not_taken(scene: Scene) -> None:
    scene.jobs(JOB)
    run = scene.running(scene.owner(lease=60.0), JOB)
    assert runs.look(scene.mine, scene.owner(), 1).expired == ()
    assert runs.take_over(scene.mine, [(run, scene.row(run)["claimed_until"])]) == ()


def test_many_observers_take_it_once(scene: Scene) -> None:
    run, seen = _abandon(scene)
    gate = threading.Barrier(6)
    sessions = [scene.session(f"t{n}") for n in range(6)]

    def take(n: int) -> int:
        gate.wait()
        return len(runs.take_over(sessions[n], seen))  # type: ignore[arg-type]

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(take, range(6))) == 1
    assert scene.row(run)["crashes"] == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "crashes", "status"),
    [
        ({"after_crash": AfterCrash.FAIL}, 0, "lost"),
        ({"crash_limit": 3}, 1, "queued"),
        ({"crash_limit": 3}, 2, "failed"),
        ({"crash_limit": 1}, 0, "failed"),
    ],
)
def test_policy(scene: Scene, fields: dict[str, object], crashes: int, status: str) -> None:
    run, seen = _abandon(scene, spec("a", **fields))
    scene.sql("UPDATE soloist.run SET crashes = %s", crashes)
    runs.take_over(scene.mine, seen)  # type: ignore[arg-type]
    row = scene.row(run)  # type: ignore[arg-type]
    assert (row["status"], row["crashes"]) == (status, crashes + 1)


@pytest.mark.parametrize(("crashes", "least", "most"), [(0, 0, 0), (1, 8, 12), (2, 16, 24), (9, 80, 120)])
def test_the_first_crash_costs_no_wait_and_the_later_ones_do(scene: Scene, crashes: int, least: int, most: int) -> None:
    _run, seen = _abandon(scene, spec("a", crash_limit=99, retry=RetryPolicy(1, 10.0, 100.0)))
    scene.sql("UPDATE soloist.run SET crashes = %s", crashes)
    runs.take_over(scene.mine, seen)  # type: ignore[arg-type]
    ((wait),) = scene.sql("SELECT extract(epoch FROM ready_at - clock_timestamp())::float8 AS wait FROM soloist.run")
    assert least - 1 <= wait["wait"] <= most


def test_a_run_that_was_to_be_cancelled_ends_so(scene: Scene) -> None:
    _run, seen = _abandon(scene)
    scene.sql("UPDATE soloist.run SET cancel_requested_at = now()")
    (taken,) = runs.take_over(scene.mine, seen)  # type: ignore[arg-type]
    assert taken.status is Status.CANCELLED


def test_a_row_that_somebody_holds_is_left_for_later(scene: Scene) -> None:
    _run, seen = _abandon(scene)
    with scene.facts.transaction():
        scene.sql("SELECT 1 FROM soloist.run FOR UPDATE")
        assert runs.take_over(scene.mine, seen) == ()  # type: ignore[arg-type]
    assert len(runs.take_over(scene.mine, seen)) == 1  # type: ignore[arg-type]


def test_a_look_tells_what_there_is_to_do(scene: Scene) -> None:
    job, gone = spec("a"), spec("b")
    scene.jobs(job, gone)
    me = scene.owner()
    look = runs.look(scene.mine, me, 1)
    assert (look.ready, look.next_in, look.others, look.in_vain, look.stale) == (False, None, False, False, False)
    scene.claim(scene.owner("x"), scene.want(job, birth(1)), scene.want(gone, birth(1, Status.QUEUED)))
    look = runs.look(scene.mine, me, 1)
    assert (look.ready, look.others) == (True, True)
    scene.sql("UPDATE soloist.run SET ready_at = clock_timestamp() + interval '9 s' WHERE status = 'queued'")
    look = runs.look(scene.mine, me, 1)
    assert not look.ready
    assert look.next_in is not None
    assert 5 < look.next_in <= 9
    scene.sql("UPDATE soloist.job SET removed_at = now() WHERE name = 'b'")
    assert runs.look(scene.mine, me, 1).stale
    assert [row[1] for row in runs.end_stale(scene.mine)] == ["b"]
    assert [(row["status"], row["skip_reason"]) for row in scene.rows("b")] == [("skipped", "stale_config")]
