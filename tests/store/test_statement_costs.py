"""What the engine asks again and again reads live rows only, however long the history and the queue have grown.

Two habits of the planner are the danger. The plan of a prepared statement is made once, perhaps while the tables are
as good as empty and every way through them costs the same, and serves after they have grown. And a condition that no
partial index covers is answered through one that holds the whole history. So each statement is asked of grown tables by
plans of every age, and what it reads is counted: rows of a whole table, and what an index leads to, used or not. What
an index sifts out by itself is not.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from scene import Scene, at, birth, spec
from uuid_utils.compat import uuid7

from scheduler.core.model import Ending, Outcome, Overlap, Status, Trigger
from scheduler.core.policy import Decision
from scheduler.store import claims, jobs, pauses, replicas, runs
from scheduler.store.claims import Owner, Request, Want
from scheduler.store.connect import ISOLATION_ONLY, POOLED_SETTINGS, connect
from scheduler.store.runs import Settlement
from scheduler.store.sql import load

SEATS = 20  # no statement asks for more runs than that
BOUND = 20 * SEATS
HISTORY, QUEUE, LATER = 5_000, 5_000, 2_000
WITH_HISTORY = ("open", "one", "next", "tick-0", "gone")
OPEN, LATE = spec("open", overlap=Overlap.ALLOW), spec("late", overlap=Overlap.ALLOW)
ONE, NEXT, GONE = (
    spec("one", pause_after_failures=3),
    spec("next"),
    spec("gone", overlap=Overlap.ALLOW),
)  # the last one leaves the plan
COUNT = """
    WITH large AS (SELECT unnest(ARRAY['soloist.run', 'soloist.attempt']::regclass[]) AS oid)
    SELECT sum(pg_stat_get_xact_tuples_returned(oid))::int
    FROM (SELECT oid FROM large UNION ALL SELECT indexrelid FROM pg_index JOIN large ON indrelid = large.oid) read
