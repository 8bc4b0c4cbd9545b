"""Traps around the overlap index: one refused row that fails a whole dequeue, promotion in somebody's way."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from scene import Scene, birth, spec
from uuid_utils.compat import uuid7

from scheduler.core.model import Ending, Outcome, Overlap, Status, Trigger
from scheduler.core.policy import Decision
from scheduler.store import claims, runs
from scheduler.store.claims import Request, Want
from scheduler.store.engine import Refused
from scheduler.store.runs import Settlement
from scheduler.store.visit import patiently

DONE = Decision(Status.SUCCEEDED), Ending(Outcome.SUCCEEDED)


def test_a_dequeue_is_never_refused_by_the_overlap_index(scene: Scene) -> None:
    """Trap: a queued tick beside a running one, or two overflow ticks of one job, failed everybody's dequeue."""
    busy, overflow, free = spec("a"), spec("b"), spec("c", overlap=Overlap.ALLOW)
    scene.jobs(busy, overflow, free)
    scene.running(scene.owner(), busy)
    late = {"trigger": Trigger.CATCH_UP, "if_blocked": Status.WAITING}
    scene.claim(
        scene.owner(),
        scene.want(busy, birth(2, Status.QUEUED, **late)),
        scene.want(overflow, birth(1, Status.QUEUED, **late), birth(2, Status.QUEUED, **late)),
        scene.want(free, birth(1, Status.QUEUED), birth(2, Status.QUEUED)),
    )
    by_id = {job.id: name for name, job in scene.known().items()}
    taken = claims.dequeue(scene.mine, scene.owner("b"), 1, 10)
    assert Counter(by_id[job] for job, _ in taken) == {"b": 1, "c": 2}


def test_waiting_runs_all_get_their_turn_and_never_two_at_once(scene: Scene) -> None:
    """Tickers, triggers, workers and a sweeper, all at once, on the real statements."""
    specs = [spec(f"j-{n}") for n in range(4)]
    known = scene.jobs(*specs)
    rounds, stop, errors = 40, threading.Event(), Counter[str]()

    def tick(n: int) -> None:
        session, owner = scene.session(f"tick{n}"), scene.owner(f"tick{n}")
        for number in range(rounds):
            for one in specs:
                request = Request(uuid.UUID(str(uuid7())), one.name, f"manual:{n}-{number}", Trigger.MANUAL, "me")
                unblocked(claims.create_run, session, request)
            seen = {job.name: job.watermark for job in scene_jobs(session)}
            late = birth(1000 * (n + 1) + number, Status.QUEUED, trigger=Trigger.CATCH_UP, if_blocked=Status.WAITING)
            wants = [Want(known[s.name].id, s.hash, seen[s.name], ((uuid.UUID(str(uuid7())), late),)) for s in specs]
            unblocked(claims.claim, session, owner, wants)

    def unblocked(step: Callable[..., Any], *words: Any) -> Any:
        """As the engine does it: who meets a lock for too long (a busy machine) comes again."""
        return patiently(lambda: step(*words))

    def scene_jobs(session: object) -> object:
        from scheduler.store.jobs import read_jobs

        return read_jobs(session)  # type: ignore[arg-type]

    def work(n: int) -> None:
        session, owner = scene.session(f"work{n}"), scene.owner(f"work{n}")
        while not stop.is_set():
            taken = unblocked(claims.dequeue, session, owner, 1, 3)
            for _, claim in taken:
                (end,) = unblocked(runs.settle, session, owner, [Settlement(claim.id, claim.attempt, *DONE)])
                if end.waiting:
                    promote(session, [end.job_id])
            if not taken:
                stop.wait(0.005)

    def promote(session: object, jobs: list[int] | None) -> None:
        try:
            runs.promote(session, jobs)  # type: ignore[arg-type]
        except Refused as error:
            errors[str(error)[:60]] += 1

    def sweep() -> None:
        session = scene.session("sweep")
        while not stop.is_set():
            promote(session, None)
            stop.wait(0.02)

    with ThreadPoolExecutor(8) as threads:
        ticking = [threads.submit(tick, n) for n in range(2)]
        working = [threads.submit(work, n) for n in range(3)] + [threads.submit(sweep)]
        most, end = 0, threading.Event()
        active = (
            "SELECT coalesce(max(n), 0) AS n FROM (SELECT count(*) AS n FROM soloist.run"
            " WHERE status IN ('queued', 'running') GROUP BY job) s"
        )
        left = "SELECT count(*) AS n FROM soloist.run WHERE finished_at IS NULL"
        for _ in range(3000):
            most = max(most, scene.sql(active)[0]["n"])
            if all(done.done() for done in ticking) and not scene.sql(left)[0]["n"]:
                break
            end.wait(0.02)
        stop.set()
        for done in ticking + working:
            done.result(30)
    assert scene.sql(left) == [{"n": 0}]
    assert most == 1
    statuses = Counter(row["status"] for row in scene.rows())
    assert set(statuses) == {"succeeded"}, statuses
    assert statuses["succeeded"] >= 2 * rounds * len(specs)
    assert scene.sql("SELECT max(attempt) AS n FROM soloist.run") == [{"n": 1}]


