"""Any order of what replicas, people and time may do to the tables keeps the promises: a state machine looks for one
that does not.

The statements are the engine's own, on a real database whose time the machine moves on. Replicas act on what they last
read; the ledger holds every step against what must be true of the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from cast import LEASE, PLAIN, cancel, new_id, pod_request
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from own_time import START
from replica_rules import ANY, PLAYERS, ReplicaRules, Stage

from scheduler.core.errors import AlreadyRunning, NotFound
from scheduler.core.model import TERMINAL, Ending, Outcome, Status, Trigger
from scheduler.core.schedule import latest_upto
from scheduler.store import claims, pauses, runs
from scheduler.store.backfill import Backfill, Stretch
from scheduler.store.claims import Request
from scheduler.store.jobs import read_job
from scheduler.store.pauses import Wish
from scheduler.store.purge import purge_history
from scheduler.store.retry import retry_run

pytestmark = pytest.mark.own_session  # the database's own time is a setting of a session

JOBS = st.sampled_from(sorted(PLAIN))
KEPT = {"succeeded": 50.0, "failed": 300.0, "skipped": 100.0}


class Promises(ReplicaRules):
    """Each rule is one thing that happens; then the ledger looks."""

    # -- what people do

    @rule(job=JOBS, key=st.integers(1, 3))
    def trigger(self, job: str, key: int) -> None:
        request = Request(new_id(), job, f"manual:{key}", Trigger.MANUAL, "ann", action="trigger")
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
        list(Backfill(self.scene.mine, known, "ann", new_id).fill(stretch))
        self.ledger.look()

    @rule(which=ANY, again=st.booleans())
    def cancel_or_retry(self, which: int, again: bool) -> None:
        some = sorted(id_ for id_, row in self.ledger.runs.items() if (row["status"] in TERMINAL) == again)
        if not some:
            return
        row = self.ledger.runs[some[which % len(some)]]
        if again:
            told = row | {"job": self.ledger.jobs[row["job"]]["name"]}
            self._ask(lambda: retry_run(self.scene.mine, told, "ann", new_id))
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
            pauses.resume_job(self.scene.mine, paused[which % len(paused)], "ann", None, new_id)
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
            "end_pauses": lambda session: pauses.end_pauses(session, new_id),
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
    _search(stage, 40, 30, phases=[Phase.explicit, Phase.generate], derandomize=True, database=None)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_no_long_order_of_steps_breaks_a_promise(stage: Stage) -> None:
    """Other ones each time, and what is found is made small."""
    _search(stage, 600, 50)
