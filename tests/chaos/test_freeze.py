"""SIGSTOP of an owner past its lease: overtaken once; when it wakes it commits nothing, and its child is gone."""

from __future__ import annotations

import itertools
import signal
from collections import Counter
from contextlib import suppress

import psutil
import pytest
from replicas import Fleet, Replica, eventually, jobs_file, once
from side_by_side import side_by_side


def _jobs(fleet: Fleet, **fields: object) -> str:
    args = {"path": str(fleet.effects), "gate": str(fleet.gate), "slow": [1]}
    entry = {"call": "effects:hold", **once(), "args": args}
    return jobs_file(work={**entry, **fields})


def _begun(fleet: Fleet) -> int:
    """The pid of the first body."""
    return int(eventually(lambda: fleet.lines("begin"), "the body begins")[0][4])


def _wake(owner: Replica, child: int) -> None:
    owner.signal(signal.SIGCONT)
    with suppress(psutil.NoSuchProcess):
        psutil.Process(child).send_signal(signal.SIGCONT)


@pytest.mark.parametrize("frozen", ["parent", "parent and child", "the whole tree"])
def test_a_frozen_owner_is_overtaken_once_and_commits_nothing(fleet: Fleet, frozen: str) -> None:
    jobs = _jobs(fleet)
    for _ in range(2):
        fleet.start(jobs).ready()
    child = _begun(fleet)
    owner = fleet.owner_of("work")
    tree = owner.children()
    owner.signal(signal.SIGSTOP)
    for process in tree:
        if frozen == "the whole tree" or (frozen == "parent and child" and process.pid == child):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGSTOP)
    if frozen != "the whole tree":
        # the zygote is awake: it keeps the deadline of the child, stopped or not, before anybody may take over
        eventually(lambda: not psutil.pid_exists(child), "the child is gone at the trust deadline", 20)
    eventually(lambda: fleet.statuses("work") == [("succeeded", 2)], "attempt 2 succeeds elsewhere")
    written = fleet.sql("SELECT * FROM soloist.run")
    for process in tree:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGCONT)
    owner.signal(signal.SIGCONT)
    eventually(lambda: owner.events("WriteFenced"), "the zombie's outcome is refused, and that is said", 20)
    eventually(lambda: not psutil.pid_exists(child), "its child is gone", 20)
    assert fleet.sql("SELECT * FROM soloist.run") == written
    assert [outcome for _, outcome, _ in fleet.outcomes("work")] == ["lease_lost", "succeeded"]
    assert not [line for line in fleet.lines("end") if line[3] == "1"]
    assert len([event for replica in fleet.replicas for event in replica.events("RunTakenOver")]) == 1
    assert '"level": "warning"' in owner.said()
    if frozen != "the whole tree":  # there the child may wake a moment before the zygote that ends it
        assert side_by_side(fleet) == []
    assert owner.exit_code is None
    for replica in fleet.replicas:
        replica.signal(signal.SIGTERM)
        assert replica.ended() == 0
    counted = "SELECT fenced_writes, takeovers FROM soloist.replica ORDER BY fenced_writes DESC"
    assert fleet.sql(counted) == [(1, 0), (0, 1)]


def test_a_frozen_thread_body_is_told_and_its_result_is_refused(fleet: Fleet) -> None:
    jobs = _jobs(fleet, isolation="thread")
    for _ in range(2):
        fleet.start(jobs).ready()
    _begun(fleet)
    owner = fleet.owner_of("work")
    owner.signal(signal.SIGSTOP)
    eventually(lambda: fleet.statuses("work") == [("succeeded", 2)], "attempt 2 succeeds elsewhere")
    owner.signal(signal.SIGCONT)
    eventually(lambda: owner.events("WriteFenced"), "the zombie's outcome is refused", 20)
    assert [outcome for _, outcome, _ in fleet.outcomes("work")] == ["lease_lost", "succeeded"]
    assert not [line for line in fleet.lines("end") if line[3] == "1"]


def test_a_frozen_child_alone_is_still_its_owners(fleet: Fleet) -> None:
    """The replica renews; a body that stands still is no death. Its timeout ends it, stopped as it is."""
    jobs = _jobs(fleet, timeout="8s")
    for _ in range(2):
        fleet.start(jobs).ready()
    child = _begun(fleet)
    psutil.Process(child).send_signal(signal.SIGSTOP)
    eventually(lambda: fleet.statuses("work") == [("timed_out", 1)], "the timeout ends it")
    eventually(lambda: not psutil.pid_exists(child), "the stopped child is gone")
    assert not [event for replica in fleet.replicas for event in replica.events("RunTakenOver", "LeaseLostEvent")]


def test_a_short_freeze_costs_nothing(fleet: Fleet) -> None:
    jobs = _jobs(fleet)
    for _ in range(2):
        fleet.start(jobs, lease=20.0).ready()
    _begun(fleet)
    owner = fleet.owner_of("work")
    owner.signal(signal.SIGSTOP)
    ((until,),) = fleet.sql("SELECT claimed_until FROM soloist.run")
    eventually(lambda: fleet.sql("SELECT now() > %s - interval '19 s'", until) == [(True,)], "a second or two passes")
    owner.signal(signal.SIGCONT)
    eventually(lambda: fleet.sql("SELECT claimed_until > %s FROM soloist.run", until) == [(True,)], "it renews again")
    fleet.gate.touch()
    eventually(lambda: fleet.statuses("work") == [("succeeded", 1)], "attempt 1 succeeds")


def test_a_tick_missed_while_frozen_is_done_by_the_others(fleet: Fleet) -> None:
    entry = {"call": "effects:append", "every": "1s", "isolation": "thread", "args": {"path": str(fleet.effects)}}
    jobs = jobs_file(work=entry)
    for _ in range(2):
        fleet.start(jobs).ready()
    eventually(lambda: len(fleet.lines()) >= 2, "ticks run")
    fleet.replicas[0].signal(signal.SIGSTOP)
    seen = len(fleet.lines())
    eventually(lambda: len(fleet.lines()) >= seen + 4, "ticks go on")
    fleet.replicas[0].signal(signal.SIGCONT)
    eventually(lambda: len(fleet.lines()) >= seen + 6, "and after it wakes")
    attempts = [(line[1], line[2]) for line in fleet.lines()]
    assert len(attempts) == len(set(attempts))
    # frozen between an effect and the record of it, its owner was rightly overtaken
    again = {key for key, number in attempts if number != "1"}
    lost = "SELECT run_key FROM soloist.run JOIN soloist.attempt ON run = run.id WHERE outcome <> 'succeeded'"
    assert again <= {key for (key,) in fleet.sql(lost)}
    keys = Counter(key for key, _ in attempts)
    assert {key for key, times in keys.items() if times > 1} <= again
    ticks = fleet.sql("SELECT scheduled_at FROM soloist.run ORDER BY 1")
    steps = {(after - before).total_seconds() for (before,), (after,) in itertools.pairwise(ticks)}
    assert steps == {1.0}, "every tick between the first and the last has a row"
