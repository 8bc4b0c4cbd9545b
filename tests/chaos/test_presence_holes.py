"""Where the end of a session, and what follows from it, could be missed or counted from too late a moment."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest
from pooler import direct
from proxy import Proxy
from replicas import Fleet, eventually, jobs_file, once
from rooms import Rooms
from sessions import holder, keeper_of, presence_key, terminate
from side_by_side import bodies, side_by_side

from scheduler.core.events import AttemptEnded, LeaseLostEvent, WriteFenced
from scheduler.store import claims, runs

pytestmark = pytest.mark.own_session

INTERVAL = 1.0  # seconds between renewals with a lease of 10 s and more: so long the owner has to stand again
TOO_LATE = 0.9 * INTERVAL  # a zygote that counted from its waking would let the body live for a whole one
AT_ONCE = 0.6  # seconds: for a busy machine, and well before one more interval
GATE = 20261203  # the advisory lock that holds a claim back


def _boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _jobs(fleet: Fleet) -> str:
    args = {"path": str(fleet.effects), "gate": str(fleet.gate), "slow": [1]}
    return jobs_file(work={"call": "effects:hold", **once(), "args": args, "crash_limit": 100})


def _child(fleet: Fleet) -> psutil.Process:
    """The process of the first body."""
    return psutil.Process(int(eventually(lambda: fleet.lines("begin"), "the body begins")[0][4]))


def _renewed(fleet: Fleet) -> None:
    """Let the owner renew three times: the others have seen it meanwhile."""
    renewed = "SELECT claimed_until FROM soloist.run WHERE status = 'running'"
    for _ in range(3):
        seen = fleet.sql(renewed)
        eventually(lambda seen=seen: fleet.sql(renewed) != seen, "the owner renews")


def _stop(process: psutil.Process) -> None:
    process.suspend()
    eventually(lambda: process.status() == psutil.STATUS_STOPPED, "it stands still")


def test_a_zygote_that_slept_when_the_session_ended_does_not_count_from_its_waking(fleet: Fleet) -> None:
    """It cannot know when that was; others may have counted all the while.

    The other replica is frozen once it has seen the owner go, until its patience is over: awake, it would rightly take
    the run from a zygote that sleeps for that long. Woken, it begins at once, so that a body which had another interval
    to live would be met at work.
    """
    for _ in range(2):
        fleet.start(_jobs(fleet), lease=30.0).ready()
    child = _child(fleet)
    zygote = child.parent()
    assert zygote is not None
    _renewed(fleet)
    owner = fleet.owner_of("work")
    (other,) = (replica for replica in fleet.replicas if replica is not owner)
    key, backend = presence_key(fleet, owner), keeper_of(fleet, owner)
    _stop(psutil.Process(owner.pid))
    _stop(zygote)
    terminate(fleet, backend)
    eventually(lambda: holder(fleet, key) is None, "the owner's lock is gone")
    fell = _boottime()
    eventually(lambda: _boottime() > fell + 0.6 * INTERVAL, "the other looks, several times")
    _stop(psutil.Process(other.pid))
    eventually(lambda: _boottime() > fell + 2.5 * INTERVAL, "it has waited for as long as it must")
    assert child.is_running()
    zygote.resume()
    woken = _boottime()
    with suppress(psutil.TimeoutExpired):
        child.wait(TOO_LATE)
    other.signal(signal.SIGCONT)
    eventually(lambda: fleet.statuses("work") == [("succeeded", 2)], "attempt 2 succeeds elsewhere")
    eventually(lambda: not child.is_running(), "the body has ended, in time or not")
    (_, last, _), _ = bodies(fleet, "work")
    assert side_by_side(fleet) == []
    assert fell < last < woken + TOO_LATE, f"the body worked on for {last - woken:.3f} s"
    assert [event["how"] for event in other.events("RunTakenOver")] == ["presence"]


def test_a_keeper_whose_answer_hangs_gives_its_session_up_however_long_the_lease(fleet: Fleet) -> None:
    """The server's own keepalives would end such a session after 25 s, and others take the run two renewals later.

    Behind the proxy they do not: it answers them. So the lock stands to the end, and all that happens is the owner's
    doing.
    """
    with Proxy(direct(fleet.url)) as proxy:
        owner = fleet.start(_jobs(fleet), "owner", direct_database_url=proxy.url, lease=600.0).ready()
        child = _child(fleet)
        other = fleet.start(_jobs(fleet), "other", lease=600.0).ready()
        _renewed(fleet)
        backend = keeper_of(fleet, owner)
        proxy.stall()
        eventually(lambda: owner.events("PresenceLost"), "the owner gives its session up", 24)
        eventually(lambda: not child.is_running(), "its body is ended, and not by the lease", 60)
        eventually(lambda: fleet.statuses("work") == [("succeeded", 2)], "attempt 2 succeeds elsewhere")
        assert keeper_of(fleet, owner) == backend
        assert [replica for _, _, replica in fleet.outcomes("work")] == ["owner", "other"]
        assert not other.events("RunTakenOver")
        assert side_by_side(fleet) == []
        proxy.flow()
        eventually(lambda: keeper_of(fleet, owner) != backend, "the owner stands again")
    assert owner.exit_code is None


@pytest.fixture
def rooms(database_url: str, tmp_path: Path) -> Iterator[Rooms]:
    """Claims go through the proxy, and the keeper past it. A claim waits within its statement for the GATE's lock."""
    made = Rooms(database_url, tmp_path, direct_database_url=database_url)
    made.afresh()
    made.facts.sql(
        "CREATE FUNCTION public.wait_at_the_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        # tried again and again: a lock that is waited for would be given up after `lock_timeout`
        f" WHILE NOT pg_try_advisory_xact_lock({GATE}) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NEW; END $$"
    )
    made.facts.sql(
        "CREATE TRIGGER gate BEFORE INSERT ON soloist.run FOR EACH ROW EXECUTE FUNCTION public.wait_at_the_gate()"
    )
    yield made
    made.proxy.flow()
    made.close()