"""  # "returned" is what a scan has found, before any condition that its index does not know
RUNNING = "'running', %(owner)s, now() + interval '1 min', NULL, now(), NULL"
WAITING = "'waiting', NULL, NULL, NULL, NULL, NULL"
QUEUED = "'queued', NULL, NULL, now() - interval '1 min' + n * interval '1 ms', NULL, NULL"


@dataclass
class World:
    """The rows of these tests, and who asks for them."""

    scene: Scene
    steps: Sequence[str]
    line: Counted = field(init=False)
    me: Owner = field(init=False)
    mine: list[uuid.UUID] = field(init=False)
    theirs: list[tuple[uuid.UUID, Any]] = field(init=False)
    queued: uuid.UUID = field(init=False)
    wants: list[Want] = field(init=False)
    seen: list[tuple[int, Any, str]] = field(init=False)
    exclusive: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """A few runs that live, and next to no history."""
        self.line = Counted(connect(self.scene.url, "test"))
        scene = self.scene
        for table in ("run", "attempt"):
            # nothing but these tests says when statistics are made, and plans with them
            scene.sql(f"ALTER TABLE soloist.{table} SET (autovacuum_enabled = off)")
        scene.jobs(OPEN, LATE, ONE, NEXT, GONE, *(spec(f"tick-{n}") for n in range(SEATS)))
        self.me, other = scene.owner(), scene.owner("other")
        self.mine = self.born("open", SEATS, RUNNING, owner=self.me.id)
        lost = self.born("open", 5, RUNNING, owner=other.id, key="theirs")
        self.theirs = [(run, scene.row(run)["claimed_until"]) for run in lost]
        self.born("one", 1, RUNNING, owner=other.id)
        self.born("one", 3, WAITING, key="waiting")
        self.born("next", 3, WAITING, key="waiting")
        (self.queued, *_) = self.born("open", 3, QUEUED, key="first")
        self.born("gone", 3, QUEUED)
        self.born("gone", 1, WAITING, key="waiting")
        scene.sql("UPDATE soloist.job SET removed_at = now() WHERE name = 'gone'")
        self.history(5, "few")
        self.wants = [scene.want(spec(f"tick-{n}"), birth(1)) for n in range(SEATS)]
        self.exclusive = [scene.known()[name].id for name in ("one", "next")]
        self.seen = [(want.job_id, at(-1), want.spec_hash) for want in self.wants]
        self.wants.append(scene.want(ONE, birth(1, if_blocked=Status.SKIPPED)))

    def live(self) -> None:
        for step in self.steps:
            getattr(self, step)()

    def plan(self) -> None:
        """The plans are made now."""
        for _ in range(3):
            self.ask(ASK)

    def ask(self, statements: dict[str, Ask], line: Counted | None = None) -> None:
        for each in statements.values():
            each(line or self.line, self)

    def born(self, of: str, number: int, columns: str, *, owner: uuid.UUID | None = None, key: str = "") -> list[Any]:
        """Runs of a job; `columns`: from its status on, where `n` counts them. Returns their ids."""
        self.scene.facts.execute("SET synchronous_commit = off")
        rows = self.scene.facts.execute(
            "INSERT INTO soloist.run (id, job, spec_hash, run_key, scheduled_at, trigger, exclusive, attempt, status,"
            " claimed_by, claimed_until, ready_at, started_at, finished_at)"
            # ids in the order of time, as a replica's are: a primary key is then read whole at no great cost
            " SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')"
            " || lpad(to_hex(n), 8, '0') || right(gen_random_uuid()::text, 12))::uuid,"
            " id, spec_hash, %(key)s || n, now() - n * interval '1 s', 'schedule', exclusive, 1,"
            f" {columns} FROM soloist.job, generate_series(1, %(number)s) n WHERE name = %(of)s RETURNING id",
            {"key": key, "number": number, "of": of, "owner": owner},
        )
        return [row["id"] for row in rows]

    def history(self, number: int, key: str) -> None:
        """Runs that are over, of every job that is asked about, with their attempts."""
        for job in WITH_HISTORY:
            self.born(job, number // len(WITH_HISTORY), "'succeeded', NULL, NULL, NULL, now(), now()", key=key)
        self.scene.sql(
            "INSERT INTO soloist.attempt (run, number, started_at, outcome) SELECT id, 1, started_at, 'succeeded'"
            " FROM soloist.run WHERE status = 'succeeded' ON CONFLICT DO NOTHING"
        )

    def grow_history(self) -> None:
        self.history(HISTORY, "old")

    def analyze(self) -> None:
        """As the autovacuum does from time to time; the plans of all prepared statements are made anew then."""
        self.scene.sql("ANALYZE")

    def grow_queue(self) -> None:
        """Far more that is ready than anyone has seats for, and more that is not."""
        self.born("open", QUEUE, QUEUED, key="queued")
        self.born("late", LATER, "'queued', NULL, NULL, now() + interval '1 h' + n * interval '1 s', NULL, NULL")


@dataclass
class Counted:
    """Runs statements as a session does, each in a transaction that leaves no trace, and counts what it reads.

    `pooled`: as a session behind a pooler does.
    """

    line: psycopg.Connection[Any]
    pooled: bool = False
    read: dict[str, int] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)

    def run(self, name: str, params: dict[str, Any], **_: Any) -> list[Any]:
        # not by the driver's own BEGIN and ROLLBACK: after one of those it prepares everything anew
        self.line.pgconn.exec_(b"BEGIN")
        try:
            before = self.count()
            if self.pooled:
                cursor = psycopg.ClientCursor(self.line)
                cursor.execute(POOLED_SETTINGS + load(name), params or None)
                while cursor.nextset():
                    pass
            else:
                cursor = self.line.execute(load(name), params or None, prepare=True)
            rows = cursor.fetchall()
            self.read[name] = max(self.read.get(name, 0), self.count() - before)
        finally:
            self.line.pgconn.exec_(b"ROLLBACK")
        self.answered[name] = len(rows)
        return rows

    def above(self, bounds: dict[str, int]) -> dict[str, int]:
        return {name: read for name, read in self.read.items() if read > bounds.get(name, BOUND)}

    def count(self) -> int:
        row = self.line.execute(COUNT, prepare=True).fetchone()
        assert row is not None
        return int(row[0])


def _ended(run: uuid.UUID) -> Settlement:
    return Settlement(run, 1, Decision(Status.SUCCEEDED), Ending(Outcome.SUCCEEDED))


def _request() -> Request:
    return Request(uuid7(), "one", "by hand", Trigger.MANUAL, "me")


Ask = Callable[[Any, World], object]


def _who(world: World) -> dict[str, Any]:
    return {"id": world.mine[0], "attempt": 1, "owner": str(world.me.id)}


ASK: dict[str, Ask] = {
    "look": lambda line, world: runs.look(line, world.me, 1),
    "dequeue": lambda line, world: claims.dequeue(line, world.me, 1, SEATS),
    "claim": lambda line, world: claims.claim(line, world.me, world.wants),
    "settle": lambda line, world: runs.settle(line, world.me, [_ended(run) for run in world.mine]),
    "complete_record": lambda line, world: runs.complete_record(line, [_ended(run) for run in world.mine]),
    "renew": lambda line, world: runs.renew(line, world.me, [(run, 1, None) for run in world.mine]),
    "read_held": lambda line, world: runs.read_held(line, world.me, [(run, 1) for run in world.mine]),
    "read_mine": lambda line, world: claims.read_mine(line, world.me),
    "watch_owners": lambda line, world: line.run("watch_owners", {"me": world.me.id}),
    "take_over": lambda line, world: runs.take_over(line, world.theirs, gone=True),
    "promote": lambda line, world: (runs.promote(line, None), runs.promote(line, world.exclusive)),
    "read_moved": lambda line, world: jobs.read_moved(line, world.seen),
    "read_lost": lambda line, world: claims.read_lost(line, [(job, "few1") for job, _, _ in world.seen]),
    "witness": lambda line, world: runs.witness(line, world.mine),
    "heartbeat": lambda line, world: replicas.heartbeat(line, world.me.id, 0.0, replicas.Counts()),
    "end_stale": lambda line, world: runs.end_stale(line),
    "pause_failing": lambda line, world: pauses.pause_failing(line, ["open", "one"]),
    "read_expired_pauses": lambda line, world: pauses.end_pauses(line, uuid7),
    "create_run": lambda line, world: claims.create_run(line, _request()),
    "find_run": lambda line, world: claims.find_run(line, "one", "few1"),
    "dequeue_one": lambda line, world: claims.dequeue_one(line, world.me, world.queued),
}
OF_A_BODY: dict[str, Ask] = {
    "succeed_in_transaction": lambda line, world: line.run("succeed_in_transaction", _who(world)),
    "save_checkpoint": lambda line, world: line.run("save_checkpoint", {**_who(world), "state": "{}"}),
}
ANSWERS = {"dequeue", "settle", "renew", "read_held", "read_mine", "read_lost", "witness"}  # with a row for each seat
BOUNDS = {"end_stale": BOUND + QUEUE + LATER}  # only asked after a look that has seen such a run
UNKNOWING = {name: BOUND + HISTORY // len(WITH_HISTORY) for name in ("claim", "create_run", "read_lost")}
"""What is allowed of plans that are older than any statistics, which tell no index of a job and something from another:
one job's history. They last as long as it takes the autovacuum to come by for the first time."""
LIVES = {
    "plans older than statistics": ("plan", "grow_history", "grow_queue"),
    "plans of nothing": ("analyze", "plan", "grow_history", "grow_queue"),
    "plans of a history without a queue": ("grow_history", "analyze", "plan", "grow_queue"),
    "statistics of a history without a queue": ("grow_history", "analyze", "grow_queue"),
    "statistics of all": ("grow_history", "grow_queue", "analyze"),
}
"""What has befallen a database when its statements are asked; from the last `plan` or `analyze` on, no plan changes."""


