"""Keeps what this replica owns: renews leases, stops bodies whose run is lost, hands on requests to cancel, and says
every ten seconds that the replica lives.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from scheduler.core.events import LeaseLostEvent
from scheduler.core.model import TERMINAL
from scheduler.core.policy import renew_interval, trust_window
from scheduler.kinds import Stop
from scheduler.pool.text import clean_json
from scheduler.runner.clock_watch import ClockWatch
from scheduler.runner.presence import Presence
from scheduler.runner.room import Room
from scheduler.runner.seats import Held, Seats
from scheduler.runner.tally import Tally
from scheduler.runner.witness import Witness
from scheduler.store import replicas, runs
from scheduler.store.engine import ContactLost, Session
from scheduler.store.replicas import HEARTBEAT, Pulse


@dataclass(frozen=True, slots=True)
class Charge:
    """What the keeper looks after.

    `pulse` is told what each heartbeat learned; None: the replica's row is gone. `anew`: called when the session is
    another one: behind it there may be a server that does not know all that the former one did.
    """

    seats: Seats
    tally: Tally
    presence: Presence
    clock_watch: ClockWatch
    witness: Witness
    pulse: Callable[[Pulse | None], None]
    anew: Callable[[], None]


class Keeper:
    """`step` belongs to one thread, `open` to the start before it. The session is the replica's dedicated one."""

    def __init__(self, session: Session, room: Room, charge: Charge) -> None:
        self._session, self._charge, self._seats = session, charge, charge.seats
        self._owner, self._clock, self._bus = room.owner, room.clock, room.bus
        self._interval = renew_interval(room.owner.lease)
        # an answer that takes longer is worth less than a new session. Well under the 25 s after which the server's own
        # keepalives end a session whose network is gone, also where the lease is long
        self._deadline = min(max(2.0, room.owner.lease / 3), 5.0)
        self._beat_at = 0.0
        self._epoch = 0
        self._doubted = threading.Event()

    def doubt(self) -> None:
        """The server is another one, though the session may stand: a pooler's does. From any thread."""
        self._doubted.set()

    def step(self) -> float:
        """Renew, and beat when it is time; returns seconds to the next step."""
        try:
            return self._step()
        except ContactLost as error:
            self._charge.presence.ended(str(error), everyone=error.everyone)
            raise

    def _step(self) -> float:
        presence = self._charge.presence
        presence.check(self._deadline)
        held = self._seats.held()
        if held or not presence.stands:
            self._renew(held)
            presence.stand()
        epoch = self._session.epoch  # first: other threads may reconnect it meanwhile
        if self._doubted.is_set():
            self._doubted.clear()
            self._epoch = -1  # as with a new session: asked until there is an answer
        if self._epoch != epoch:
            self._charge.witness.ask(self._session)
            if self._epoch:
                self._charge.anew()
            self._epoch = epoch
        left = self._beat_at - self._clock.boottime()
        if left <= 0:
            self._beat()
            left = HEARTBEAT
        self._charge.clock_watch.look()
        return min(left, self._interval)  # an idle step sends nothing

    def _renew(self, held: list[Held]) -> None:
        sent = self._clock.boottime()
        asked = [(h.claim.id, h.claim.attempt, _progress(h)) for h in held]
        renewal = runs.renew(self._session, self._owner, asked, self._deadline)
        if renewal.database_now is not None:
            self._clock.measure(renewal.database_now, sent)
        until = sent + trust_window(self._owner.lease)
        missing = []
        for one in held:
            cancel = renewal.renewed.get((one.claim.id, one.claim.attempt))
            if cancel is None:
                missing.append(one)
                continue
            one.extend(until)
            if cancel:
                one.cancel()
        if missing:
            self._look_for(missing, until)

    def _look_for(self, missing: list[Held], until: float) -> None:
        """A row that was not renewed is locked for a moment, ended by its own attempt, or lost."""
        asked = [(one.claim.id, one.claim.attempt) for one in missing]
        standing = runs.read_held(self._session, self._owner, asked)
        still = self._seats.held()
        for one in missing:
            how = standing.get((one.claim.id, one.claim.attempt))
            if one not in still or (how is not None and how.held):
                continue
            if how is not None and how.recorded and how.status in TERMINAL:
                one.extend(until)  # `ctx.transaction()` has ended the run; what the body does after it is harmless
            elif one.stop(Stop.LEASE_LOST):
                self._bus.publish(LeaseLostEvent(**_about(one, self._owner.name), reason="the run was taken over"))

    def _beat(self) -> None:
        sent = self._clock.boottime()
        counts = self._charge.tally.counts()
        pulse = replicas.heartbeat(self._session, self._owner.id, self._clock.offset, counts, self._deadline)
        if pulse is not None:
            self._clock.measure(pulse.database_now, sent)
        self._beat_at = self._clock.boottime() + HEARTBEAT
        self._charge.pulse(pulse)


def _progress(held: Held) -> str | None:
    execution = held.execution
    said = None if execution is None else execution.progress()
    if said is None:
        return None
    try:  # one body's odd words must not cost the others their renewal
        return json.dumps(clean_json(asdict(said)), allow_nan=False)
    except (TypeError, ValueError):
        return None


def _about(held: Held, replica: str) -> dict[str, Any]:
    claim = held.claim
    run_id: UUID = claim.id
    return {
        "replica": replica,
        "job": claim.job,
        "run_key": claim.run_key,
        "run_id": run_id,
        "attempt": claim.attempt,
        "scheduled_at": claim.scheduled_at,
    }
