"""`guard: advisory_lock`: held for the whole body by the owner's dedicated session; nobody runs beside a holder."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from pooler import direct
from replicas import HERE, Fleet, Nursery, eventually, jobs_file, once
from sessions import holder, job_key, keeper_of, terminate
from side_by_side import bodies, side_by_side

pytestmark = pytest.mark.own_session

KEY = job_key("work")
BUSY = "skipped for now: another replica runs it"


def _entry(fleet: Fleet, **fields: object) -> dict[str, Any]:
    args = {"path": str(fleet.effects), "gate": str(fleet.gate), "slow": [1]}
    return {"call": "effects:hold", **once(), "guard": "advisory_lock", "args": args, "crash_limit": 100, **fields}


def _jobs(fleet: Fleet, **fields: object) -> str:
    return jobs_file(work=_entry(fleet, **fields))


def _child(fleet: Fleet) -> int:
    return int(eventually(lambda: fleet.lines("begin"), "the body begins")[0][4])


def _note_locks_at_the_end(fleet: Fleet) -> None:
    """A trigger notes whether the job's lock is held when a run's end is written."""
    fleet.sql(
        "CREATE TABLE public.held (at_end bool, status text); CREATE FUNCTION public.note_lock() RETURNS trigger"
        " LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.held SELECT EXISTS (SELECT FROM pg_locks WHERE locktype ="
        f" 'advisory' AND ((classid::bigint << 32) | objid::bigint) = {KEY}), NEW.status; RETURN NULL; END $$;"
        "CREATE TRIGGER note_lock AFTER UPDATE ON soloist.run FOR EACH ROW"
        " WHEN (OLD.status = 'running' AND NEW.status <> 'running') EXECUTE FUNCTION public.note_lock()"
    )


@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_the_lock_is_held_by_the_owner_for_the_whole_body_and_no_longer(fleet: Fleet, isolation: str) -> None:
    _note_locks_at_the_end(fleet)
    for _ in range(2):
        fleet.start(_jobs(fleet, isolation=isolation), lease=10.0).ready()
    _child(fleet)
    owner = fleet.owner_of("work")
    assert holder(fleet, KEY) == keeper_of(fleet, owner)
    fleet.gate.touch()
    eventually(lambda: fleet.statuses("work") == [("succeeded", 1)], "it succeeds")
    assert fleet.sql("SELECT * FROM public.held") == [(False, "succeeded")], "it is let go before the end is written"
    for replica in fleet.replicas:
        replica.signal(signal.SIGTERM)
        assert replica.ended() == 0
    eventually(lambda: not fleet.sql("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"), "no lock is left")


def test_a_run_waits_while_somebody_else_holds_its_lock(fleet: Fleet) -> None:
    with psycopg.connect(direct(fleet.url), autocommit=True) as person:
        person.execute("SELECT pg_advisory_lock(%s)", [KEY])
        jobs = _jobs(fleet, args={"path": str(fleet.effects), "gate": str(fleet.gate), "slow": []})
        for _ in range(2):
            fleet.start(jobs).ready()
        tried = "SELECT count(*) FROM soloist.attempt WHERE outcome = 'handed_back'"
        eventually(lambda: fleet.sql(tried)[0][0] >= 3, "it is tried again and again")
        busy = [event for one in fleet.replicas for event in one.events("GuardBusy")]
        assert fleet.sql("SELECT DISTINCT status IN ('queued', 'running') FROM soloist.run") == [(True,)]
        assert not fleet.lines("begin")
        ((key,),) = fleet.sql("SELECT run_key FROM soloist.run")
        assert {(event["job"], event["run_key"]) for event in busy} == {("work", key)}
        said = [line for one in fleet.replicas for line in one.said().splitlines() if BUSY in line]
        assert 1 <= len(said) <= 2, "each replica says it once, not at each try"
        assert all("work" in line and key in line for line in said)
        # the lock is a person's: nobody ends the session, which owns no row of ours
        assert person.execute("SELECT pg_advisory_unlock(%s)", [KEY]).fetchone() == (True,)
    eventually(lambda: [one for one, _ in fleet.statuses("work")] == ["succeeded"], "it runs after the release")
    assert len(fleet.lines("begin")) == 1
    written = fleet.sql(
        "SELECT coalesce(last_error, '') FROM soloist.run UNION ALL SELECT error_text FROM soloist.attempt"
    )
    assert any(BUSY in (text or "") for (text,) in written), "the record says so too"
    assert fleet.sql("SELECT crashes, retries_left FROM soloist.run") == [(0, 0)], "at no cost"
    tries = fleet.sql("SELECT started_at FROM soloist.attempt ORDER BY number")
    gaps = [(after - before).total_seconds() for (before,), (after,) in itertools.pairwise(tries)]
    assert min(gaps, default=1.0) >= 0.9, "queued for a second each time"


@pytest.mark.parametrize("frozen", ["replica", "group"])
def test_nobody_runs_beside_a_frozen_owner_whose_session_is_ended_after_its_lease(fleet: Fleet, frozen: str) -> None:
    for _ in range(2):
        fleet.start(_jobs(fleet), lease=5.0).ready()
    child = _child(fleet)
    owner = fleet.owner_of("work")
    backend, tree = keeper_of(fleet, owner), owner.children()
    assert holder(fleet, KEY) == backend
    owner.signal(signal.SIGSTOP)
    for process in tree if frozen == "group" else ():
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    ((until,),) = fleet.sql("SELECT claimed_until FROM soloist.run")
    eventually(lambda: fleet.statuses("work") == [("succeeded", 2)], "it goes on elsewhere")
    assert not fleet.sql("SELECT 1 FROM pg_stat_activity WHERE pid = %s", backend), "its session was ended first"
    ((at,),) = eventually(lambda: fleet.sql("SELECT started_at FROM soloist.attempt WHERE number = 2"), "its line")
    assert at > until
    assert side_by_side(fleet) == []
    for process in tree:
        with suppress(psutil.NoSuchProcess):
            process.resume()
    owner.signal(signal.SIGCONT)
    eventually(lambda: owner.events("WriteFenced"), "the zombie's outcome is refused")
    eventually(lambda: not psutil.pid_exists(child), "its child is gone", 20)
    assert not [line for line in fleet.lines("end") if line[3] == "1"]
    keeper_of(fleet, owner)
    assert owner.exit_code is None


@pytest.mark.case("C042")
@pytest.mark.parametrize(("after_crash", "end"), [("rerun", ("succeeded", 2)), ("fail", ("lost", 1))])
def test_a_lost_lock_stops_the_run(fleet: Fleet, after_crash: str, end: tuple[str, int]) -> None:
    """The row is still the owner's; the lock is somebody's who asks for it first. The body has to go."""
    for _ in range(2):
        fleet.start(_jobs(fleet, after_crash=after_crash), lease=20.0).ready()
    child = _child(fleet)
    terminate(fleet, keeper_of(fleet, fleet.owner_of("work")))
    eventually(lambda: not psutil.pid_exists(child), "the body is stopped", 15)
    eventually(lambda: fleet.statuses("work") == [end], "and the run goes the way that its job wants")
    assert side_by_side(fleet) == []
    assert len(fleet.lines("begin")) == end[1]
    assert holder(fleet, KEY) is None
    for replica in fleet.replicas:
        assert replica.exit_code is None, replica.said()


def test_a_killed_owners_lock_is_free_for_the_next(fleet: Fleet) -> None:
    args = {"path": str(fleet.effects), "gate": str(fleet.gate)}
    for _ in range(2):
        fleet.start(_jobs(fleet, args=args), lease=15.0).ready()
    _child(fleet)
    owner = fleet.owner_of("work")
    owner.signal(signal.SIGKILL)
    owner.ended()
    eventually(lambda: len(fleet.lines("begin")) == 2, "attempt 2 begins")
    survivor = next(one for one in fleet.replicas if one is not owner)
    assert holder(fleet, KEY) == keeper_of(fleet, survivor)
    fleet.gate.touch()
    eventually(lambda: fleet.statuses("work") == [("succeeded", 2)], "it succeeds")
    assert side_by_side(fleet) == []


@pytest.mark.case("C041")
def test_one_session_never_takes_the_lock_twice(fleet: Fleet) -> None:
    """Session locks are re-entrant: ticks and triggered runs of one job meet in one replica, one at a time."""
    args = {"path": str(fleet.effects), "gate": str(fleet.gate), "seconds": 1.2}
    jobs = jobs_file(work={"call": "effects:hold", "every": "1s", "guard": "advisory_lock", "args": args})
    fleet.start(jobs).ready()
    _child(fleet)
    command = [sys.executable, "-m", "scheduler", "trigger", "work"]
    environment = {**os.environ, "SOLOIST_DATABASE_URL": fleet.url}
    for _ in range(2):
        subprocess.run(command, cwd=HERE.parent, env=environment, check=True, timeout=60, capture_output=True)
    triggered = "SELECT count(*) FROM soloist.run WHERE trigger = 'manual' AND status = 'succeeded'"
    eventually(lambda: fleet.sql(triggered) == [(2,)], "both triggered runs have had their turn")
    eventually(lambda: len(fleet.lines("end")) >= 5, "and ticks too")
    assert side_by_side(fleet) == []


@pytest.fixture
def seeded_nursery() -> Iterator[Nursery]:
    """Its `hash()` is another one than that of the session's nursery."""
    made = Nursery({"PYTHONHASHSEED": "4711"})
    yield made
    made.close()