@pytest.fixture(scope="module", params=LIVES)
def world(request: pytest.FixtureRequest, server: Any, template: str) -> Iterator[World]:
    """A database of its own for each of the lives, reached directly."""
    name = f"costs_{os.getpid()}_{[*LIVES].index(request.param)}"
    server.clone(name, template)
    scene = Scene(server.url_of(name))
    made = World(scene, steps=LIVES[request.param])
    try:
        made.live()
        yield made
    finally:
        made.line.line.close()
        scene.leave()
        server.drop(name)


def test_no_statement_reads_more_than_it_asks_for(world: World) -> None:
    line = world.line.line
    (before,) = line.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() or (None,)
    world.line.read.clear()
    world.ask(ASK)
    assert world.line.above({**BOUNDS, **(UNKNOWING if world.steps[0] == "plan" else {})}) == {}
    assert {name: rows for name, rows in world.line.answered.items() if name in ANSWERS and rows != SEATS} == {}
    if "plan" in world.steps:
        # else the plans would be of today
        assert line.execute("SELECT count(*), sum(custom_plans) FROM pg_prepared_statements").fetchone() == (before, 0)


def test_nor_does_a_body_that_saves_its_work(world: World) -> None:
    with connect(world.scene.url, "job", options=ISOLATION_ONLY) as plain:
        line = Counted(plain)
        world.ask(OF_A_BODY, line)
    assert line.answered == dict.fromkeys(OF_A_BODY, 1)
    assert line.above({}) == {}


def test_nor_does_any_behind_a_pooler(world: World) -> None:
    """There no setting lasts, and every statement is planned by itself, with its values in it."""
    with connect(world.scene.url, "test", options=ISOLATION_ONLY) as plain:
        line = Counted(plain, pooled=True)
        world.ask(ASK, line)
    assert {name: rows for name, rows in line.answered.items() if name in ANSWERS and rows != SEATS} == {}
    assert line.above(BOUNDS) == {}


def test_the_count_sees_a_table_that_is_read_whole(world: World) -> None:
    with connect(world.scene.url, "test", options=ISOLATION_ONLY) as plain, plain.transaction():
        line = Counted(plain)
        before = line.count()
        plain.execute("SELECT count(last_error) FROM soloist.run")
        assert line.count() - before >= HISTORY + QUEUE + LATER
