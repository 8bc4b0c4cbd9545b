"""Any order of what replicas, people and time may do to the tables keeps the promises: a state machine looks for one
that does not.

The statements are the engine's own, on a real database whose time the machine moves on. Replicas act on what they last
read; the ledger holds every step against what must be true of the rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from cast import FILES, LEASE, PLAIN, Player
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from ledger import Ledger
from own_time import START, OwnTime
from scene import Scene
from sqlalchemy import Connection, create_engine
from uuid_utils.compat import uuid7

from scheduler.core.errors import AlreadyRunning, NotFound
from scheduler.core.model import TERMINAL, Ending, Outcome, Status, Trigger
from scheduler.core.policy import decide_outcome
from scheduler.core.schedule import latest_upto
from scheduler.runner.single import tick_of
from scheduler.store import claims, pauses, runs
from scheduler.store.backfill import Backfill, Stretch
from scheduler.store.claims import Request
from scheduler.store.connect import connect
from scheduler.store.jobs import read_job
from scheduler.store.pauses import Wish
from scheduler.store.purge import purge_history
from scheduler.store.retry import retry_run
from scheduler.store.runs import Settlement

pytestmark = pytest.mark.own_session  # the database's own time is a setting of a session

JOBS = st.sampled_from(sorted(PLAIN))
PLAYERS = st.integers(0, 2)
ANY = st.integers(0, 50)  # which of those that there are
ENDS = st.sampled_from([Outcome.SUCCEEDED, Outcome.SUCCEEDED, Outcome.FAILED, *Outcome])
KEPT = {"succeeded": 50.0, "failed": 300.0, "skipped": 100.0}


def _id() -> UUID:
    return UUID(str(uuid7()))


class Stage:
    """The database, its time, and what is opened once for all examples."""

    def __init__(self, url: str) -> None:
        self.scene = Scene(url)
        self.time = OwnTime(self.scene)
        engine = create_engine("postgresql+psycopg://", creator=lambda: self.time.tell(connect(url, "purge")))
        self.purging: Connection = engine.connect()
        self.applying = self.time.tell(connect(url, "apply"))

    def reset(self) -> None:
        for table in ("attempt", "run", "plan_job", "job", "replica", "config", "audit"):
            self.scene.sql(f"DELETE FROM soloist.{table}")
        self.time.reset()

    def close(self) -> None:
        self.purging.close()
        self.purging.engine.dispose()
        self.applying.close()
        self.scene.close()


class Promises(RuleBasedStateMachine):
    """Each rule is one thing that happens; then the ledger looks."""

    stage: Stage

    def __init__(self) -> None:
        super().__init__()
        self.stage.reset()
        self.scene, self.time = self.stage.scene, self.stage.time
        self.ledger = Ledger(self.scene)
        self.players: list[Player] = []

    @initialize(files=st.lists(st.integers(0, 1), min_size=3, max_size=3))
    def they_start(self, files: list[int]) -> None:
        for number, file in enumerate(files):
            self.players.append(self._player(f"r{number}", file))
            self.players[-1].apply()
        self.ledger.look()

    def _player(self, name: str, file: int) -> Player:
        return Player(self.scene, self.stage.applying, name, file)

    # -- time, and what replicas do with it

    @rule(seconds=st.sampled_from([1, 5, 10, 10, 11, 20, 40, 150, 90_000]), silent=st.none() | PLAYERS)
    def time_passes(self, seconds: float, silent: int | None) -> None:
        self.time.move_on(seconds)
        for number, player in enumerate(self.players):
            if number != silent:
                player.beat()
        self.ledger.look()

    @rule(who=PLAYERS, fresh=st.booleans(), seats=st.integers(0, 4), skew=st.sampled_from([0, 0, 0, -7, 12]))
    def claim(self, who: int, fresh: bool, seats: int, skew: int) -> None:
        if fresh:
            self.players[who].read()
        self.players[who].claim(self.time.now() + timedelta(seconds=skew), seats)
        self.ledger.look()

    @rule(who=PLAYERS, seats=st.integers(1, 4))
    def dequeue(self, who: int, seats: int) -> None:
        player = self.players[who]
        taken = player.dequeue(seats)
        assert len(taken) <= seats
        for id_ in taken:
            job = self.ledger.jobs[self.ledger.runs[id_]["job"]]
            assert player.specs[job["name"]].hash == job["spec_hash"], f"{job['name']} by a stale spec"
        self.ledger.look()

    @rule(who=PLAYERS)
    def renew(self, who: int) -> None:
        player = self.players[who]
        asked = [(id_, claim.attempt, None) for id_, (claim, _) in player.held.items()]
        renewed = runs.renew(self.scene.mine, player.owner, asked).renewed
        assert set(renewed) == {(id_, attempt) for id_, attempt, _ in asked if self._owns(player, id_, attempt)}
        self.ledger.look()

    @rule(who=PLAYERS, which=ANY, how=ENDS, late=st.booleans())
    def finish(self, who: int, which: int, how: Outcome, late: bool) -> None:
        player = self.players[who]
        if not player.held:
            return
        id_ = sorted(player.held)[which % len(player.held)]
        claim, spec = player.held[id_]
        ending = Ending(how, error_text="as it was drawn", started=not late)
        end = Settlement(id_, claim.attempt, decide_outcome(spec, claim, ending, 0.5), ending)
        owned = self._owns(player, id_, claim.attempt)
        done = runs.settle(self.scene.mine, player.owner, [end])
        assert len(done) == owned, "the fence: an end is written by the attempt that owns the run, and by no other"
        del player.held[id_]
        self.ledger.look()
        if done and done[0].waiting:
            runs.promote(self.scene.mine, [done[0].job_id])
            self.ledger.look()

    def _owns(self, player: Player, id_: UUID, attempt: int) -> bool:
        row = self.ledger.runs.get(id_)
        standing = row and (row["status"], row["claimed_by"], row["attempt"])
        return standing == ("running", player.me.id, attempt)

    @rule(who=PLAYERS, dead=st.booleans(), renewed=st.booleans())
    def take_over(self, who: int, dead: bool, renewed: bool) -> None:
        """Of owners whose leases are over, or (`dead`) who are gone; a renewal in between wins."""
        now, live = self.time.now(), {player.me.id for player in self.players}
        seen = runs.look(self.scene.mine, self.players[who].owner, self.players[who].generation).expired
        running = [row for row in self.ledger.runs.values() if row["status"] == "running"]
        assert {id_ for id_, _ in seen} == {row["id"] for row in running if row["claimed_until"] < now}
        if dead:
            seen = tuple((row["id"], row["claimed_until"]) for row in running if row["claimed_by"] not in live)
        if renewed:
            seen = tuple((id_, until - timedelta(microseconds=1)) for id_, until in seen)
        taken = runs.take_over(self.scene.mine, seen, gone=dead)
        assert {one.id for one in taken} == (set() if renewed else {id_ for id_, _ in seen})
        self.ledger.look()

    # -- files

    @rule(who=PLAYERS, file=st.integers(0, len(FILES) - 1), said=st.booleans())
    def restart(self, who: int, file: int, said: bool) -> None:
        """A pod is replaced, perhaps by one with another file; the old one ends in good order, or without a word."""
        old = self.players[who]
        if said:
            self.scene.mine.run("leave", {"me": old.me.id, "fenced_writes": 0, "leases_lost": 0, "takeovers": 0})
        self.players[who] = self._player(old.name, file)
        self._in_force(self.players[who])

    @rule(who=PLAYERS, file=st.integers(0, len(FILES) - 1))
    def edit(self, who: int, file: int) -> None:
        """The file is edited under a running replica, perhaps back to what it was before."""
        player = self.players[who]
        if file == player.file:
            return
        player.file, player.after, before = file, player.generation, player.generation
        self._in_force(player)
        assert player.generation > before, "an edit is newer than what it was made from"

    @rule(who=PLAYERS)
    def follow(self, who: int) -> None:
        """A heartbeat says that another file is in force than this replica thought."""
        self._in_force(self.players[who])

    def _in_force(self, player: Player) -> None:
        applied = player.apply()
        self.ledger.look()
        live = self.scene.sql(
            "SELECT max(generation) AS newest FROM soloist.replica WHERE stopped_at IS NULL AND id <> %s"
            " AND seen_at > clock_timestamp() - interval '35 s'",
            player.me.id,
        )[0]["newest"]
        assert applied.in_force == (player.generation >= (live or 0))
        if applied.in_force:
            there = {job["name"]: job["spec_hash"] for job in self.ledger.jobs.values() if job["removed_at"] is None}
            assert there == {name: spec.hash for name, spec in player.specs.items()}

    # -- what people do

    @rule(job=JOBS, key=st.integers(1, 3))
    def trigger(self, job: str, key: int) -> None:
        request = Request(_id(), job, f"manual:{key}", Trigger.MANUAL, "ann", action="trigger")
        self._ask(lambda: claims.create_run(self.scene.mine, request))

    @rule(who=PLAYERS, job=JOBS, back=st.integers(0, 5))
    def run_a_tick_by_name(self, who: int, job: str, back: int) -> None:
        """As a CronJob's pod does."""
        player = self.players[who]
        spec, at = player.specs.get(job), self.time.now()
        for _ in range(back + 1):
            found = spec and spec.schedule and latest_upto(spec.schedule, at - timedelta(microseconds=1))
            if not (spec and found):
                return
            at = found
        tick = tick_of(spec, at)
        request = Request(
            _id(), job, tick.run_key, Trigger.CRONJOB, player.name, tick_key=tick.tick_key, scheduled_at=at,
            if_blocked=Status.SKIPPED,
        )  # fmt: skip
        created = self._ask(lambda: claims.create_run(self.scene.mine, request, player.owner))
        if created and created.fresh and created.status is Status.RUNNING:
            claim = claims.read_mine(self.scene.mine, player.owner)
            player.held[created.id] = next(one.claim for one in claim if one.claim.id == created.id), spec

    @rule(which=ANY)
    def retry_by_hand(self, which: int) -> None:
        ended = sorted(id_ for id_, row in self.ledger.runs.items() if row["status"] in TERMINAL)
        if ended:
            row = self.ledger.runs[ended[which % len(ended)]]
            row = row | {"job": self.ledger.jobs[row["job"]]["name"]}
            self._ask(lambda: retry_run(self.scene.mine, row, "ann", _id))

    @rule(job=JOBS, back=st.sampled_from([20, 70, 400]), span=st.sampled_from([0, 40, 200]), limit=st.none() | ANY)
    def backfill(self, job: str, back: float, span: float, limit: int | None) -> None:
        known = read_job(self.scene.mine, job)
        if known is None or known.removed_at is not None:
            return
        first = max(START, known.database_now - timedelta(seconds=back))
        stretch = Stretch(first, min(first + timedelta(seconds=span), known.database_now), limit)
        list(Backfill(self.scene.mine, known, "ann", _id).fill(stretch))
        self.ledger.look()

    @rule(which=ANY)
    def cancel(self, which: int) -> None:
        live = sorted(id_ for id_, row in self.ledger.runs.items() if row["status"] not in TERMINAL)
        if live:
            self.scene.sql(
                "UPDATE soloist.run SET cancel_requested_at = clock_timestamp(), ready_at = NULL,"
                " status = CASE status WHEN 'running' THEN 'running' ELSE 'cancelled' END,"
                " finished_at = CASE status WHEN 'running' THEN NULL ELSE clock_timestamp() END WHERE id = %s",
                live[which % len(live)],
            )
            self.ledger.look()

    @rule(job=JOBS, lasting=st.sampled_from([None, 5.0, 30.0, 200.0]))
    def pause(self, job: str, lasting: float | None) -> None:
        pauses.pause_job(self.scene.mine, Wish(job, "ann", "because", lasting=lasting))
        self.ledger.look()

    @rule(job=JOBS)
    def resume(self, job: str) -> None:
        pauses.resume_job(self.scene.mine, job, "ann", None, _id)
        self.ledger.look()

    def _ask(self, ask: Any) -> Any:
        try:
            return ask()
        except (NotFound, AlreadyRunning):
            return None
        finally:
            self.ledger.look()

    # -- what any replica does for all

    @rule()
    def end_pauses(self) -> None:
        pauses.end_pauses(self.scene.mine, _id)
        self.ledger.look()

    @rule()
    def pause_failing(self) -> None:
        pauses.pause_failing(self.scene.mine, sorted(PLAIN))
        self.ledger.look()

    @rule()
    def promote(self) -> None:
        runs.promote(self.scene.mine, None)
        self.ledger.look()
        waiting, active = (
            {r["job"] for r in self.ledger.runs.values() if r["status"] in states and r["exclusive"]}
            for states in (("waiting",), ("queued", "running"))
        )
        assert waiting <= active, "a run waits for nothing"

    @rule(who=PLAYERS)
    def replace(self, who: int) -> None:
        player = self.players[who]
        runs.replace(self.scene.mine, [job.id for job in player.known.values() if job.name == "newest"])
        self.ledger.look()

    @rule()
    def end_stale(self) -> None:
        runs.end_stale(self.scene.mine)
        self.ledger.look()
        left = [row for row in self.ledger.runs.values() if row["status"] in ("queued", "waiting")]
        assert not [row for row in left if self.ledger.jobs[row["job"]]["removed_at"] is not None]

    @rule()
    def purge(self) -> None:
        purge_history(self.stage.purging, retention=KEPT, batch=7)
        self.ledger.look(purged=True)

    @rule(file=st.integers(0, len(FILES) - 1))
    def all_comes_to_an_end(self, file: int) -> None:
        """One healthy replica alone brings everything to its end, whatever stands around."""
        for player in self.players:
            self.scene.mine.run("leave", {"me": player.me.id, "fenced_writes": 0, "leases_lost": 0, "takeovers": 0})
        for _ in range(200):
            self.restart(0, file, True)
            if not [row for row in self.ledger.runs.values() if row["status"] not in TERMINAL]:
                break
            self.time_passes(LEASE * 4, None)
            self.take_over(0, False, False)
            self.end_stale()
            self.promote()
            self.dequeue(0, 100)
            for _ in range(len(self.players[0].held)):
                self.finish(0, 0, Outcome.SUCCEEDED, False)
        else:
            raise AssertionError("what there was is not done with after a long time")
        self.players[1:] = [self._player(player.name, player.file) for player in self.players[1:]]
        for player in self.players[1:]:
            player.apply()
            self.ledger.look()


@pytest.fixture
def stage(stage_url: str) -> Iterator[Stage]:
    made = Stage(stage_url)
    yield made
    made.close()


def _search(stage: Stage, examples: int, steps: int, **more: Any) -> None:
    machine = type("Machine", (Promises,), {"stage": stage})
    wanted = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **more,
    )
    run_state_machine_as_test(machine, settings=wanted)


def test_no_order_of_steps_breaks_a_promise(stage: Stage) -> None:
    _search(
        stage,
        int(os.environ.get("EX", "30")),
        int(os.environ.get("ST", "30")),
        derandomize="RND" not in os.environ,
        database=None,
    )


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_no_long_order_of_steps_breaks_a_promise(stage: Stage) -> None:
    _search(stage, 400, 60)
