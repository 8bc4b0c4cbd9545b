"""`ctx.transaction()`: the job is killed between each two steps, and the effect is there exactly once in the end."""

from __future__ import annotations

import os
import signal

import psutil
import psycopg
import pytest
from pooler import direct
from replicas import Fleet, eventually, jobs_file, once


@pytest.fixture(autouse=True)
def effect_table(fleet: Fleet) -> None:
    fleet.sql("CREATE TABLE public.effect (run uuid NOT NULL, made_at timestamptz DEFAULT clock_timestamp())")


def _jobs(fleet: Fleet, call: str = "transact", **args: object) -> str:
    entry = {"call": f"effects:{call}", **once(), "retry": {"backoff": "100ms"}}
    return jobs_file(work={**entry, "args": {"path": str(fleet.effects), **args}})


def _effects(fleet: Fleet) -> int:
    return int(fleet.sql("SELECT count(*) FROM public.effect")[0][0])


@pytest.mark.parametrize(("step", "attempts"), [("", 1), ("before", 2), ("inside", 2), ("after", 1)])
def test_killed_between_two_steps(fleet: Fleet, step: str, attempts: int) -> None:
    fleet.start(_jobs(fleet, die=step)).ready()
    eventually(lambda: fleet.statuses("work") == [("succeeded", attempts)], "the run succeeds")
    assert _effects(fleet) == 1
    eventually(lambda: len(fleet.outcomes("work")) == attempts, "each attempt has its line")
    assert fleet.outcomes("work")[-1][1] == "succeeded"
    replica = fleet.replicas[0]
    eventually(lambda: len(replica.events("AttemptEnded")) == attempts, "the replica has settled")
    assert _effects(fleet) == 1
    assert fleet.statuses("work") == [("succeeded", attempts)]


def test_killed_between_the_fenced_write_and_the_commit(fleet: Fleet) -> None:
    """A deferred trigger holds the COMMIT open, after the fenced write has happened."""
    fleet.sql(
        "CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        "  IF (SELECT count(*) FROM public.held) = 1 THEN PERFORM pg_sleep(600); END IF; RETURN NULL; END $$;"
        "CREATE TABLE public.held (once int); INSERT INTO public.held VALUES (1);"
        "CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON public.effect DEFERRABLE INITIALLY DEFERRED"
        "  FOR EACH ROW EXECUTE FUNCTION public.hold()"
    )
    fleet.start(_jobs(fleet), lease=600.0).ready()
    body = int(eventually(lambda: fleet.lines("begin"), "the body begins")[0][3])
    committing = "SELECT pid FROM pg_stat_activity WHERE application_name = 'soloist job' AND wait_event = 'PgSleep'"
    ((backend,),) = eventually(lambda: fleet.sql(committing), "the body commits")
    fleet.sql("DELETE FROM public.held")
    os.kill(body, signal.SIGKILL)
    fleet.sql("SELECT pg_terminate_backend(%s)", backend)
    eventually(lambda: fleet.statuses("work") == [("succeeded", 2)], "attempt 2 succeeds")
    assert _effects(fleet) == 1
    assert [outcome for _, outcome, _ in fleet.outcomes("work")] == ["crashed", "succeeded"]


def test_the_commit_of_a_killed_body_may_still_win(fleet: Fleet) -> None:
    """The body is dead and its COMMIT goes through all the same: the run has succeeded, and is not done again."""
    fleet.sql(
        "CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        "  PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END $$;"
        "CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON public.effect DEFERRABLE INITIALLY DEFERRED"
        "  FOR EACH ROW EXECUTE FUNCTION public.hold()"
    )
    with psycopg.connect(direct(fleet.url), autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(4711)")
        fleet.start(_jobs(fleet), lease=600.0).ready()
        body = int(eventually(lambda: fleet.lines("begin"), "the body begins")[0][3])
        waits = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'soloist job' AND wait_event = 'advisory'"
        eventually(lambda: fleet.sql(waits), "the body commits")
        os.kill(body, signal.SIGKILL)
        settles = (
            "SELECT 1 FROM pg_stat_activity WHERE application_name = 'soloist settler' AND wait_event_type = 'Lock'"
        )
        eventually(lambda: fleet.sql(settles), "the replica, for its part, says that the body crashed")
        holder.execute("SELECT pg_advisory_unlock(4711)")
    eventually(lambda: fleet.replicas[0].events("AttemptEnded", "WriteFenced"), "the replica has settled")
    assert fleet.statuses("work") == [("succeeded", 1)]
    assert _effects(fleet) == 1


def test_the_replica_killed_at_each_side_of_the_commit(fleet: Fleet) -> None:
    jobs = _jobs(fleet, die="after", gate="yes")
    fleet.start(jobs).ready()
    eventually(lambda: fleet.lines("at"), "the body has committed and has not returned")
    fleet.replicas[0].signal(signal.SIGKILL)
    other = fleet.start(jobs).ready()
    eventually(lambda: other.events("ReplicaStarted"), "another replica is there")
    body = int(fleet.lines("at")[0][-1])
    eventually(lambda: not psutil.pid_exists(body), "the body is gone", 20)
    assert fleet.statuses("work") == [("succeeded", 1)]
    assert _effects(fleet) == 1
    assert len(fleet.lines("begin")) == 1


def test_the_replica_killed_inside_the_transaction(fleet: Fleet) -> None:
    jobs = _jobs(fleet, die="inside", gate="yes")
    for _ in range(2):
        fleet.start(jobs).ready()
    eventually(lambda: fleet.lines("at"), "the body is inside")
    fleet.owner_of("work").signal(signal.SIGKILL)
    eventually(lambda: fleet.statuses("work") == [("succeeded", 2)], "attempt 2 succeeds elsewhere")
    assert _effects(fleet) == 1


def test_checkpoints_survive_each_crash(fleet: Fleet) -> None:
    entry = {"call": "effects:step_by_step", **once(), "crash_limit": 5}
    args = {"path": str(fleet.effects), "steps": 6, "die_after": [0, 3, 4]}
    fleet.start(jobs_file(work={**entry, "retry": {"backoff": "100ms"}, "args": args})).ready()
    eventually(lambda: fleet.statuses("work") == [("succeeded", 4)], "attempt 4 succeeds")
    assert _effects(fleet) == 6
    assert [(line[2], line[3]) for line in fleet.lines("begin")] == [("1", "0"), ("2", "1"), ("3", "4"), ("4", "5")]
