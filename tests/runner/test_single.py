"""exec: one run under the same guard, by a process that has no say in the plan."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from local import Local
from replicas import HERE, away_from_a_tick, eventually, jobs_file
from scene import Scene

from scheduler.app import Soloist
from scheduler.config.jobs_file import parse
from scheduler.config.settings import Settings
from scheduler.core.errors import PlanSuperseded
from scheduler.core.schedule import latest_upto
from scheduler.runner.single import Single, tick_of

Start = Callable[..., Local]


@pytest.fixture(autouse=True)
def _one_hour() -> None:
    """What is asked for twice is the same hour's tick."""
    away_from_a_tick(3600)


def execute(url: str, jobs: str, job: str = "a", *, force: bool = False) -> tuple[int, list[str]]:
    """Its exit code, and what it said."""
    plan, said = parse(jobs.encode(), "jobs.yaml", HERE / "bodies"), []
    parts, service = Soloist(Settings(replica="pod", lease=5.0, drain=1.0, seats=1), plan, url).wire(only=job)
    spec = next(spec for spec in plan.jobs if spec.name == job)
    assert spec.schedule is not None
    now = parts.room.clock.now() - timedelta(seconds=1)
    at = latest_upto(spec.schedule, now)
    assert at is not None
    single = Single(service, parts, said.append)
    return single.run(tick_of(spec, at, force)), said


def entry(path: Path, **fields: object) -> dict[str, object]:
    return {"call": "effects:append", "every": "1h", "isolation": "thread", "args": {"path": str(path)}, **fields}


def test_the_tick_runs_once_however_often_it_is_asked_for(database_url: str, facts: Scene, tmp_path: Path) -> None:
    jobs = jobs_file(a=entry(tmp_path / "seen"))
    assert execute(database_url, jobs)[0] == 0
    code, said = execute(database_url, jobs)
    assert code == 0
    assert "succeeded already, by pod" in said[0]
    assert len((tmp_path / "seen").read_text().splitlines()) == 1
    assert [row["trigger"] for row in facts.rows("a")] == ["cronjob"]


def test_it_leaves_the_other_jobs_of_the_plan_alone(
    start: Start, database_url: str, facts: Scene, tmp_path: Path
) -> None:
    start(jobs_file(a=entry(tmp_path / "seen"), other=entry(tmp_path / "other")), name="replica")
    before = facts.sql("SELECT name, spec_hash, generation, removed_at FROM soloist.job ORDER BY 1")
    assert execute(database_url, jobs_file(a=entry(tmp_path / "seen")))[0] == 0
    assert facts.sql("SELECT name, spec_hash, generation, removed_at FROM soloist.job ORDER BY 1") == before


def test_an_older_file_does_not_run_what_a_newer_one_changed(
    start: Start, database_url: str, tmp_path: Path, facts: Scene
) -> None:
    old = jobs_file(a=entry(tmp_path / "seen"))
    assert execute(database_url, old)[0] == 0
    start(jobs_file(a=entry(tmp_path / "seen", timeout="9s")), name="newer")
    facts.sql("DELETE FROM soloist.run")
    with pytest.raises(PlanSuperseded, match="a newer jobs file is in force"):
        execute(database_url, old)
    assert facts.rows("a") == []


def test_failures_are_retried_here_and_end_in_the_exit_code(database_url: str, facts: Scene, tmp_path: Path) -> None:
    retry = {"attempts": 2, "backoff": "100ms", "max": "1s"}
    fails = entry(tmp_path / "seen", args={"how": "fail"}, call="effects:behave", retry=retry)
    code, _ = execute(database_url, jobs_file(a=fails))
    assert code == 1
    assert [(row["status"], row["attempt"]) for row in facts.rows("a")] == [("failed", 2)]


def test_it_ends_with_its_engine_and_hands_the_run_back(database_url: str, facts: Scene, tmp_path: Path) -> None:
    """A thread of the engine has failed: going on would begin the body again and again."""
    holds = entry(
        tmp_path / "seen", call="effects:hold", args={"path": str(tmp_path / "s"), "gate": str(tmp_path / "g")}
    )
    plan, said, codes = parse(jobs_file(a=holds).encode(), "jobs.yaml", HERE / "bodies"), [], []
    parts, service = Soloist(Settings(replica="pod", lease=5.0, drain=0.0, seats=1), plan, database_url).wire(only="a")
    at = latest_upto(plan.jobs[0].schedule, parts.room.clock.now() - timedelta(seconds=1))  # type: ignore[arg-type]
    assert at is not None
    single = Single(service, parts, said.append)
    running = threading.Thread(target=lambda: codes.append(single.run(tick_of(plan.jobs[0], at))))
    running.start()
    eventually((tmp_path / "s").exists, "the body begins")
    service._fail()
    running.join(60)
    assert codes == [1]
    assert [(row["status"], row["attempt"]) for row in facts.rows("a")] == [("queued", 1)]


def test_a_failure_here_counts_for_a_pause(database_url: str, facts: Scene) -> None:
    """What a CronJob's pod calls has no replica beside it that would count."""
    jobs = {"call": "effects:behave", "args": {"how": "fail"}, "every": "1h", "isolation": "thread"}
    assert execute(database_url, jobs_file(a={**jobs, "pause_after_failures": 1}))[0] == 1
    (row,) = facts.sql("SELECT paused_by, paused_reason FROM soloist.job")
    assert row == {"paused_by": "soloist", "paused_reason": "a run failed: no"}


def test_a_paused_jobs_tick_is_not_run_unless_forced(database_url: str, facts: Scene, tmp_path: Path) -> None:
    """A pause stops ticks wherever they come from; the row at its end counts them."""
    seen, jobs = tmp_path / "seen", jobs_file(a=entry(tmp_path / "seen", every="1s"))
    assert execute(database_url, jobs)[0] == 0
    facts.sql("UPDATE soloist.job SET paused_at = now(), paused_by = 'ann', paused_reason = 'a migration'")
    ran, at = seen.read_text(), facts.sql("SELECT clock_timestamp() AS at")[0]["at"]
    eventually(
        lambda: facts.sql("SELECT 1 FROM (SELECT clock_timestamp() AS n) c WHERE n > %s + interval '3 s'", at), "3 s"
    )
    code, said = execute(database_url, jobs)
    assert (code, seen.read_text()) == (0, ran), "a pod of a CronJob must not fail of it, and be tried again"
    assert "not run, the job is paused by ann: a migration" in said[0]
    assert len(facts.rows("a")) == 1, "no row: the pause is not over"
    assert execute(database_url, jobs, force=True)[0] == 0
    assert len(facts.rows("a")) == 2
    assert len(seen.read_text().splitlines()) == 2


def test_a_run_that_exists_is_seen_through_a_pause(database_url: str, facts: Scene, tmp_path: Path) -> None:
    jobs = jobs_file(a=entry(tmp_path / "seen"))
    assert execute(database_url, jobs)[0] == 0
    facts.sql("UPDATE soloist.job SET paused_at = now(), paused_by = 'ann', paused_reason = 'a migration'")
    code, said = execute(database_url, jobs)
    assert code == 0
    assert "succeeded already" in said[0]