def _at_the_gate(rooms: Rooms) -> bool:
    found = rooms.facts.sql(
        "SELECT 1 FROM pg_stat_activity WHERE application_name = 'soloist worker' AND state = 'active'"
        " AND wait_event = 'PgSleep' AND datname = current_database()"
    )
    return bool(found)


@contextmanager
def _claimed_unheard(rooms: Rooms) -> Iterator[dict[str, Any]]:
    """A claim that took effect, its run's row, and the answer on its way until this is over; then it is there."""
    rooms.facts.sql("SELECT pg_advisory_lock(%s)", GATE)
    rooms.watermark("1 s")
    failed: list[BaseException] = []

    def claim() -> None:
        try:
            rooms.parts.ticker.tick()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=claim, daemon=True)
    thread.start()
    eventually(lambda: _at_the_gate(rooms) or failed, "the claim is at work in the server")
    rooms.proxy.stall()
    rooms.facts.sql("SELECT pg_advisory_unlock(%s)", GATE)
    (row,) = eventually(rooms.facts.rows, "the claim has taken effect")
    yield row
    assert thread.is_alive()
    rooms.proxy.flow()
    eventually(lambda: not thread.is_alive(), "the answer arrives")
    assert failed == []


def _fall_and_stand(rooms: Rooms) -> None:
    """The keeper's session is ended, and it makes another: no run is in a seat, so none is renewed by that."""
    session, epoch = rooms.parts.sessions["keeper"], rooms.parts.sessions["keeper"].epoch
    rooms.facts.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'soloist keeper' AND datname = current_database()"
    )
    eventually(lambda: session.over, "the session is over")
    rooms.parts.wakeup.wait(5.0)  # as the keeper's loop does it between two steps, and so notices
    rooms.parts.keeper.step()
    assert session.epoch == epoch + 1
    assert rooms.parts.charge.presence.stands


def _attempts(rooms: Rooms, run: UUID) -> list[tuple[int, str]]:
    return [(line["number"], line["outcome"]) for line in rooms.facts.attempts(run)]


def test_a_lease_from_before_the_fall_begins_nothing_by_itself(rooms: Rooms) -> None:
    """The replica stands again; but that was acknowledged without this run."""
    with _claimed_unheard(rooms) as row:
        _fall_and_stand(rooms)
    eventually(lambda: _attempts(rooms, row["id"]) or rooms.bodies(), "it is given back unrenewed, or begins after all")
    assert rooms.bodies() == 0
    assert _attempts(rooms, row["id"]) == [(1, "handed_back")]


def test_a_lease_from_before_the_fall_is_good_once_it_is_renewed(rooms: Rooms) -> None:
    with _claimed_unheard(rooms) as row:
        _fall_and_stand(rooms)
    threading.Event().wait(AT_ONCE)  # for as long as a body needs that does not wait for its renewal
    assert rooms.bodies() == 0
    rooms.parts.keeper.step()
    assert rooms.facts.row(row["id"])["claimed_until"] > row["claimed_until"]
    eventually(rooms.bodies, "its body begins")
    rooms.gate.touch()
    eventually(lambda: rooms.said(AttemptEnded), "its outcome is written")
    assert _attempts(rooms, row["id"]) == [(1, "succeeded")]
    assert rooms.bodies() == 1


def test_a_run_that_others_took_before_the_answer_came_never_begins(rooms: Rooms) -> None:
    other = rooms.facts.owner("other")
    with _claimed_unheard(rooms) as row:
        _fall_and_stand(rooms)
        assert runs.take_over(rooms.facts.mine, [(row["id"], row["claimed_until"])], gone=True)
        assert claims.dequeue_one(rooms.facts.mine, other, row["id"])
    rooms.parts.keeper.step()
    eventually(lambda: rooms.said(WriteFenced), "its outcome is refused")
    assert rooms.bodies() == 0
    assert rooms.said(LeaseLostEvent)
    now = rooms.facts.row(row["id"])
    assert (now["status"], now["attempt"], now["claimed_by"]) == ("running", 2, other.id)
    assert _attempts(rooms, row["id"]) == [(1, "lease_lost")]
