"""A replica's life: what starts in which order, what a signal does, how it drains.

    start   migrate, put the plan in force, keeper, sweeper, ticker, alarm      (ready to renew before it can own)
    drain   alarm, ticker, sweeper stop: nothing new. Bodies go on, the keeper keeps them, until all have ended or the
            drain time is over; then they are stopped and their runs handed back, at no cost, for others to go on with.
    stop    keeper, kinds (every child process), the replica's row, the sessions

A second signal cuts the drain short. An engine thread that dies ends the process with an error after the same drain.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass

from scheduler.core.errors import DatabaseUnreachable
from scheduler.core.events import (
    DatabaseLost,
    DatabaseRegained,
    EngineFailed,
    ReplicaDraining,
    ReplicaStarted,
    ReplicaStopped,
)
from scheduler.core.model import Isolation, Status
from scheduler.core.policy import reconnect_wait
from scheduler.kinds import Kind, Stop
from scheduler.runner.alarm import Alarm
from scheduler.runner.dedicated import open_dedicated
from scheduler.runner.follower import Follower
from scheduler.runner.keeper import Charge, Keeper
from scheduler.runner.plan import PlanInForce
from scheduler.runner.room import LONGEST_WAIT, Loop, Room
from scheduler.runner.seats import Held, Seats
from scheduler.runner.settler import Settler
from scheduler.runner.sweeper import Sweeper
from scheduler.runner.ticker import Ticker
from scheduler.store import claims, replicas, runs
from scheduler.store.engine import ContactLost, Refused, Session
from scheduler.store.wakeup import PLAN, Wakeup

LAST_WORDS = 4.0  # seconds that stopped bodies and unwritten outcomes have at the end
MORE_WORDS = 6.0  # and so many more, of those that the drain has not used, while the database can be written to
PATIENCE = 1.0  # seconds for a database call that is on its way when its thread is to end


@dataclass(frozen=True, slots=True)
class Parts:
    """The rooms of one replica, wired by the composition root."""

    room: Room
    plan: PlanInForce
    seats: Seats
    settler: Settler
    ticker: Ticker
    follower: Follower
    keeper: Keeper
    sweeper: Sweeper
    charge: Charge
    kinds: Mapping[Isolation, Kind]
    wakeup: Wakeup
    sessions: dict[str, Session]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a replica says of itself when it starts.

    `drain`: seconds bodies have after a signal. `takes_work`: it ticks, dequeues and takes over; one that does not only
    executes what it is told to. `direct_url`: the way past a pooler, if it was given; `guarded`: jobs that need one.
    `isolations`: how the plan's bodies run.
    """

    version: str
    database: str
    drain: float
    takes_work: bool = True
    direct_url: str | None = None
    guarded: tuple[str, ...] = ()
    isolations: frozenset[Isolation] = frozenset()


