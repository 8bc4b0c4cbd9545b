"""What the rooms of the engine have in common: who they work for, the clock, the bus; and how they loop."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from scheduler.core.events import Bus, EngineFailed
from scheduler.core.policy import reconnect_wait
from scheduler.runner.clock import SystemClock
from scheduler.store.claims import Owner
from scheduler.store.engine import Blocked, ContactLost

LONGEST_WAIT = 15.0  # seconds: waits are capped, so that a clock that was set or a machine that slept is noticed


@dataclass(frozen=True, slots=True)
class Room:
    """The owner on whose behalf runs are claimed, the one clock, and the bus."""

    owner: Owner
    clock: SystemClock
    bus: Bus


class Waiter(Protocol):
    """Something to wait on that another thread can end. A wake that comes early ends the next wait at once."""

    def wait(self, seconds: float | None) -> None:
        """Return when woken or out of time; None: only when woken."""

    def wake(self) -> None:
        """End the wait."""


class EventWaiter:
    """Waits for other threads only."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def wait(self, seconds: float | None) -> None:
        """Return when woken or out of time."""
        self._event.wait(seconds)
        self._event.clear()

    def wake(self) -> None:
        """End the wait."""
        if not self._event.is_set():  # each seat that is freed wakes somebody, most often in vain
            self._event.set()


class Loop:
    """One engine thread: a step, a wait that can be cut short, and so on until it is stopped.

    A step returns the seconds it wants to wait at the most (None: until woken). A step that loses contact is repeated
    after a jittered, growing wait. A step that fails otherwise ends the process (`failed`): a runner without one of its
    threads must not look alive.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], float | None],
        room: Room,
        failed: Callable[[], None],
        waiter: Waiter | None = None,
    ) -> None:
        self._name, self._step, self._room, self._failed = name, step, room, failed
        self._waiter: Waiter = waiter or EventWaiter()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin with a step at once."""
        self._thread.start()

    def wake(self) -> None:
        """Do a step now; a wake that comes during a step is not lost."""
        self._waiter.wake()

    def ask_to_stop(self) -> None:
        """No further step after the present one."""
        self._stopping.set()
        self._waiter.wake()

    def join(self, seconds: float | None) -> bool:
        """Wait for the present step to be over; whether it is."""
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(seconds)
            return not self._thread.is_alive()
        return True

    def _run(self) -> None:
        tries = 0
        try:
            while not self._stopping.is_set():
                try:
                    wait, tries = self._step(), 0
                except (
                    ContactLost,
                    Blocked,
                ):  # nothing was done; a lock that somebody holds is not the end of a replica
                    wait, tries = reconnect_wait(tries, random.random()), tries + 1  # noqa: S311
                    self._stopping.wait(wait)
                    continue
                self._waiter.wait(wait)
        except Exception as error:
            name = f"{type(error).__name__}: {error}"
            self._room.bus.publish(EngineFailed(replica=self._room.owner.name, room=self._name, error=name))
            self._failed()
