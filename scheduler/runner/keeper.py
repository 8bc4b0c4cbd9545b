"""Keeps what this replica owns: renews leases, stops bodies whose run is lost, hands on requests to cancel, and says
every ten seconds that the replica lives.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from uuid import UUID

from scheduler.core.events import LeaseLostEvent
from scheduler.core.model import TERMINAL
from scheduler.core.policy import renew_interval, trust_window
from scheduler.kinds import Stop
from scheduler.pool.text import clean_json
from scheduler.runner.room import Room
from scheduler.runner.seats import Held, Seats
from scheduler.runner.tally import Tally
from scheduler.store import replicas, runs
from scheduler.store.engine import Session
from scheduler.store.replicas import HEARTBEAT, Pulse


class Keeper:
    """`step` belongs to one thread. `pulse` is told what each heartbeat learned; None: the replica's row is gone."""

    def __init__(
        self, session: Session, room: Room, seats: Seats, tally: Tally, pulse: Callable[[Pulse | None], None]
    ) -> None:
        self._session, self._seats, self._tally, self._pulse = session, seats, tally, pulse
        self._owner, self._clock, self._bus = room.owner, room.clock, room.bus
        self._interval = renew_interval(room.owner.lease)
        self._beat_at = 0.0

    def step(self) -> float:
        """Renew, and beat when it is time; returns seconds to the next step."""
        held = self._seats.held()
        if held:
            self._renew(held)
        left = self._beat_at - self._clock.boottime()
        if left <= 0:
            self._beat()
            left = HEARTBEAT
        return min(left, self._interval)  # an idle step sends nothing

    def _renew(self, held: list[Held]) -> None:
        sent = self._clock.boottime()
        asked = [(h.claim.id, h.claim.attempt, _progress(h)) for h in held]
        renewal = runs.renew(self._session, self._owner, asked)
        took = self._clock.boottime() - sent
        if renewal.database_now is not None:
            self._clock.measure(renewal.database_now, took)
        until = sent + trust_window(self._owner.lease)
        missing = []
        for one in held:
            cancel = renewal.renewed.get(one.claim.id)
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
        standing = runs.read_held(self._session, self._owner, [(h.claim.id, h.claim.attempt) for h in missing])
        still = self._seats.held()
        for one in missing:
            how = standing.get(one.claim.id)
            if one not in still or (how is not None and how.held):
                continue
            if how is not None and how.recorded and how.status in TERMINAL:
                one.extend(until)  # `ctx.transaction()` has ended the run; what the body does after it is harmless
            elif one.stop(Stop.LEASE_LOST):
                self._bus.publish(LeaseLostEvent(**_about(one, self._owner.name), reason="the run was taken over"))

    def _beat(self) -> None:
        sent = self._clock.boottime()
        pulse = replicas.heartbeat(self._session, self._owner.id, self._clock.offset, self._tally.counts())
        now = self._clock.boottime()
        self._beat_at = now + HEARTBEAT
        if pulse is not None:
            self._clock.measure(pulse.database_now, now - sent)
        self._pulse(pulse)


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
