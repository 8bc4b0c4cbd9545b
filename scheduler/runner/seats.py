"""Seats: how much this replica may do at once, and what it is doing.

A seat is taken before work is claimed, so nothing is ever claimed that nobody here can start.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from scheduler.core.events import Event
from scheduler.core.model import Claim, JobSpec, LostContact, Status
from scheduler.kinds import FOREVER, Execution, Stop
from scheduler.runner.threads import Threads


@dataclass(slots=True, eq=False)
class Held:
    """A run in a seat. `trust`: CLOCK_BOOTTIME seconds until which the lease is believed in.

    The keeper moves `trust` and sets `stopped`; the seat's thread sets `execution`. `lock` guards the moment where one
    hands over to the other. `news`: what the seat's thread says first, so that it comes before the attempt's own events
    and holds up no other start. `written`: what the run is by the outcome that was written of this attempt.
    """

    claim: Claim
    spec: JobSpec
    trust: float
    news: Event | None = None
    execution: Execution | None = None
    stopped: Stop | None = None
    cancelled: bool = False
    written: Status | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def goes_on(self) -> bool:
        """Whether its body goes on through lost contact."""
        return self.spec.lost_contact is LostContact.CONTINUE

    def extend(self, until: float) -> None:
        """A renewal was acknowledged."""
        with self.lock:
            self.trust = until
            self._let_run(until)

    def limit(self, until: float) -> None:
        """However long the lease is believed in, the body has until then; till the next `extend` or `lift`."""
        with self.lock:
            self._let_run(min(until, self.trust))

    def lift(self) -> None:
        """No limit but the lease."""
        with self.lock:
            self._let_run(self.trust)

    def may_begin(self, now: float) -> float | None:
        """Asked just before the body begins: until when it may be at work; None: it must not begin."""
        with self.lock:
            if self.stopped is not None or now >= self.trust:
                return None
            return FOREVER if self.goes_on else self.trust

    def _let_run(self, until: float) -> None:
        if self.execution is not None and not self.goes_on:
            self.execution.extend(until)

    def stop(self, why: Stop) -> bool:
        """Stop the body, now or before it begins; whether it was not stopped before."""
        with self.lock:
            first = self.stopped is None
            self.stopped = self.stopped or why
            if self.execution is not None:
                self.execution.stop(why)
            return first

    def cancel(self) -> None:
        """Somebody asked for the run to be cancelled."""
        with self.lock:
            if not self.cancelled and self.execution is not None:
                self.cancelled = True
                self.execution.cancel()


Attend = Callable[[Held, Callable[[], None]], None]


class Seats:
    """`count` seats. Thread-safe.

    `attend` carries out what is seated, and calls what it was given when the seat may be free: its thread need not wait
    for that. `freed` is called when a seat is free again, `failed` when an attempt could not be carried to its end. All
    are set before the first run.
    """

    def __init__(self, count: int, attend: Attend = lambda _, leave: leave()) -> None:
        self.count = count
        self.attend = attend
        self.freed: Callable[[], None] = lambda: None
        self.failed: Callable[[Exception], None] = lambda _: None
        self._threads = Threads(count + 1, "seat")  # one may be writing the others' outcomes, its own seat free
        self._changed = threading.Condition()
        self._reserved = 0
        self._wanted: list[int] = []  # how many free seats each of those wants who wait for some
        self._held: set[Held] = set()  # by identity: two attempts of one run may be here, a zombie and its successor
        self._claiming: set[UUID] = set()
        self._closed_for: set[str] = set()

    def shut(self, why: str) -> None:
        """Give no seat for new work while this reason stands; what is in the seats goes on."""
        with self._changed:
            self._closed_for.add(why)

    def reopen(self, why: str) -> None:
        """This reason is gone."""
        with self._changed:
            self._closed_for.discard(why)
        self.freed()

    def reserve(self, most: int) -> int:
        """Take up to `most` free seats for work about to be claimed; returns how many."""
        with self._changed:
            if self._closed_for:
                return 0
            granted = max(0, min(most, self.count - self._reserved))
            self._reserved += granted
            return granted

    def give_back(self, number: int) -> None:
        """Seats that were reserved and not needed."""
        with self._changed:
            self._free(number)

    @property
    def free(self) -> int:
        """How many seats nobody has."""
        return self.count - self._reserved

    def wait_free(self, wanted: int, seconds: float) -> bool:
        """Wait until so many seats are free (all, if there are fewer); whether any became free."""
        wanted = min(wanted, self.count)
        with self._changed:
            before = self._reserved
            self._wanted.append(wanted)
            self._changed.wait_for(lambda: self.free >= wanted, timeout=seconds)
            self._wanted.remove(wanted)
            return self._reserved < before

    def claiming(self, ids: Iterable[UUID]) -> AbstractContextManager[None]:
        """Around a claim: runs with these ids may be ours before any seat knows them."""
        return _Claiming(self._changed, self._claiming, frozenset(ids))

    def begin(self, *held: Held) -> None:
        """Start the attempts in seats that were reserved for them."""
        with self._changed:
            self._held.update(held)
        self._threads.submit(*[partial(self._sit, one) for one in held])

    def _sit(self, held: Held) -> None:
        try:
            self.attend(held, partial(self._leave, held))
        except Exception as error:  # its outcome could not be written: nothing of a job's own gets here
            self.failed(error)
            self._leave(held)

    def _leave(self, held: Held) -> None:
        with self._changed:
            if held not in self._held:  # it was left before its thread failed
                return
            self._held.discard(held)
            self._free(1)
        self.freed()

    def _free(self, number: int) -> None:
        """Holds the lock. Wakes nobody who would only go back to sleep."""
        self._reserved -= number
        if self._reserved == 0 or (self._wanted and self.free >= min(self._wanted)):
            self._changed.notify_all()

    def held(self) -> list[Held]:
        """The runs in the seats now."""
        with self._changed:
            return list(self._held)

    def known(self) -> set[UUID]:
        """The ids of all runs in seats or on their way to one."""
        with self._changed:
            return {held.claim.id for held in self._held} | self._claiming

    def wait_empty(self, seconds: float) -> bool:
        """Wait until no seat is taken; False when time ran out first."""
        with self._changed:
            return self._changed.wait_for(lambda: self._reserved == 0, timeout=seconds)

    def close(self) -> None:
        """Take no more work. Threads end with their bodies."""
        self._threads.close()


class _Claiming:
    def __init__(self, lock: threading.Condition, claiming: set[UUID], ids: frozenset[UUID]) -> None:
        self._lock, self._claiming, self._ids = lock, claiming, ids

    def __enter__(self) -> None:
        with self._lock:
            self._claiming |= self._ids

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._claiming -= self._ids
