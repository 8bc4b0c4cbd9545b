"""Writes how attempts ended. Group commit: while one flush is in flight the next ones gather."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field, replace

from scheduler.core.model import Outcome, Status
from scheduler.core.policy import Decision, reconnect_wait
from scheduler.store import runs
from scheduler.store.claims import Owner
from scheduler.store.connect import one_line
from scheduler.store.engine import Blocked, ContactLost, Refused, Session
from scheduler.store.runs import Settlement

BLOCKED_WAIT = 0.2  # seconds before a locked row is tried again


@dataclass(slots=True, eq=False)
class _Waiting:
    """One settlement on its way. `status`: what the run is now; None: fenced.

    `unwritten`: given up. `blocked`: somebody has the row locked; it is to be tried again. `unclear`: an answer was
    lost; `recovered`: what had been sent had been written all the same.
    """

    settlement: Settlement
    done: threading.Event = field(default_factory=threading.Event)
    status: Status | None = None
    leads: bool = False
    unwritten: bool = False
    blocked: bool = False
    unclear: bool = False
    recovered: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What the run is now. `recovered`: an answer was lost, and this very end had been written."""

    status: Status
    recovered: bool


class Unwritten(Exception):
    """The database could not be reached before this replica had to go; the lease brings the run back."""


class Settler:
    """Seat threads settle here. One of them leads: it writes for all that have gathered, then hands the lead on."""

    def __init__(self, session: Session, owner: Owner) -> None:
        self._session, self._owner = session, owner
        self._lock = threading.Lock()
        self._gathered: list[_Waiting] = []
        self._led = False
        self._give_up = threading.Event()

    def settle(self, settlement: Settlement) -> Written | None:
        """Write one end; None: it was fenced. Raises Unwritten.

        Waits out an outage of the database and locks on the run's row, until `give_up`.
        """
        while True:
            mine = self._join(settlement)
            if mine.unwritten or (mine.blocked and self._give_up.wait(BLOCKED_WAIT)):
                raise Unwritten
            if not mine.blocked:
                return None if mine.status is None else Written(mine.status, mine.recovered)

    def _join(self, settlement: Settlement) -> _Waiting:
        """Have it written with the next batch, as its leader or by another."""
        mine = _Waiting(settlement)
        with self._lock:
            self._gathered.append(mine)
            if not self._led:
                self._led = mine.leads = True
        if not mine.leads:
            mine.done.wait()
        if mine.leads:
            self._lead()
        return mine

    def give_up(self) -> None:
        """Wait no longer for a database that does not answer."""
        self._give_up.set()

    def _lead(self) -> None:
        """Write the batch that has gathered (one's own is in it), then let the first of the next batch lead."""
        with self._lock:
            batch, self._gathered = self._gathered, []
        try:
            self._flush(batch)
        except BaseException:
            for waiting in batch:
                waiting.unwritten = True
            raise
        finally:
            with self._lock:
                heir = self._gathered[0] if self._gathered else None
                self._led = heir is not None
                if heir is not None:
                    heir.leads = True
                    heir.done.set()
            for waiting in batch:
                waiting.done.set()

    def _flush(self, batch: list[_Waiting]) -> None:
        tries = 0
        while True:
            try:
                self._write(batch)
                return
            except ContactLost:
                # whether it was committed is unknown: written again, it is fenced by its own record and recognised
                for waiting in batch:
                    waiting.unclear = True
                if self._give_up.wait(reconnect_wait(tries, random.random())):  # noqa: S311
                    for waiting in batch:
                        waiting.unwritten = True
                    return
                tries += 1

    def _write(self, batch: list[_Waiting]) -> None:
        try:
            self._write_together(batch)
        except Refused:
            # one bad row must hold up no other: one by one, and a refused one again without what it brought
            for waiting in batch:
                try:
                    self._write_together([waiting])
                except Blocked:
                    waiting.blocked = True  # back to its own thread: it holds up no other
                except Refused as error:
                    waiting.settlement = _refused(waiting.settlement, error)
                    self._write_together([waiting])

    def _write_together(self, batch: list[_Waiting]) -> None:
        settled = {s.id: s for s in runs.settle(self._session, self._owner, [w.settlement for w in batch])}
        for waiting in batch:
            found = settled.get(waiting.settlement.id)
            waiting.status = found.status if found else None
        missing = [w for w in batch if w.settlement.id not in settled]
        if missing:
            self._recognise(missing)
        promotable = [s.job_id for s in settled.values() if s.waiting]
        if promotable:
            self._promote(promotable)

    def _recognise(self, missing: list[_Waiting]) -> None:
        """Tell ends that this very attempt had written before from those that are fenced."""
        asked = [(w.settlement.id, w.settlement.attempt) for w in missing]
        standing = runs.read_held(self._session, self._owner, asked)
        own: list[_Waiting] = []
        for waiting in missing:
            how = standing.get(waiting.settlement.id)
            if how is not None and how.recorded:
                waiting.status, waiting.recovered = how.status, waiting.unclear
                own.append(waiting)
        if own:
            runs.complete_record(self._session, [w.settlement for w in own])
            self._promote(None)  # the commit that ended them promoted nobody

    def _promote(self, jobs: list[int] | None) -> None:
        try:
            runs.promote(self._session, jobs)
        except Refused:
            return  # another active run came first: its own end, or the sweeper, promotes


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
