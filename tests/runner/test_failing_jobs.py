"""`pause_after_failures`: a job that fails again and again is paused by whoever wrote the last of its bad ends."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
from local import Local
from replicas import Fleet, eventually, jobs_file, once
from scene import Scene
from uuid_utils.compat import uuid7

from scheduler.core.events import AttemptEnded, JobPaused
from scheduler.store import pauses

Start = Callable[..., Local]


def _entry(way: str, **fields: Any) -> dict[str, Any]:
    entry = {"call": "effects:behave", "every": "300ms", "args": {"how": way}, "isolation": "thread"}
    return {**entry, "pause_after_failures": 3, **fields}


def _paused(facts: Scene, job: str = "a") -> Any:
    rows = facts.sql("SELECT * FROM soloist.job WHERE name = %s AND paused_at IS NOT NULL", job)
    return rows[0] if rows else None


def test_three_failures_in_a_row_pause_the_job_and_no_other(start: Start, facts: Scene) -> None:
    local = start(jobs_file(a=_entry("fail"), b=_entry("fail", pause_after_failures=None)))
    row = eventually(lambda: _paused(facts), "it is paused")
    assert row["paused_by"] == "soloist"
    assert row["paused_reason"].startswith("3 runs in a row failed, the last: ")
    (event,) = local.heard(JobPaused, job="a") and local.of(JobPaused)
    assert (event.job, event.by, event.reason) == ("a", "soloist", row["paused_reason"])
    ends = [type(one) for one in local.events if getattr(one, "job", "") == "a"]
    assert ends.index(JobPaused) > ends.index(AttemptEnded), "the failure is told first"
    seen = len(facts.rows("b"))
    eventually(lambda: len(facts.rows("b")) > seen + 4, "its neighbour goes on")
    # on a slow machine a tick finds the one before it at work, and one more begins before the third's end is judged
    ran = [one for one in facts.rows("a") if one["status"] != "skipped"]
    assert [one["status"] for one in ran][:3] == ["failed"] * 3
    assert {one["created_at"] <= row["paused_at"] for one in ran} == {True}, "nothing is begun in a pause"
    (line,) = facts.sql("SELECT * FROM soloist.audit")
    assert (line["who"], line["action"], line["job"], line["why"]) == ("soloist", "pause", "a", row["paused_reason"])


def test_a_success_in_between_starts_the_count_anew(start: Start, facts: Scene) -> None:
    """Two tries a run: each fails once, and none of them is a bad end."""
    local = start(jobs_file(a=_entry("retry", retry={"attempts": 2, "backoff": "10ms"}, pause_after_failures=1)))
    ended = "SELECT 1 FROM soloist.run WHERE status = 'succeeded' AND attempt = 2"
    eventually(lambda: len(facts.sql(ended)) > 3, "several succeed at the second try")
    assert not local.of(JobPaused)
    assert not _paused(facts)


def test_after_a_resume_it_takes_as_many_again(start: Start, facts: Scene) -> None:
    start(jobs_file(a=_entry("fail", pause_after_failures=2)))
    eventually(lambda: _paused(facts), "it is paused")
    eventually(lambda: not facts.sql("SELECT 1 FROM soloist.run WHERE finished_at IS NULL"), "what began has ended")
    before = len(facts.rows("a"))
    pauses.resume_job(facts.mine, "a", "ann", "mended", uuid7)
    eventually(lambda: _paused(facts), "it is paused again")
    statuses = [one["status"] for one in facts.rows("a")]
    assert statuses[:before].count("failed") >= 2
    assert statuses[before:].count("failed") >= 2


def test_two_replicas_pause_it_once(start: Start, facts: Scene) -> None:
    jobs = jobs_file(a=_entry("fail", overlap="allow"))
    both = [start(jobs, name="one"), start(jobs, name="two")]
    eventually(lambda: _paused(facts), "it is paused")
    eventually(lambda: [event for one in both for event in one.of(JobPaused)], "it is told")
    assert len(facts.sql("SELECT 1 FROM soloist.audit")) == 1


def test_a_secret_does_not_stand_in_the_reason(start: Start, facts: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPORTS_PASSWORD", "hunter22")
    start(jobs_file(a=_entry("secret", pause_after_failures=1)))
    row = eventually(lambda: _paused(facts), "it is paused")
    assert row["paused_reason"] == "a run failed: refused: ***"


def test_what_the_dead_leave_counts(fleet: Fleet) -> None:
    """Its owner is killed in the middle: whoever takes the run over ends it, and that was one too many."""
    args = {"path": str(fleet.effects), "gate": str(fleet.gate)}
    entry = {"call": "effects:hold", **once(), "args": args, "after_crash": "fail", "pause_after_failures": 1}
    jobs = jobs_file(a=entry)
    victim, heir = (fleet.start(jobs, lease=15.0).ready() for _ in range(2))
    owner = fleet.owner_of("a")
    other = heir if owner is victim else victim
    owner.signal(signal.SIGKILL)
    found = "SELECT paused_reason FROM soloist.job WHERE paused_at IS NOT NULL AND paused_by = 'soloist'"
    ((reason,),) = eventually(lambda: fleet.sql(found), "it is paused")
    assert fleet.statuses("a") == [("lost", 1)]
    assert reason.startswith("a run failed: ")
    eventually(lambda: other.events("JobPaused", job="a", by="soloist"), "the heir tells it")
