"""Any order of what replicas, people and time may do to the tables keeps the promises: a state machine looks for one
that does not.

The statements are the engine's own, on a real database whose time the machine moves on. Replicas act on what they last
read; the ledger holds every step against what must be true of the rows.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from cast import FILES, LEASE, PLAIN, Player, cancel, pod_request
from hypothesis import HealthCheck, Phase, settings
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
ENDS = st.sampled_from([Outcome.SUCCEEDED, *[Outcome.FAILED] * 3, *Outcome])
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
        self.ghosts: list[Player] = []

    @initialize(files=st.lists(st.integers(0, 1), min_size=3, max_size=3))
    def they_start(self, files: list[int]) -> None:
        for number, file in enumerate(files):
            self.players.append(self._player(f"r{number}", file))
            self.players[-1].apply()
        self.ledger.look()

    def _player(self, name: str, file: int) -> Player:
        return Player(self.scene, self.stage.applying, name, file)

    # -- time, and what replicas do with it

    @rule(seconds=st.sampled_from([1, 5, 11, 20, 40, 150, 20_000]), silent=st.none() | PLAYERS)
    def time_passes(self, seconds: float, silent: int | None) -> None:
        """Those that are not silent renew what they hold before, and say that they live after."""
        for number, player in enumerate(self.players):
            if number != silent:
                self._renew(player)
        self.time.move_on(seconds)
        for number, player in enumerate(self.players):
            if number != silent:
                player.beat()
        self.ledger.look()

    def _renew(self, player: Player) -> None:
        asked = [(id_, claim.attempt, None) for id_, (claim, _) in player.held.items()]
        renewed = runs.renew(self.scene.mine, player.owner, asked).renewed
        assert set(renewed) == {(id_, attempt) for id_, attempt, _ in asked if self._owns(player, id_, attempt)}
        self.ledger.look()

    @rule(
        who=PLAYERS,
        after=st.sampled_from([0, 3, 10, 10, 10, 25, 60]),
        fresh=st.booleans(),
        seats=st.integers(0, 6),
        skew=st.sampled_from([0, 0, 0, -7, 12]),
    )
    def claim(self, who: int, after: float, fresh: bool, seats: int, skew: int) -> None:
        self.time.move_on(after)
        if fresh:
            self.players[who].read()
        self.players[who].claim(self.time.now() + timedelta(seconds=skew), seats)
        self.ledger.look()

    @rule(who=PLAYERS, after=st.sampled_from([4, 10, 15, 35]), seats=st.integers(1, 6))
    def tick(self, who: int, after: float, seats: int) -> None:
        """As it goes most of the time."""
        self.claim(who, after, fresh=True, seats=seats, skew=0)

    @rule(who=PLAYERS, seats=st.integers(1, 6))
    def dequeue(self, who: int, seats: int) -> None:
        player = self.players[who]
        taken = player.dequeue(seats)
        assert len(taken) <= seats
        for id_ in taken:
            job = self.ledger.jobs[self.ledger.runs[id_]["job"]]
            assert player.specs[job["name"]].hash == job["spec_hash"], f"{job['name']} by a stale spec"
        self.ledger.look()

    @rule(which=ANY, how=ENDS, begun=st.booleans())
    def finish(self, which: int, how: Outcome, begun: bool) -> None:
        """The end of an attempt that somebody believes to hold, or to have held."""
        held = [(player, id_) for player in [*self.players, *self.ghosts] for id_ in sorted(player.held)]
        if held:
            self._finish(*held[which % len(held)], Ending(how, error_text="as it was drawn", started=begun))

    def _finish(self, player: Player, id_: UUID, ending: Ending) -> None:
        claim, spec = player.held.pop(id_)
        end = Settlement(id_, claim.attempt, decide_outcome(spec, claim, ending, 0.5), ending)
        owned = self._owns(player, id_, claim.attempt)
        done = runs.settle(self.scene.mine, player.owner, [end])
        assert len(done) == owned, "the fence: an end is written by the attempt that owns the run, and by no other"
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

    @rule(who=PLAYERS, file=st.integers(0, len(FILES) - 1), how=st.sampled_from(["stop", "die", "edit", "follow"]))
    def deploy(self, who: int, file: int, how: str) -> None:
        """A pod is replaced, in good order or not; the file is edited under it; or it hears that another is in force.

        What one that died held is still at work somewhere, and may end late: a ghost's.
        """
        player = self.players[who]
        if how in ("stop", "die"):
            self._replace(who, file, said=how == "stop")
        elif how == "edit" and file != player.file:
            player.file, player.after, before = file, player.generation, player.generation
            self._in_force(player)
            assert player.generation > before, "an edit is newer than what it was made from"
        else:
            self._in_force(player)

    def _replace(self, who: int, file: int, *, said: bool) -> None:
        old = self.players[who]
        if said:
            self._leave(old)
        self.ghosts.append(old)
        self.players[who] = self._player(old.name, file)
        self._in_force(self.players[who])

    def _leave(self, player: Player) -> None:
        self.scene.mine.run("leave", {"me": player.me.id, "fenced_writes": 0, "leases_lost": 0, "takeovers": 0})

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
        request = pod_request(player, spec, at)
        created = self._ask(lambda: claims.create_run(self.scene.mine, request, player.owner))
        if created and created.fresh and created.status is Status.RUNNING:
            claim = claims.read_mine(self.scene.mine, player.owner)
            player.held[created.id] = next(one.claim for one in claim if one.claim.id == created.id), spec

    @rule(
        job=JOBS,
        back=st.sampled_from([20, 70, 400]),
        span=st.sampled_from([0, 40, 200]),
        limit=st.sampled_from([None, 1, 4]),
    )
    def backfill(self, job: str, back: float, span: float, limit: int | None) -> None:
        known = read_job(self.scene.mine, job)
        if known is None or known.removed_at is not None:
            return
        first = max(START, known.database_now - timedelta(seconds=back))
        stretch = Stretch(first, min(first + timedelta(seconds=span), known.database_now), limit)
        list(Backfill(self.scene.mine, known, "ann", _id).fill(stretch))
        self.ledger.look()

    @rule(which=ANY, again=st.booleans())
    def cancel_or_retry(self, which: int, again: bool) -> None:
        some = sorted(id_ for id_, row in self.ledger.runs.items() if (row["status"] in TERMINAL) == again)
        if not some:
            return
        row = self.ledger.runs[some[which % len(some)]]
        if again:
            told = row | {"job": self.ledger.jobs[row["job"]]["name"]}
            self._ask(lambda: retry_run(self.scene.mine, told, "ann", _id))
        else:
            cancel(self.scene, row["id"])
            self.ledger.look()

    @rule(job=JOBS, lasting=st.sampled_from([None, 5.0, 30.0, 200.0]))
    def pause(self, job: str, lasting: float | None) -> None:
        pauses.pause_job(self.scene.mine, Wish(job, "ann", "because", lasting=lasting))
        self.ledger.look()

    @rule(which=ANY)
    def resume(self, which: int) -> None:
        paused = sorted(job["name"] for job in self.ledger.jobs.values() if job["paused_at"] is not None)
        if paused:
            pauses.resume_job(self.scene.mine, paused[which % len(paused)], "ann", None, _id)
            self.ledger.look()

    def _ask(self, ask: Any) -> Any:
        try:
            return ask()
        except (NotFound, AlreadyRunning):
            return None
        finally:
            self.ledger.look()

    # -- what any replica does for all

    @rule(what=st.sampled_from(["end_pauses", "pause_failing", "promote", "replace", "end_stale"]))
    def sweep(self, what: str) -> None:
        newest = [job["id"] for job in self.ledger.jobs.values() if job["name"] == "newest"]
        {
            "end_pauses": lambda session: pauses.end_pauses(session, _id),
            "pause_failing": lambda session: pauses.pause_failing(session, sorted(PLAIN)),
            "promote": lambda session: runs.promote(session, None),
            "replace": lambda session: runs.replace(session, newest),
            "end_stale": runs.end_stale,
        }[what](self.scene.mine)
        self.ledger.look()
        live = [row for row in self.ledger.runs.values() if row["status"] not in TERMINAL]
        if what == "promote":
            active = {row["job"] for row in live if row["exclusive"] and row["status"] != "waiting"}
            assert {row["job"] for row in live if row["status"] == "waiting"} <= active, "a run waits for nothing"
        if what == "end_stale":
            gone = [row for row in live if self.ledger.jobs[row["job"]]["removed_at"] is not None]
            assert {row["status"] for row in gone} <= {"running"}

    @rule()
    def purge(self) -> None:
        purge_history(self.stage.purging, retention=KEPT, batch=7)
        self.ledger.look(purged=True)

    def teardown(self) -> None:
        """One healthy replica alone brings everything to its end, whatever stands around."""
        if sys.exc_info()[0] is not None or not self.players:
            return
        for player in self.players:
            self._leave(player)
        one = self._player("last", 0)
        self.players = [one]
        self._in_force(one)
        for _ in range(100):
            if not [row for row in self.ledger.runs.values() if row["status"] not in TERMINAL]:
                return
            self.time.move_on(LEASE * 4)
            if one.generation < max(job["generation"] for job in self.ledger.jobs.values()):
                self._in_force(one)  # those that died without a word are silent for long enough by now
            self.take_over(0, dead=False, renewed=False)
            for what in ("end_stale", "promote"):
                self.sweep(what)
            self.dequeue(0, 100)
            for id_ in sorted(one.held):
                self._finish(one, id_, Ending(Outcome.SUCCEEDED))
        raise AssertionError("what there was is not done with after a long time")


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
    """The same orders each time. What is found is told as it is: to make it small takes minutes, see below."""
    quick = [Phase.explicit, Phase.generate]
    _search(stage, 50, 30, phases=quick, derandomize=True, database=None)


@pytest.mark.full
@pytest.mark.timeout(1500)
def test_no_long_order_of_steps_breaks_a_promise(stage: Stage) -> None:
    """Other ones each time, and what is found is made small."""
    _search(stage, 600, 50)
