"""A deploy replaces replicas of one file by those of another: what each may still do while both are there."""

from __future__ import annotations

import signal

import pytest
from chaos.rollout import (
    Switch,
    attempts,
    database_now,
    goes_on,
    gone_since,
    handed_over,
    scheduled,
    shown_replicas,
    specs,
    tick,
)
from replicas import Fleet, eventually, jobs_file, once


def _skipped(fleet: Fleet, job: str) -> list[str]:
    rows = fleet.sql(
        "SELECT skip_reason FROM soloist.run JOIN soloist.job ON job.id = run.job WHERE job.name = %s"
        " AND status = 'skipped' ORDER BY scheduled_at",
        job,
    )
    return [reason for (reason,) in rows]


@pytest.mark.case("C079")
def test_a_removed_job_ends_what_it_runs_and_starts_nothing(fleet: Fleet) -> None:
    """Its replica is the only one that knows it; a new job is for the new ones alone."""
    hold = {"path": str(fleet.effects), "gate": str(fleet.gate)}
    gone = tick(fleet, "", call="effects:hold", args=hold, overlap="queue_all", isolation=None)
    later = tick(fleet, "", every=None, **once(), call="effects:behave", args={"how": "retry late"})
    same = tick(fleet, "same")
    old = fleet.start(jobs_file(gone=gone, later=later | {"retry": {"attempts": 2}}, same=same), "old").ready()
    eventually(lambda: fleet.statuses("gone")[2:], "one runs, two wait")
    eventually(lambda: fleet.statuses("later") == [("queued", 1)], "one waits for its retry")
    new = fleet.start(jobs_file(same=same, added=tick(fleet, "new")), "new").ready()
    switch = Switch.to(fleet, "new")
    eventually(lambda: fleet.statuses("later") == [("skipped", 1)], "it is not tried again")
    eventually(lambda: {status for status, _ in fleet.statuses("gone")[1:]} == {"skipped"}, "what waited has ended")
    for who in (old, new):
        goes_on(fleet, "same", by=who.name)
    goes_on(fleet, "added")
    assert {*_skipped(fleet, "gone"), *_skipped(fleet, "later")} == {"stale_config"}
    assert fleet.statuses("gone")[0] == ("running", 1), "what had begun goes on"
    _shows_who_has_what(fleet)
    fleet.gate.touch()
    eventually(lambda: fleet.statuses("gone")[0] == ("succeeded", 1), "and ends as it would have")
    goes_on(fleet, "same", by="old")
    assert [who for _, _, who in fleet.outcomes("gone")] == ["old"]
    assert {who for _, _, who, _, _ in attempts(fleet, "added")} == {"new"}
    started = fleet.sql(
        "SELECT name FROM soloist.run JOIN soloist.job ON job.id = run.job WHERE name IN ('gone', 'later')"
        " AND (started_at > %s OR scheduled_at > %s)",
        switch.begin,
        switch.end,
    )
    assert started == []
    assert len(old.events("AttemptStarted", job="gone")) == 1


def _shows_who_has_what(fleet: Fleet) -> None:
    rows = shown_replicas(fleet)
    old, new = rows["old"], rows["new"]
    assert (old["generation"], new["generation"]) == (1, 2)
    assert (old["in_force"], new["in_force"]) == (False, True)
    assert old["config_hash"] != new["config_hash"]
    assert old["tzdata"] == new["tzdata"] != ""
    assert [row["file_problem"] for row in (old, new)] == [None, None]
    assert [row["state"] for row in (old, new)] == ["live", "live"]


def test_an_old_pod_that_restarts_in_the_middle_takes_only_what_is_the_same(fleet: Fleet) -> None:
    same, edited = tick(fleet, "same"), tick(fleet, "old")
    first = jobs_file(same=same, edited=edited, moved=edited, gone=edited)
    second = jobs_file(
        same=same, edited=tick(fleet, "new"), moved=tick(fleet, "new", "700ms"), added=tick(fleet, "new")
    )
    fleet.start(first, "old").ready()
    goes_on(fleet, "gone", 1)
    fleet.start(second, "new").ready()
    switch = Switch.to(fleet, "new")
    before = fleet.sql("SELECT name, spec_hash, generation, removed_at FROM soloist.job ORDER BY 1")
    fleet.replicas[0].signal(signal.SIGKILL)
    again = fleet.start(first, "again").ready()
    for job in ("edited", "moved", "added"):
        goes_on(fleet, job, by="new")
    goes_on(fleet, "same", by="again")
    assert {event["job"] for event in again.events("TickWon", "AttemptStarted")} == {"same"}
    assert fleet.sql("SELECT name, spec_hash, generation, removed_at FROM soloist.job ORDER BY 1") == before
    assert fleet.sql("SELECT max(generation) FROM soloist.config") == [(2,)]
    late = [words for job in ("edited", "moved", "gone") for words in attempts(fleet, job) if words[3] > switch.end]
    assert {who for _, _, who, _, _ in late} == {"new"}
    assert {word for *_, word in late if word} == {"new"}, "one that was handed back before it began has no word"
    assert shown_replicas(fleet)["again"]["in_force"] is False


@pytest.mark.parametrize("how", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.full)])
def test_when_the_last_newer_replica_is_gone_the_older_file_is_in_force_again(
    fleet: Fleet, how: signal.Signals
) -> None:
    """By itself: within a heartbeat of an end in good order, after the silence of one that was killed."""
    same = tick(fleet, "same")
    first = jobs_file(same=same, moved=tick(fleet, "old", "400ms"), gone=tick(fleet, "old"))
    second = jobs_file(same=same, moved=tick(fleet, "new", "700ms"), added=tick(fleet, "new", "600ms"))
    old = fleet.start(first, "old").ready()
    goes_on(fleet, "gone", 2)
    new = fleet.start(second, "new").ready()
    there = Switch.to(fleet, "new")
    goes_on(fleet, "moved", by="new")
    new.signal(how)
    new.ended()
    known = "SELECT removed_at IS NULL FROM soloist.job WHERE name = %s"
    eventually(lambda: fleet.sql(known, "gone") == [(True,)], "the older file is in force", 90)
    back = Switch(gone_since(fleet, "new"), database_now(fleet))
    for job in ("same", "moved", "gone"):
        goes_on(fleet, job, by="old")
    one, two = specs(first), specs(second)
    rows = {job: scheduled(fleet, job) for job in ("same", "moved", "gone", "added")}
    assert handed_over(rows["same"], one["same"], one["same"], back)
    assert handed_over([at for at in rows["moved"] if at <= back.begin], one["moved"], two["moved"], there)
    assert handed_over([at for at in rows["moved"] if at > there.end], two["moved"], one["moved"], back)
    assert handed_over([at for at in rows["gone"] if at <= back.begin], one["gone"], None, there)
    assert handed_over([at for at in rows["gone"] if at > there.end], None, one["gone"], back), (
        "nothing of the time away"
    )
    assert handed_over(rows["added"], two["added"], None, back), "also what nobody was left for says so"
    assert fleet.sql(known, "added") == [(False,)]
    assert not old.events("EngineFailed")
