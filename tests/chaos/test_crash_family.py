"""The owner dies: at each tick again, alone or beside others, and just between a body's end and the record of it."""

from __future__ import annotations

import itertools
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from pooler import direct
from replicas import Fleet, Replica, eventually, jobs_file, once


def _repeated(fleet: Fleet, **fields: object) -> str:
    """A tick each half second; the first attempt of its first run holds until the gate opens."""
    args = {"path": str(fleet.effects), "gate": str(fleet.gate), "slow": [1]}
    return jobs_file(work={"call": "effects:hold", "every": "500ms", "args": args, **fields})


def _rows(fleet: Fleet) -> list[Any]:
    return fleet.sql("SELECT scheduled_at, status, attempt, skip_reason FROM soloist.run ORDER BY scheduled_at, id")


def _begun(fleet: Fleet, times: int = 1) -> list[list[str]]:
    return eventually(
        lambda: found if len(found := fleet.lines("begin")) >= times else None, f"a body begins {times} times"
    )


@pytest.mark.case("C054")
@pytest.mark.parametrize("others", [1, 0], ids=["another replica", "alone, started again"])
@pytest.mark.parametrize(("after_crash", "ends"), [("rerun", ("succeeded", 2)), ("fail", ("lost", 1))])
def test_after_a_kill_the_run_is_closed_and_the_next_ticks_run(
    fleet: Fleet, others: int, after_crash: str, ends: tuple[str, int]
) -> None:
    """Overlap is forbidden: a run that stayed `running` for ever would end the job."""
    jobs = _repeated(fleet, after_crash=after_crash)
    for _ in range(1 + others):
        fleet.start(jobs).ready()
    _begun(fleet)
    owner = fleet.owner_of("work")
    owner.signal(signal.SIGKILL)
    fleet.gate.touch()
    if not others:
        owner.ended()
        fleet.start(jobs).ready()
    eventually(
        lambda: [row[1] for row in _rows(fleet) if row[1] in ("succeeded", "lost")][1:],
        "it ends, and a later tick runs",
    )
    rows = _rows(fleet)
    assert rows[0][1:3] == ends
    assert {row[1] for row in rows[1:]} <= {"succeeded", "skipped", "running"}
    assert {row[3] for row in rows} <= {None, "overlap", "missed"}, "what did not run says why"
    steps = {(after[0] - before[0]).total_seconds() for before, after in itertools.pairwise(rows)}
    assert steps == {0.5}, "a tick has no row"
    ends_of_first = [outcome for _, outcome, _ in fleet.outcomes("work")][: ends[1]]
    assert ends_of_first == ["lease_lost", "succeeded"][: ends[1]], "lost contact, never silence or success"


@pytest.mark.case("C054")
def test_a_run_whose_every_owner_is_killed_ends_as_failed(fleet: Fleet) -> None:
    """Crashes have a limit of their own, also where it is the replica that dies of the job."""
    args = {"path": str(fleet.effects), "gate": str(fleet.gate)}
    entry = {"call": "effects:hold", **once(), "args": args, "crash_limit": 3, "retry": {"backoff": "100ms"}}
    jobs = jobs_file(work=entry)
    for crash in range(1, 4):
        fleet.start(jobs).ready()
        _begun(fleet, crash)
        owner = fleet.owner_of("work")
        owner.signal(signal.SIGKILL)
        owner.ended()
    fleet.start(jobs).ready()
    eventually(lambda: [status for status, _ in fleet.statuses("work")] == ["failed"], "three crashes are enough")
    # a start that took too long hands its attempt back, which is no crash
    ends = [outcome for _, outcome, _ in fleet.outcomes("work") if outcome != "handed_back"]
    assert ends == ["lease_lost"] * 3
    assert fleet.sql("SELECT crashes, last_error IS NOT NULL FROM soloist.run") == [(3, True)]
    assert len(fleet.lines("begin")) == 3


@contextmanager
def _unrecorded(fleet: Fleet) -> Iterator[Replica]:
    """The one replica's body has ended and its outcome cannot be written yet: somebody has the row.

    The body waits for that: it would be recorded before, where the test comes too late.
    """
    eventually(lambda: fleet.lines("work"), "the body is at work")
    owner = fleet.owner_of("work")
    with psycopg.connect(direct(fleet.url)) as other:
        other.execute("SELECT 1 FROM soloist.run FOR UPDATE")
        fleet.gate.touch()
        eventually(lambda: fleet.lines("done"), "the body has done its work")
        tries = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'soloist settler' AND wait_event_type = 'Lock'"
        eventually(lambda: fleet.sql(tries), "its replica tries to write that")
        yield owner


@pytest.mark.case("C063")
@pytest.mark.parametrize("isolation", ["process", "thread"])
@pytest.mark.parametrize(("after_crash", "ends"), [("rerun", ("succeeded", 2)), ("fail", ("lost", 1))])
def test_killed_after_the_work_and_before_the_record(
    fleet: Fleet, isolation: str, after_crash: str, ends: tuple[str, int]
) -> None:
    """Nobody can know that the work was done: the job's own choice decides, and each attempt shows the same key."""
    args = {"path": str(fleet.effects), "gate": str(fleet.gate)}
    entry = {"call": "toil:keyed", **once(), "isolation": isolation, "after_crash": after_crash, "args": args}
    jobs = jobs_file(work=entry)
    fleet.start(jobs).ready()
    with _unrecorded(fleet) as owner:
        owner.signal(signal.SIGKILL)
        owner.ended()
        ours = "SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'soloist%%' AND state <> 'idle'"
        eventually(lambda: not fleet.sql(ours), "the server has given up what its replica had sent")
    assert fleet.statuses("work") == [("running", 1)], "nothing of it was written"
    fleet.start(jobs).ready()
    eventually(lambda: fleet.statuses("work") == [ends], "what its job says of a crash is done")
    (first, *rest) = fleet.outcomes("work")
    assert first[1:] == ("lease_lost", owner.name), "neither failed nor succeeded: its outcome is not known"
    assert [outcome for _, outcome, _ in rest] == ["succeeded"] * (ends[1] - 1)
    work = fleet.lines("work")
    assert [line[3] for line in work] == [str(n + 1) for n in range(ends[1])]
    ((run_id,),) = fleet.sql("SELECT id FROM soloist.run")
    assert {uuid.UUID(line[1]) for line in work} == {run_id}
    assert len({line[2] for line in work}) == 1, "a receiver can tell the repetition by its key"


@pytest.mark.case("C063")
def test_an_outcome_that_could_not_be_written_at_once_is_written_when_its_replica_lives(fleet: Fleet) -> None:
    """The same moment without the death: the work is not done again."""
    args = {"path": str(fleet.effects), "gate": str(fleet.gate)}
    fleet.start(jobs_file(work={"call": "toil:keyed", **once(), "args": args})).ready()
    with _unrecorded(fleet):
        pass
    eventually(lambda: fleet.statuses("work") == [("succeeded", 1)], "attempt 1 succeeds")
    assert len(fleet.lines("work")) == 1
