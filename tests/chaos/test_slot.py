"""A storm's slot sees a fault to its end also where the replica is gone by then."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from chaos.agenda import Agenda
from chaos.faults import Fault, Kind
from chaos.slot import Slot
from replicas import Fleet, Replica, jobs_file


@pytest.fixture
def agenda() -> Agenda:
    return Agenda()


@pytest.fixture
def buried() -> list[Replica]:
    """Those that went by themselves, so far."""
    return []


@pytest.fixture
def slot(fleet: Fleet, agenda: Agenda, buried: list[Replica]) -> Iterator[Slot]:
    def start(name: str, url: str) -> Replica:
        return fleet.start(jobs_file(), name, url=url, drain=0.5)

    made = Slot(0, fleet.url, agenda, start, buried.append)
    made.replica.ready()
    yield made
    fleet.close()
    made.proxy.close()


@pytest.mark.parametrize("kind", [Kind.FREEZE, Kind.STALL])
def test_who_goes_during_a_fault_is_buried_and_has_a_successor(
    slot: Slot, agenda: Agenda, buried: list[Replica], kind: Kind
) -> None:
    first, fault = slot.replica, Fault(0.0, kind, 0, 0.3, 0.5)
    assert slot.strike(fault)
    first.signal(signal.SIGKILL)
    first.ended()
    agenda.follow()
    assert not slot.strike(fault)  # nobody there to strike
    assert buried == [first]
    agenda.follow()
    assert slot.replica is not first
    assert slot.strike(fault)
    agenda.follow()
    slot.end()
    assert slot.replica.ended() == 0
    slot.end()  # it is gone
