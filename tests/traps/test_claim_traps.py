"""Traps of the claim that were measured on prototypes, on the real statements: a watermark that loses a tick, chunks
that deadlock, an open enqueue that hides its job, and the sum of the ticks under stress.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from scene import Scene, at, birth, spec
from uuid_utils.compat import uuid7

from scheduler.core.model import Birth, Ending, JobSpec, Outcome, Overlap, Status, Trigger
from scheduler.core.policy import Decision
from scheduler.store import claims, runs
from scheduler.store.claims import Owner, Request, Want
from scheduler.store.engine import Blocked, Session
from scheduler.store.runs import Settlement
from scheduler.store.visit import patiently

ALLOW = spec("a", overlap=Overlap.ALLOW)


def test_a_watermark_never_passes_a_tick_that_has_no_row(scene: Scene) -> None:
    """Trap: B, which knows only the second tick, moved it past the first, which nobody could claim any more."""
    scene.jobs(ALLOW)
    late = scene.want(ALLOW, birth(1), birth(2))
    only_second = scene.want(ALLOW, birth(2), seen=at(1))  # what B believes
    assert scene.claim(scene.owner("B"), only_second).made == ()
    assert scene.known()["a"].watermark == at(0)
    assert len(scene.claim(scene.owner("A"), late).made) == 2
    assert [row["scheduled_at"] for row in scene.rows()] == [at(1), at(2)]


def test_an_open_transaction_that_enqueued_a_run_does_not_hide_its_job(scene: Scene) -> None:
    """Trap: FOR UPDATE SKIP LOCKED passes over a job whose row a foreign key check holds."""
    scene.jobs(ALLOW)
    with psycopg.connect(scene.url) as user:
        user.execute(
            "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, ready_at)"
            " SELECT %s, id, 'manual:1', now(), 'manual', 'queued', false, now() FROM soloist.job",
            (uuid.uuid4(),),
        )
        assert len(scene.claim(scene.owner(), scene.want(ALLOW, birth(1))).made) == 1
        user.rollback()


def test_a_claim_beside_a_frozen_one_takes_what_that_one_does_not_hold(scene: Scene) -> None:
    specs = [spec(f"j-{n}") for n in range(20)]
    scene.jobs(*specs)
    with psycopg.connect(scene.url) as frozen:
        frozen.execute("SELECT 1 FROM soloist.job WHERE name IN ('j-3', 'j-4') FOR NO KEY UPDATE")
        made = scene.claim(scene.owner(), *(scene.want(one, birth(1)) for one in specs)).made
        assert len(made) == 18
        frozen.rollback()
    assert scene.known()["j-3"].watermark == at(0)


def _soon(ticks: int, step: float) -> list[datetime]:
    first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    return [first + timedelta(seconds=n * step) for n in range(ticks)]


def _key(tick: datetime) -> str:
    return tick.isoformat()


class Racer:
    """A replica's ticker without its loop: reads, decides by its own (skewed) clock, claims in chunks of its own."""

    def __init__(self, scene: Scene, number: int, specs: list[JobSpec], ticks: list[datetime]) -> None:
        self.session: Session = scene.session(f"racer{number}")
        self.owner: Owner = scene.owner(f"racer{number}")
        self.chance = random.Random(number)
        self.skew = timedelta(seconds=self.chance.uniform(-0.2, 0.2))
        self.specs, self.ticks, self.size = {s.name: s for s in specs}, ticks, 25 + 7 * number
        self.made: Counter[str] = Counter()

    def race(self, until: datetime) -> None:
        while datetime.now(UTC) < until:
            self.lap()
            threading.Event().wait(self.chance.uniform(0, 0.05))

    def lap(self) -> None:
        now = datetime.now(UTC) + self.skew
        from scheduler.store.jobs import read_jobs

        behind = [job for job in read_jobs(self.session) if any(job.watermark < t <= now for t in self.ticks)]
        start = self.chance.randrange(len(behind)) if behind else 0
        rotated = behind[start:] + behind[:start]
        for first in range(0, len(rotated), self.size):
            wants = []
            for job in sorted(rotated[first : first + self.size], key=lambda job: job.id):
                mine = self.specs[job.name]
                due = [t for t in self.ticks if job.watermark < t <= now]
                born = tuple((uuid.UUID(str(uuid7())), self.birth(mine, t)) for t in due)
                wants.append(Want(job.id, mine.hash, job.watermark, born))
            answer = patiently(lambda wants=wants: claims.claim(self.session, self.owner, wants))
            self.made.update(row.status.value for row in answer.made)
            mine_now = [row.id for row in answer.made if row.status is Status.RUNNING]
            done = [Settlement(i, 1, Decision(Status.SUCCEEDED), Ending(Outcome.SUCCEEDED)) for i in mine_now]
            for end in self.chance.sample(done, len(done) * 2 // 3):  # a third stays active and is in the way
                patiently(lambda end=end: runs.settle(self.session, self.owner, [end]))

    def birth(self, job: JobSpec, tick: datetime) -> Birth:
        period = "period" in job.description
        key = f"p{self.ticks.index(tick) // 5}" if period else _key(tick)
        catch_up = self.chance.random() < 0.2
        return Birth(
            tick,
            key,
            _key(tick),
            Status.RUNNING,
            Trigger.CATCH_UP if catch_up else Trigger.SCHEDULE,
            if_blocked=Status.WAITING if catch_up else Status.SKIPPED,
        )


def test_every_tick_is_accounted_for_once_under_stress(scene: Scene) -> None:
    """Unequal chunks, skewed clocks, once-a-period keys, exclusive jobs that stay busy, manual runs in between."""
    specs = [
        *(spec(f"period-{n}", description="period", overlap=Overlap.ALLOW) for n in range(10)),
        *(spec(f"allow-{n}", overlap=Overlap.ALLOW) for n in range(15)),
        *(spec(f"skip-{n}") for n in range(15)),
    ]
    ticks = _soon(20, 0.2)
    scene.apply(*specs)
    scene.sql("UPDATE soloist.job SET watermark = %s", ticks[0] - timedelta(milliseconds=1))
    racers = [Racer(scene, n, specs, ticks) for n in range(5)]
    end = ticks[-1] + timedelta(seconds=2)
    manual = scene.session("manual")

    def trigger() -> None:
        chance = random.Random(99)
        while datetime.now(UTC) < end:
            name = f"skip-{chance.randrange(15)}"
            request = Request(uuid.UUID(str(uuid7())), name, f"manual:{uuid.uuid4()}", Trigger.MANUAL, "me")
            patiently(lambda request=request: claims.create_run(manual, request))
            threading.Event().wait(0.02)

    with ThreadPoolExecutor(6) as threads:
        for done in [threads.submit(racer.race, end) for racer in racers] + [threads.submit(trigger)]:
            done.result(120)
    racers[0].skew = timedelta(0)
    racers[0].lap()
    want = {(s.name, racers[0].birth(s, t).run_key) for s in specs for t in ticks}
    have = Counter((row["name"], row["run_key"]) for row in scene.rows() if row["trigger"] != "manual")
    assert want <= set(have), "a tick has no row"
    assert max(have.values()) == 1
    assert scene.sql("SELECT count(*) AS n FROM soloist.run WHERE created_at < scheduled_at") == [{"n": 0}]
    assert scene.sql("SELECT count(*) AS n FROM soloist.job WHERE watermark <> %s", ticks[-1]) == [{"n": 0}]
    made = sum(sum(racer.made.values()) for racer in racers)
    assert made == sum(have.values()), "a row that nobody was told of, or one that two were told of"


def test_chunks_in_different_order_do_not_deadlock(scene: Scene) -> None:
    """Trap: three replicas with rotated chunks in one transaction each: 33 deadlocks in 8 rounds."""
    specs = [spec(f"j-{n}", overlap=Overlap.ALLOW) for n in range(200)]
    known = scene.jobs(*specs)
    owners, sessions = [scene.owner(f"r{n}") for n in range(3)], [scene.session(f"t{n}") for n in range(3)]
    gate = threading.Barrier(3)

    def work(n: int) -> int:
        won = 0
        for tick in range(1, 7):
            chunks = [specs[i : i + 50] for i in range(0, 200, 50)]
            gate.wait(60)
            for chunk in chunks[n:] + chunks[:n]:
                wants = [
                    Want(known[s.name].id, s.hash, at(tick - 1), ((uuid.UUID(str(uuid7())), birth(tick)),))
                    for s in chunk
                ]
                random.Random(n).shuffle(wants)
                won += len(claims.claim(sessions[n], owners[n], wants).made)
        return won

    before = scene.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    with ThreadPoolExecutor(3) as threads:
        assert sum(threads.map(work, range(3))) <= 1200
    # what a chunk skipped (its rows were locked for a moment) is claimed at the next look
    for tick in range(1, 7):
        behind = [s for s in specs if scene.known()[s.name].watermark < at(tick)][:200]
        if behind:
            scene.claim(owners[0], *(scene.want(s, birth(tick)) for s in behind))
    assert len(scene.rows()) == 1200
    assert scene.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == before


def test_an_open_enqueue_of_an_exclusive_run_holds_up_no_other_job(scene: Scene) -> None:
    """Its row is in the overlap index, uncommitted: whoever inserts another would wait for that transaction."""
    one, two = spec("a"), spec("b")
    scene.jobs(one, two)
    wants = scene.want(one, birth(1)), scene.want(two, birth(1))
    with psycopg.connect(scene.url) as user:
        user.execute(
            "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, ready_at)"
            " SELECT %s, id, 'manual:1', now(), 'manual', 'queued', true, now() FROM soloist.job WHERE name = 'a'",
            (uuid.uuid4(),),
        )
        with pytest.raises(Blocked):
            scene.claim(scene.owner(), *wants)
        assert len(scene.claim(scene.owner(), wants[1]).made) == 1
        user.commit()
    (made,) = scene.claim(scene.owner(), wants[0]).made
    assert made.status is Status.SKIPPED