class Service:
    """One replica, from start to stop. `stop` may be called from a signal handler or any thread."""

    def __init__(self, parts: Parts, facts: Facts) -> None:
        self._parts, self._facts = parts, facts
        self._stopping, self._hurry, self._failed = threading.Event(), threading.Event(), threading.Event()
        room = parts.room
        self._ticks = Loop("ticker", self._tick, room, self._fail)
        self._alarm = Alarm(self._ticks.wake)
        self._follows = Loop("follower", parts.follower.step, room, self._fail)
        parts.follower.wake, parts.follower.changed = self._follows.wake, self._ticks.wake
        self._keeps = Loop("keeper", parts.keeper.step, room, self._fail, parts.wakeup)
        self._sweeps = Loop("sweeper", parts.sweeper.step, room, self._fail)
        parts.wakeup.notified, parts.ticker.beaten, parts.ticker.waits = (
            self._notified,
            self._look_soon,
            self._look_soon,
        )
        parts.seats.freed, parts.seats.failed = self._seat_freed, self._seat_failed

    @property
    def stopping(self) -> threading.Event:
        """Set when it is to stop, also because one of its threads has failed."""
        return self._stopping

    def stop(self) -> None:
        """Begin to drain; called again, do not wait for bodies: stop them, and hand their runs back."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()

    def run(self, started: Callable[[], None] = lambda: None) -> int:
        """Start, serve until stopped, drain, stop; returns the exit code. Raises SoloistError when it cannot start.

        `started`: called once the replica is at work.
        """
        self.start()
        started()
        self._stopping.wait()
        self.drain()
        return 1 if self._failed.is_set() else 0

    def start(self) -> None:
        """Everything up to the first tick. Raises SoloistError."""
        facts, parts, room = self._facts, self._parts, self._parts.room
        if not self._reach():
            return
        open_dedicated(parts.sessions["keeper"], room, facts.direct_url, facts.guarded)
        for isolation in facts.isolations:
            parts.kinds[isolation].warm()
        room.bus.publish(
            ReplicaStarted(
                replica=room.owner.name,
                version=facts.version,
                jobs=len(parts.plan.jobs()),
                seats=parts.seats.count,
                database=facts.database,
            )
        )
        with suppress(ContactLost):  # nothing here that the loops would not do again
            self._warm()
        self._keeps.start()
        if facts.takes_work:
            self._sweeps.start()
            self._ticks.start()
            self._alarm.start()
            self._follows.start()
            if parts.follower.reloader is not None:
                parts.follower.reloader.start(self._follows.wake, self._fail)

    def _reach(self) -> bool:
        """Put the plan in force; waits for a database that may still come. False: stopped meanwhile."""
        room, tries, began = self._parts.room, 0, self._parts.room.clock.boottime()
        while True:
            try:
                self._parts.follower.start()
                break
            except DatabaseUnreachable as error:
                if not (error.may_heal and self._facts.takes_work):
                    raise
                if tries == 0:
                    room.bus.publish(DatabaseLost(replica=room.owner.name, room="start", error=str(error)))
                if self._stopping.wait(reconnect_wait(tries, random.random())):  # noqa: S311
                    return False
                tries += 1
        if tries:
            after = room.clock.boottime() - began
            room.bus.publish(DatabaseRegained(replica=room.owner.name, room="start", after=after, tries=tries))
        return True

    def _warm(self) -> None:
        """Measure the clock by which the first ticks are judged, have their statements planned, and say the plan."""
        owner, sessions = self._parts.room.owner, self._parts.sessions
        self._parts.keeper.step()
        claims.claim(sessions["worker"], owner, ())
        runs.settle(sessions["settler"], owner, ())
        if self._facts.takes_work:
            self._parts.follower.say()

    def _notified(self, words: frozenset[str]) -> None:
        """Notifications have come: `plan`, or that something is queued."""
        if PLAN in words:
            self._parts.follower.look_soon()
        if words != {PLAN}:
            self._parts.sweeper.fetch_soon()
            self._sweeps.wake()

    def _look_soon(self) -> None:
        """Others were faster with a tick, or one of ours waits for a run that it may have to replace."""
        self._parts.sweeper.look_soon()
        self._sweeps.wake()

    def _seat_freed(self) -> None:
        """Fill it, if there may be something to fill it with."""
        if self._parts.sweeper.backlog and not self._stopping.is_set():
            self._sweeps.wake()

    def _seat_failed(self, error: Exception) -> None:
        name = f"{type(error).__name__}: {error}"
        self._parts.room.bus.publish(EngineFailed(replica=self._parts.room.owner.name, room="seat", error=name))
        self._fail()

    def _tick(self) -> float:
        """One pass of the ticker, and the alarm for the next."""
        for kind in self._parts.kinds.values():
            kind.tidy()
        if not self._parts.charge.clock_watch.claims:
            return 1.0  # others do the work
        again = self._parts.ticker.tick()
        at, clock = self._parts.ticker.next_tick(), self._parts.room.clock
        self._alarm.set(None if at is None else clock.alarm_time(at))
        waits = [LONGEST_WAIT]
        if again is not None:
            waits.append(again)
        if at is not None:  # should the alarm be late, this is not
            waits.append(max(0.0, (at - clock.now()).total_seconds()) + 0.001)
        return min(waits)

    def _fail(self) -> None:
        self._failed.set()
        self.stop()

    def drain(self) -> None:
        """Stop in good order: no claims, then bodies, then everything else."""
        parts, room = self._parts, self._parts.room
        if self._facts.takes_work:
            self._alarm.stop()
            if parts.follower.reloader is not None:
                parts.follower.reloader.close()
            self._end(("worker", self._follows), ("worker", self._ticks), ("worker", self._sweeps))
        running = parts.seats.held()
        jobs = tuple(sorted({held.claim.job for held in running}))
        room.bus.publish(
            ReplicaDraining(replica=room.owner.name, running=len(running), within=self._facts.drain, jobs=jobs)
        )
        end = room.clock.boottime() + self._facts.drain
        self._wait_for_bodies(end)
        stopped = self._stop_bodies(end)
        self._end(("keeper", self._keeps))
        for kind in parts.kinds.values():
            kind.close()
        parts.seats.wait_empty(PATIENCE)  # what became of the last bodies is counted before we leave
        with suppress(ContactLost, Refused):  # the exit code is for what ended the replica, not for this
            replicas.leave(parts.sessions["keeper"], room.owner.id, parts.charge.tally.counts())
        for session in parts.sessions.values():
            session.close()
        parts.seats.close()
        parts.wakeup.close()
        counts = asdict(parts.charge.tally.counts())
        handed_back = sum(held.written is Status.QUEUED for held in stopped)
        room.bus.publish(ReplicaStopped(replica=room.owner.name, handed_back=handed_back, **counts))

    def _end(self, *loops: tuple[str, Loop]) -> None:
        """End engine threads. A call that does not come back is cut: a stop must not wait for a frozen database."""
        for _, loop in loops:
            loop.ask_to_stop()
        for name, loop in loops:
            if not loop.join(PATIENCE):
                self._parts.sessions[name].cut()
                self._parts.follower.cut()
                loop.join(None)

    def _wait_for_bodies(self, end: float) -> None:
        """Until all have ended, the drain time is over (`end`), or somebody is in a hurry."""
        clock = self._parts.room.clock
        while not self._hurry.is_set() and (left := end - clock.boottime()) > 0:
            if self._parts.seats.wait_empty(min(left, 0.2)):
                return

    def _stop_bodies(self, end: float) -> list[Held]:
        """Stop those that are left, and have their outcomes written; returns them."""
        seats, settling = self._parts.seats, self._parts.sessions["settler"]
        stopped = [held for held in seats.held() if held.stop(Stop.SHUTDOWN)]
        empty = seats.wait_empty(LAST_WORDS)
        if not empty and settling.connected:  # a busy machine: killing a body may take its time
            empty = seats.wait_empty(max(0.0, min(MORE_WORDS, end - self._parts.room.clock.boottime())))
        if not empty:
            # the database is away, or a thread does not end: the lease will say what cannot be written
            self._parts.settler.give_up()
            settling.cut()
            seats.wait_empty(PATIENCE)
        return stopped
