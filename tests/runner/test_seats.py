"""Seats and their threads: nothing leaks, nothing is held up, no thread is waited for in vain."""

from __future__ import annotations

import threading
from collections.abc import Callable
from uuid import UUID

import pytest
from replicas import eventually
from scene import BASE, spec

from scheduler.core.model import Claim, Trigger
from scheduler.runner.seats import Held, Seats
from scheduler.runner.threads import Threads


def held(number: int, attempt: int = 1) -> Held:
    return Held(Claim(UUID(int=number), "a", "k", BASE, attempt, 0, 0, Trigger.SCHEDULE), spec(), trust=0.0)


def test_a_zombie_and_its_successor_have_a_seat_each() -> None:
    """Both may be here: the first attempt froze, and this very replica took the run over."""
    gates = {1: threading.Event(), 2: threading.Event()}

    def attend(one: Held, leave: Callable[[], None]) -> None:
        gates[one.claim.attempt].wait(30)
        leave()

    seats = Seats(4, attend)
    assert seats.reserve(2) == 2
    first, second = held(7, 1), held(7, 2)
    seats.begin(first)
    seats.begin(second)
    gates[1].set()
    eventually(lambda: seats.held() == [second], "the first attempt left, the second is still there to be renewed")
    gates[2].set()
    assert seats.wait_empty(30)


def test_an_attempt_that_cannot_be_carried_to_its_end_is_told_and_frees_its_seat() -> None:
    told: list[Exception] = []

    def attend(_: Held, leave: Callable[[], None]) -> None:
        raise LookupError("no table")

    seats = Seats(1, attend)
    seats.failed = told.append
    assert seats.reserve(5) == 1
    seats.begin(held(1))
    assert seats.wait_empty(30)
    assert isinstance(told[0], LookupError)


def test_a_seat_is_taken_until_it_is_left_and_left_once() -> None:
    """Its thread may go before the outcome is written; a thread that fails after that must not free a second seat."""
    leaves: list[Callable[[], None]] = []

    def attend(_: Held, leave: Callable[[], None]) -> None:
        leaves.append(leave)
        if len(leaves) == 2:
            leave()
            raise LookupError("after the outcome")

    seats = Seats(3, attend)
    assert seats.reserve(3) == 3
    seats.begin(held(1))
    eventually(lambda: len(leaves) == 1, "the first is attended")
    seats.begin(held(2))
    eventually(lambda: seats.free == 1, "the second has left")
    seats.begin(held(3))
    eventually(lambda: len(leaves) == 3, "the third is attended")
    assert [one.claim.id.int for one in sorted(seats.held(), key=lambda one: one.claim.id)] == [1, 3]
    assert seats.free == 1
    leaves[0]()
    leaves[2]()
    assert seats.wait_empty(30)


def test_whoever_waits_for_seats_gets_what_becomes_free() -> None:
    gate = threading.Event()

    def attend(_: Held, leave: Callable[[], None]) -> None:
        gate.wait(30)
        leave()

    seats = Seats(2, attend)
    assert seats.reserve(2) == 2
    for number in (1, 2):
        seats.begin(held(number))
    assert not seats.wait_free(1, 0.01), "none became free"
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(seats.wait_free(9, 30)))
    waiter.start()
    eventually(lambda: seats._wanted, "it waits, and knows what was free before")
    gate.set()
    waiter.join(60)
    assert answers == [True], "all there are"
    assert seats.reserve(9) == 2


def test_ids_on_their_way_are_known() -> None:
    seats = Seats(1)
    with seats.claiming([UUID(int=3)]):
        assert seats.known() == {UUID(int=3)}
    assert seats.known() == set()


def test_long_work_never_holds_up_other_work() -> None:
    threads, gate, done = Threads(3, "t"), threading.Event(), threading.Event()
    threads.submit(lambda: gate.wait(30) and None)
    threads.submit(lambda: gate.wait(30) and None)
    threads.submit(done.set)
    assert done.wait(30)
    gate.set()
    threads.close()


def test_a_herd_is_done_and_by_no_more_threads_than_allowed() -> None:
    threads, lock, names, left = Threads(5, "t"), threading.Lock(), set(), threading.Semaphore(0)

    def work() -> None:
        with lock:
            names.add(threading.current_thread().name)
        left.release()

    for _ in range(500):
        threads.submit(work)
    assert all(left.acquire(timeout=30) for _ in range(500))
    assert len(names) <= 5
    threads.close()


def test_a_refused_thread_start_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit of processes the system gives no more threads: those that are there go on."""
    threads, gate, done = Threads(9, "t"), threading.Event(), threading.Semaphore(0)
    threads.submit(lambda: gate.wait(30) and None)
    eventually(lambda: not threads._work, "the first thread is at work")

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        threads.submit(done.release)
    gate.set()
    assert done.acquire(timeout=30)
    threads.submit(done.release)
    assert done.acquire(timeout=30)
    threads.close()
