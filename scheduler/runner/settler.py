"""Writes how attempts ended. Group commit: while one flush is in flight the next ones gather."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from scheduler.core.model import Outcome, Status
from scheduler.core.policy import ENDED_BADLY, Decision, reconnect_wait
from scheduler.runner.failing import pause_failing
from scheduler.runner.room import Room
from scheduler.store import runs
from scheduler.store.connect import one_line
from scheduler.store.engine import Blocked, ContactLost, Refused, Session
from scheduler.store.runs import Settlement

BLOCKED_WAIT = 0.2  # seconds before an end whose row is locked is tried again
REFUSED_WAIT = 1.0  # and one that was refused for no fault of its own: a right is missing, say
_OF_THE_DATA = ("22", "23", "54")  # classes of errors: what was sent cannot be stored, now or ever


@dataclass(frozen=True, slots=True)
class Written:
    """What has become of an end. `status`: what the run is now; None: it was fenced, or `given_up`.

    `recovered`: an answer was lost, and this very end had been written. `given_up`: the database could not be reached
    before this replica had to go; the lease brings the run back. `pause`: why its job is paused from now on.
    """

    status: Status | None
    recovered: bool = False
    given_up: bool = False
    pause: str | None = None


Told = Callable[[Written], None]


@dataclass(slots=True, eq=False)
class _Waiting:
    """One settlement on its way. `told` is called once, with what has become of it.

    `unclear`: an answer was lost. `pause`: seconds until it is tried again, which is at `not_before` (CLOCK_BOOTTIME).
    """

    settlement: Settlement
    told: Told
    written: Written | None = None
    unclear: bool = False
    pause: float = BLOCKED_WAIT
    not_before: float = 0.0


class Settler:
    """Seat threads leave their ends here, and go on. One of them leads: it writes all that gathers, till none is left.

    So what runs is never in the way of what has run: with no-op bodies one thread works while another writes.
    """

    def __init__(self, session: Session, room: Room) -> None:
        self._session, self._owner, self._clock = session, room.owner, room.clock
        self._lock = threading.Lock()
        self._gathered: list[_Waiting] = []
        self._later: list[_Waiting] = []  # the leader's alone
        self._led = False
        self._come, self._give_up = threading.Event(), threading.Event()

    def settle(self, settlement: Settlement, told: Told) -> None:
        """Have one end written; `told` is called by whoever has written it, this thread or another.

        Waits out an outage of the database and locks on the run's row, until `give_up`.
        """
        with self._lock:
            self._gathered.append(_Waiting(settlement, told))
            leads, self._led = not self._led, True
        if leads:
            self._lead()
        elif self._later:
            self._come.set()

    def give_up(self) -> None:
        """Wait no longer for a database that does not answer."""
        self._give_up.set()
        self._come.set()

    def _lead(self) -> None:
        """Write what gathers, batch by batch."""
        batch: list[_Waiting] = []
        try:
            while batch := self._next_batch():
                self._flush(batch)
                self._tell(batch)
        except BaseException:
            with self._lock:
                lost, self._gathered, self._led = batch + self._gathered + self._later, [], False
            self._later = []
            for waiting in lost:
                waiting.told(Written(None, given_up=True))
            raise

    def _next_batch(self) -> list[_Waiting]:
        """What has gathered, and what is to be tried again; waits for the latter. Empty: nothing, and nobody leads."""
        while True:
            self._come.clear()
            with self._lock:
                batch, self._gathered = self._gathered, []
                self._led = bool(batch or self._later)
            now = self._clock.boottime()
            batch += [waiting for waiting in self._later if waiting.not_before <= now or self._give_up.is_set()]
            self._later = [waiting for waiting in self._later if waiting not in batch]
            if batch or not self._later:
                return batch
            self._come.wait(min(waiting.not_before for waiting in self._later) - now)

    def _tell(self, batch: list[_Waiting]) -> None:
        batch.reverse()
        while batch:  # each is told once, whatever happens
            waiting = batch.pop()
            if waiting.written is not None:
                waiting.told(waiting.written)
            elif self._give_up.is_set():
                waiting.told(Written(None, given_up=True))
            else:
                waiting.not_before = self._clock.boottime() + waiting.pause
                self._later.append(waiting)

    def _flush(self, batch: list[_Waiting]) -> None:
        tries = 0
        while True:
            try:
                self._write(batch)
                self._pause_failing(batch)
                return
            except ContactLost:
                # whether it was committed is unknown: written again, it is fenced by its own record and recognised
                for waiting in batch:
                    waiting.unclear = True
                if self._give_up.wait(reconnect_wait(tries, random.random())):  # noqa: S311
                    return
                tries += 1

    def _write(self, batch: list[_Waiting]) -> None:
        unwritten = [waiting for waiting in batch if waiting.written is None]
        if not unwritten:
            return
        try:
            self._write_together(unwritten)
        except Refused:
            # one bad row must hold up no other: one by one, and a refused one again without what it brought
            for waiting in unwritten:
                self._write_alone(waiting)

    def _write_alone(self, waiting: _Waiting) -> None:
        try:
            self._write_together([waiting])
        except Refused as error:
            blocked = isinstance(error, Blocked)
            if _is_for_good(error):
                raise  # a table is gone: this replica cannot do its work, and must not look as if it could
            if blocked or not _is_of_the_data(error):  # it is tried again, and holds up no other meanwhile
                waiting.pause = BLOCKED_WAIT if blocked else REFUSED_WAIT
                return
            waiting.settlement = _refused(waiting.settlement, error)
            self._write_together([waiting])

    def _write_together(self, batch: list[_Waiting]) -> None:
        settled = {(s.id, s.attempt): s for s in runs.settle(self._session, self._owner, [w.settlement for w in batch])}
        missing = []
        for waiting in batch:
            if found := settled.get((waiting.settlement.id, waiting.settlement.attempt)):
                waiting.written = Written(found.status)
            else:
                missing.append(waiting)
        if missing:
            self._recognise(missing)
        promotable = [s.job_id for s in settled.values() if s.waiting]
        if promotable:
            self._promote(promotable)

    def _pause_failing(self, batch: list[_Waiting]) -> None:
        """Jobs that want it are paused when their last runs ended badly; the others cost nothing here."""
        bad = [w for w in batch if w.settlement.watched and w.written is not None and w.written.status in ENDED_BADLY]
        if not bad:
            return
        reasons = pause_failing(self._session, {w.settlement.watched for w in bad if w.settlement.watched})
        for waiting in bad:
            assert waiting.written is not None
            reason = reasons.pop(waiting.settlement.watched or "", None)
            waiting.written = replace(waiting.written, pause=reason)

    def _recognise(self, missing: list[_Waiting]) -> None:
        """Tell ends that this very attempt had written before from those that are fenced."""
        asked = [(w.settlement.id, w.settlement.attempt) for w in missing]
        standing = runs.read_held(self._session, self._owner, asked)
        own: list[_Waiting] = []
        for waiting in missing:
            how = standing.get((waiting.settlement.id, waiting.settlement.attempt))
            if how is not None and how.recorded:
                own.append(waiting)
            else:
                waiting.written = Written(None)
        if own:
            runs.complete_record(self._session, [w.settlement for w in own])
            for waiting in own:
                end = waiting.settlement
                waiting.written = Written(standing[end.id, end.attempt].status, waiting.unclear)
            self._promote(None)  # the commit that ended them promoted nobody

    def _promote(self, jobs: list[int] | None) -> None:
        try:
            runs.promote(self._session, jobs)
        except Refused:
            return  # another active run came first: its own end, or the sweeper, promotes


def _is_of_the_data(error: Refused) -> bool:
    """Whether what was sent is to blame. No SQLSTATE: it was refused on this side of the wire, before it was sent."""
    return error.sqlstate is None or error.sqlstate.startswith(_OF_THE_DATA)


def _is_for_good(error: Refused) -> bool:
    """Whether the statement itself is at odds with the schema; a right that is missing (42501) may be granted."""
    return (error.sqlstate or "").startswith("42") and error.sqlstate != "42501"


def _refused(settlement: Settlement, error: Refused) -> Settlement:
    """The same end without the result and the output that PostgreSQL would not take."""
    text = f"the result could not be stored: {one_line(error)}"
    ending = replace(
        settlement.ending,
        outcome=Outcome.FAILED,
        result=None,
        output_tail="",
        error_class="scheduler.ResultRefused",
        error_text=text,
    )
    return replace(settlement, ending=ending, decision=Decision(Status.FAILED, spent=1))
