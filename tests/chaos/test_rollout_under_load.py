"""Three replicas give way to three of another file, one by one, while jobs tick several times a second."""

from __future__ import annotations

import signal
from collections import Counter
from datetime import UTC

import pytest
from chaos.rollout import Switch, attempts, goes_on, handed_over, scheduled, specs, tick
from replicas import Fleet, Replica, jobs_file

CHANGED = ("moved", "argued", "policy")


def _files(fleet: Fleet) -> tuple[str, str]:
    """One job stays; time, arguments or policy of others change; one goes, one comes."""
    same = tick(fleet, "same", "300ms", isolation="process")
    first = jobs_file(
        same=same,
        moved=tick(fleet, "old", "400ms"),
        argued=tick(fleet, "old", "500ms", isolation="process"),
        policy=tick(fleet, "old", "600ms"),
        gone=tick(fleet, "old", "350ms"),
    )
    second = jobs_file(
        same=same,
        moved=tick(fleet, "new", "700ms"),
        argued=tick(fleet, "new", "500ms", isolation="process"),
        policy=tick(fleet, "new", "600ms", overlap="queue_all", timeout="30s"),
        added=tick(fleet, "new", "450ms"),
    )
    return first, second


def _give_way(fleet: Fleet, old: list[Replica], second: str) -> list[Replica]:
    """As a Deployment does it: one more is ready before the next one is told to stop."""
    new = []
    for number, leaving in enumerate(old):
        new.append(fleet.start(second, f"new-{number}").ready())
        goes_on(fleet, "same", 2)
        leaving.signal(signal.SIGTERM)
        goes_on(fleet, "added", 2)
    return new


@pytest.mark.case("C081")
def test_every_tick_of_both_files_is_accounted_for_and_none_twice(fleet: Fleet) -> None:
    first, second = _files(fleet)
    old = [fleet.start(first, f"old-{number}") for number in range(3)]
    for replica in old:
        replica.ready()
    goes_on(fleet, "gone", 4)
    new = _give_way(fleet, old, second)
    assert {replica.ended() for replica in old} == {0}
    goes_on(fleet, "moved", 3)
    for replica in new:
        replica.signal(signal.SIGTERM)
    assert {replica.ended() for replica in new} == {0}
    switch = Switch.to(fleet, "new-0")
    _each_tick_has_its_row(fleet, first, second, switch)
    _no_body_of_a_stale_spec(fleet, switch)
    assert fleet.sql("SELECT max(generation) FROM soloist.config") == [(2,)]
    assert not [event for replica in fleet.replicas for event in replica.events("EngineFailed")]


def _each_tick_has_its_row(fleet: Fleet, first: str, second: str, switch: Switch) -> None:
    one, two = specs(first), specs(second)
    for job in one.keys() | two.keys():
        rows = scheduled(fleet, job)
        assert handed_over(rows, one.get(job), two.get(job), switch), f"{job}: {rows}, {switch}"
        ((watermark,),) = fleet.sql("SELECT watermark FROM soloist.job WHERE name = %s", job)
        assert job == "gone" or rows[-1] == watermark.astimezone(UTC), f"{job}: nothing is left to claim"
    ended = fleet.sql(
        "SELECT name, status, skip_reason FROM soloist.run JOIN soloist.job ON job.id = run.job"
        " WHERE status <> 'succeeded'"
    )
    left = [row for row in ended if row[1] not in ("queued", "waiting")]  # of the last tick, when nobody was left
    assert {(name, why) for name, _, why in left} <= {("gone", "stale_config")}


def _no_body_of_a_stale_spec(fleet: Fleet, switch: Switch) -> None:
    for job in CHANGED:
        ran = [one for one in attempts(fleet, job) if one[-1]]  # one that was handed back before it began has no word
        late = [word for *_, begun, word in ran if begun > switch.end]
        assert len(late) >= 3
        assert {*late} == {"new"}
        assert {word for *_, begun, word in ran if begun < switch.begin} == {"old"}
    assert not [begun for *_, begun, _ in attempts(fleet, "gone") if begun > switch.end]
    assert {who[:3] for _, _, who, _, _ in attempts(fleet, "added")} == {"new"}
    effects = Counter(tuple(line[:3]) for line in fleet.lines())
    assert set(effects.values()) == {1}, "no body ran twice"