def test_a_promotion_that_another_run_forestalls_costs_the_replica_nothing(scene: Scene) -> None:
    """The index refuses the promotion: the sweeper must live on. (It died of it once.)"""
    from scheduler.runner.plan import PlanInForce
    from scheduler.runner.reaper import Reaper
    from scheduler.runner.room import Room
    from scheduler.runner.seats import Seats
    from scheduler.runner.sweeper import Sweeper

    job = spec("a")
    scene.jobs(job)
    active = scene.running(scene.owner(), job)
    waiting = claims.create_run(scene.mine, Request(uuid.uuid4(), "a", "manual:1", Trigger.MANUAL, "me"))
    assert waiting.status is Status.WAITING
    scene.sql("UPDATE soloist.run SET status = 'lost', finished_at = now() WHERE id = %s", active)
    room = Room(scene.owner("sweeps"), scene.clock, scene.bus)
    session = scene.session("sweeper")
    sweeper = Sweeper(session, room, PlanInForce([job]), Seats(1), Reaper(session, room, session))
    with psycopg.connect(scene.url) as other, ThreadPoolExecutor(1) as threads:
        other.execute(
            "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, ready_at)"
            " SELECT %s, id, 'manual:2', now(), 'manual', 'queued', true, now() FROM soloist.job",
            (uuid.uuid4(),),
        )
        step = threads.submit(sweeper.step)
        blocked = (
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'soloist sweeper'"
        )
        for _ in range(500):
            if step.done() or scene.sql(blocked):
                break
            threading.Event().wait(0.02)
        other.commit()
        assert step.result(30) > 0
    assert scene.row(waiting.id)["status"] == "waiting"


@pytest.mark.parametrize("jobs", [None, "its own"])
def test_promotion_beside_promotion_queues_one(scene: Scene, jobs: object) -> None:
    job = spec("a")
    known = scene.jobs(job)
    scene.running(scene.owner(), job)
    for n in range(5):
        claims.create_run(scene.mine, Request(uuid.uuid4(), "a", f"manual:{n}", Trigger.MANUAL, "me"))
    scene.sql("UPDATE soloist.run SET status = 'lost', finished_at = now() WHERE status = 'running'")
    sessions = [scene.session(f"p{n}") for n in range(5)]
    gate = threading.Barrier(5)

    def promote(n: int) -> int:
        gate.wait(30)
        return runs.promote(sessions[n], None if jobs is None else [known["a"].id])

    with ThreadPoolExecutor(5) as threads:
        assert sum(threads.map(promote, range(5))) == 1
    assert Counter(row["status"] for row in scene.rows()) == {"lost": 1, "queued": 1, "waiting": 4}
