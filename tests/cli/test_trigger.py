"""trigger: beside a run, before a tick, and twice at once."""

from __future__ import annotations

import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from desk import Desk
from pooler import direct
from replicas import eventually
from scene import Scene, birth, spec
from uuid_utils.compat import uuid7

from scheduler.core.model import Ending, Outcome, Status, Trigger
from scheduler.core.policy import Decision
from scheduler.store import runs
from scheduler.store.claims import Request, create_run
from scheduler.store.runs import Settlement
from scheduler.store.visit import patiently

JOB = spec("alpha")
pytestmark = pytest.mark.case("C121")


def test_beside_a_run_it_waits_and_follows(desk: Desk, scene: Scene) -> None:
    scene.jobs(JOB)
    owner = scene.owner()
    active = scene.running(owner, JOB)
    (asked,) = desk.run("trigger", "alpha", "-o", "json").rows
    assert asked["status"] == "waiting"
    runs.settle(scene.mine, owner, [Settlement(active, 1, Decision(Status.SUCCEEDED), Ending(Outcome.SUCCEEDED))])
    runs.promote(scene.mine, None)
    row = scene.row(uuid.UUID(asked["id"]))
    assert (row["status"], row["trigger"]) == ("queued", "manual")


def test_it_takes_no_ticks_place(desk: Desk, scene: Scene) -> None:
    """Asked for just before a tick: the tick has its own row, whatever becomes of the run."""
    scene.jobs(JOB)
    (asked,) = desk.run("trigger", "alpha", "-o", "json").rows
    scene.sql("UPDATE soloist.run SET status = 'succeeded', finished_at = now(), ready_at = NULL")
    (made,) = scene.claim(scene.owner(), scene.want(JOB, birth(1))).made
    assert made.status is Status.RUNNING
    assert {row["run_key"] for row in scene.rows()} == {asked["run_key"], "2026-01-01T00:00:01Z"}


def test_two_people_click_at_once(desk: Desk, scene: Scene) -> None:
    scene.jobs(JOB)
    clicks = [desk.start("trigger", "alpha", "--key", "today", "-o", "json") for _ in range(2)]
    assert [click.wait() for click in clicks] == [0, 0]
    rows = [json.loads(click.text)[0] for click in clicks]
    assert sorted(row["status"] for row in rows) == ["existing", "queued"]
    assert len({row["id"] for row in rows}) == len(scene.rows()) == 1
    (line,) = scene.sql("SELECT * FROM soloist.audit")
    assert (line["action"], str(line["run"])) == ("trigger", rows[0]["id"])


def test_another_payload_under_the_same_key_is_said_to_be_unused(desk: Desk, scene: Scene) -> None:
    scene.jobs(JOB)
    words = ["trigger", "alpha", "--key", "today", "-o", "json"]
    first = desk.run(*words, "--payload", '{"day": 1, "to": ["a"]}')
    assert (first.err, first.rows[0]["payload_ignored"]) == ("", False)
    for same in ([], ["--payload", '{"to": ["a"], "day": 1.0}']):  # none was given, and none was dropped
        again = desk.run(*words, *same)
        assert (again.code, again.err) == (0, "")
        assert (again.rows[0]["status"], again.rows[0]["payload_ignored"]) == ("existing", False)
    other = desk.run(*words, "--payload", '{"day": 2}')
    assert (other.code, other.rows[0]["status"], other.rows[0]["payload_ignored"]) == (0, "existing", True)
    assert f"run {other.rows[0]['id']} has this key already, with another payload" in other.err
    assert [row["payload"] for row in scene.rows()] == [{"day": 1, "to": ["a"]}]
    assert desk.run("trigger", "alpha", "--key", "bare").code == 0
    assert "with another payload" in desk.run("trigger", "alpha", "--key", "bare", "--payload", "{}").err


@pytest.mark.parametrize("command", ["trigger", "retry"])
def test_it_waits_for_a_commit_that_takes_its_time(desk: Desk, scene: Scene, command: str) -> None:
    """The other one's row is not there yet, and stands in the way: this is no reason to send a person away."""
    scene.jobs(JOB)
    owner = scene.owner()
    run = scene.running(owner, JOB)
    runs.settle(scene.mine, owner, [Settlement(run, 1, Decision(Status.FAILED), Ending(Outcome.FAILED))])
    words = ["trigger", "alpha", "--key", "today"] if command == "trigger" else ["runs", "retry", str(run)]
    key = "manual:today" if command == "trigger" else f"{scene.row(run)['run_key']}~2"
    tries = "SELECT query_start FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with psycopg.connect(direct(scene.url)) as other:
        other.execute(
            "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, spec_hash, ready_at)"
            " SELECT gen_random_uuid(), job, %s, now(), 'manual', 'queued', exclusive, spec_hash, now()"
            " FROM soloist.run",
            (key,),
        )
        asked, seen = desk.start(*words, "-o", "json"), set()

        def tried_again() -> bool:
            seen.update(row["query_start"] for row in scene.sql(tries))
            return len(seen) > 1

        eventually(tried_again, "it tries a second time")
        other.rollback()
    assert asked.wait() == 0
    assert len(scene.rows()) == 2


def test_a_proxy_repeats_a_click_many_times_at_once(scene: Scene) -> None:
    scene.jobs(JOB)
    gate = threading.Barrier(8)
    sessions = [scene.session(f"t{n}") for n in range(8)]

    def click(n: int) -> bool:
        gate.wait()
        request = Request(uuid7(), "alpha", "manual:x", Trigger.MANUAL, "ann")
        return patiently(lambda: create_run(sessions[n], request)).fresh

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(click, range(8))) == 1
    assert len(scene.rows()) == 1


def test_the_same_request_sent_again_is_the_same_run(scene: Scene) -> None:
    """An answer was lost: who asks again with the same id is told that the run is his."""
    scene.jobs(JOB)
    request = Request(uuid7(), "alpha", "manual:x", Trigger.MANUAL, "ann", action="trigger")
    first, second = create_run(scene.mine, request), create_run(scene.mine, request)
    assert (first, first.fresh) == (second, True)
    assert len(scene.sql("SELECT 1 FROM soloist.audit")) == 1
