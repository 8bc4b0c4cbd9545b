"""What is told of a tick: who has it, as what it came into the world, or why it did not run."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from scheduler.core.events import TickLost, TickSkipped, TickWon
from scheduler.core.model import Birth, SkipReason, Status
from scheduler.runner.plan import Planned
from scheduler.store.claims import Lost, Owner


def won(owner: Owner, job: Planned, run_id: UUID, birth: Birth, status: Status) -> TickWon:
    """This replica made the tick's run, to be run here or by whoever has a seat."""
    about = _about(owner, job, birth)
    return TickWon(**about, run_id=run_id, status=status, trigger=birth.trigger, delay=birth.delay)


def skipped(owner: Owner, job: Planned, run_id: UUID, birth: Birth, blocked_by: UUID | None) -> TickSkipped:
    """The tick's row says why it does not run; `blocked_by`: the run that was in its way."""
    about, why = _about(owner, job, birth), birth.skip_reason or SkipReason.OVERLAP
    return TickSkipped(**about, run_id=run_id, missed=birth.missed, blocked_by=blocked_by, reason=why)


def lost(owner: Owner, job: Planned, birth: Birth, found: Lost) -> TickLost | None:
    """Another replica has the tick; None: nobody runs it, and its row says why."""
    if birth.status is Status.SKIPPED or found.run_id is None:
        return None
    return TickLost(**_about(owner, job, birth), run_id=found.run_id, winner=found.winner, status=found.status)


def _about(owner: Owner, job: Planned, birth: Birth) -> dict[str, Any]:
    return {"replica": owner.name, "job": job.spec.name, "run_key": birth.run_key, "scheduled_at": birth.scheduled_at}