@pytest.mark.case("C044")
def test_keys_are_the_same_in_every_process_and_different_for_every_job(
    fleet: Fleet, seeded_nursery: Nursery, tmp_path: Path
) -> None:
    """These two names are equal under hashtext; `hash()` differs between the two replicas."""
    names = ("job-30387", "job-126573")
    assert fleet.sql("SELECT hashtext(%s) = hashtext(%s)", *names) == [(True,)]
    jobs = jobs_file(**{name: _entry(fleet) for name in names})
    (tmp_path / "other").mkdir()
    other = Fleet(seeded_nursery, tmp_path / "other", fleet.url)
    other.settings.update(fleet.settings)
    try:
        for one in (fleet, other):
            one.start(jobs, f"of-{one.folder.name}", seats=1, lease=15.0).ready()
        eventually(lambda: len(fleet.lines("begin")) == 2, "both run at once, one in each replica")
        holders = {holder(fleet, job_key(name)) for name in names}
        keepers = {keeper_of(one, one.replicas[0]) for one in (fleet, other)}
        assert holders == keepers
        assert not [event for one in (fleet, other) for event in one.replicas[0].events("GuardBusy")]
        fleet.gate.touch()
        for name in names:
            eventually(lambda name=name: fleet.statuses(name) == [("succeeded", 1)], f"{name} succeeds")
        assert all(bodies(fleet, name) for name in names)
    finally:
        other.close()
