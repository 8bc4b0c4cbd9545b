"""The connection is cut after each number of bytes of a claim, a dequeue and a settlement, in both directions.

Whatever was lost on the way: one run, one body, one record, and the replica knows its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from proxy_pair import Towards
from replicas import eventually
from rooms import Rooms

from scheduler.core.events import AnswerRecovered, AttemptEnded, OutcomeUnwritten, WriteFenced
from scheduler.store.engine import ContactLost


@pytest.fixture
def rooms(database_url: str, tmp_path: Path) -> Iterator[Rooms]:
    made = Rooms(database_url, tmp_path)
    yield made
    made.close()


def _claim(rooms: Rooms) -> Callable[[], object]:
    """The tick is due."""
    rooms.watermark("1 s")
    return rooms.parts.ticker.tick


def _dequeue(rooms: Rooms) -> Callable[[], object]:
    """A run is queued, and nothing tells of it."""
    rooms.facts.sql(
        "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, ready_at)"
        " SELECT gen_random_uuid(), id, 'manual:1', now(), 'manual', 'queued', true, now() FROM soloist.job"
    )
    return rooms.look


def _settle(rooms: Rooms) -> Callable[[], object]:
    """A body is at work, and its gate opens."""
    _claim(rooms)()
    eventually(rooms.bodies, "its body begins")

    def settle() -> None:
        rooms.gate.touch()
        eventually(lambda: rooms.said(AttemptEnded) or rooms.said(WriteFenced), "its outcome is written")

    return settle


EXCHANGES = {"claim": _claim, "dequeue": _dequeue, "settle": _settle}


def _check(rooms: Rooms) -> None:
    """One run, one body, one record, all of attempt 1."""
    rooms.until(rooms.bodies, "its body begins")
    rooms.gate.touch()
    rooms.until(lambda: rooms.facts.sql("SELECT 1 FROM soloist.run WHERE finished_at IS NOT NULL"), "the run ends")
    assert rooms.parts.seats.wait_empty(30)
    for _ in range(2):
        rooms.move()
    (row,) = rooms.facts.rows()
    found = [(line["number"], line["outcome"]) for line in rooms.facts.attempts(row["id"])]
    assert (row["status"], row["crashes"], rooms.bodies()) == ("succeeded", 0, 1)
    assert (row["attempt"], found) == (1, [(1, "succeeded")])
    assert len(rooms.said(AttemptEnded)) == 1
    assert not rooms.said(WriteFenced) + rooms.said(OutcomeUnwritten)


@dataclass
class Swept:
    """What a sweep saw: bytes of the exchange, cuts that happened, answers that were lost and recovered."""

    length: int
    cuts: int = 0
    recovered: int = 0


def _sweep(rooms: Rooms, exchange: str, towards: Towards, places: int | None, *, cold: bool = False) -> Swept:
    """Cut after 0, 1, … bytes of the exchange (None: each; else about so many places). `cold`: from the connect on."""
    _once(rooms, exchange, towards, None, cold=cold)  # what is done for the first time takes more words
    swept = Swept(_once(rooms, exchange, towards, None, cold=cold))
    step = 1 if places is None else max(1, swept.length // places)
    for nbytes in sorted({*range(0, swept.length + 1, step), 1, swept.length - 1, swept.length}):
        swept.cuts += _once(rooms, exchange, towards, nbytes, cold=cold)
        swept.recovered += bool(rooms.said(AnswerRecovered))
    return swept


def _once(rooms: Rooms, exchange: str, towards: Towards, nbytes: int | None, *, cold: bool) -> int:
    """One exchange; without `nbytes` its length, else whether it was cut."""
    rooms.afresh()
    act = EXCHANGES[exchange](rooms)
    if cold:
        rooms.hang_up()
    before = rooms.passed(towards)
    cut = None if nbytes is None else rooms.proxy.cut_after(nbytes, towards)
    with suppress(ContactLost):
        act()
    rooms.proxy.forget_cuts()
    length = rooms.passed(towards) - before
    try:
        _check(rooms)
    except BaseException as error:
        error.add_note(f"{exchange}: cut after {nbytes} bytes towards the {towards}")
        raise
    return length if cut is None else cut.happened.is_set()


@pytest.mark.parametrize("places", [12, pytest.param(None, marks=[pytest.mark.full, pytest.mark.timeout(900)])])
@pytest.mark.parametrize("towards", ["server", "client"])
@pytest.mark.parametrize("exchange", sorted(EXCHANGES))
def test_an_exchange_that_is_cut_anywhere_is_had_once(
    rooms: Rooms, exchange: str, towards: Towards, places: int | None
) -> None:
    swept = _sweep(rooms, exchange, towards, places)
    assert swept.cuts >= (places or swept.length)
    if towards == "client":
        assert swept.recovered, "no answer that mattered was lost"


@pytest.mark.parametrize("places", [6, pytest.param(200, marks=[pytest.mark.full, pytest.mark.timeout(900)])])
@pytest.mark.parametrize("towards", ["server", "client"])
@pytest.mark.parametrize("exchange", sorted(EXCHANGES))
def test_a_connection_that_is_cut_while_it_is_made_costs_nothing(
    rooms: Rooms, exchange: str, towards: Towards, places: int
) -> None:
    """The whole way: startup, settings, the statement's text, its answer."""
    assert _sweep(rooms, exchange, towards, places, cold=True).cuts >= places
