"""The opening of the dedicated session: what it must be, and what is off without it."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.core.errors import DatabaseUnreachable, PoolerInTheWay
from scheduler.core.events import PoolerFound
from scheduler.runner.room import Room
from scheduler.store import replicas
from scheduler.store.connect import DIRECT_VARIABLE, VARIABLE, masked, unreachable
from scheduler.store.engine import ContactLost, Refused, Session

CONSEQUENCE = (
    "no notifications, no presence locks: queued runs start at the next poll, dead replicas are told by leases"
)


def open_dedicated(session: Session, room: Room, direct_url: str | None, guarded: Sequence[str]) -> None:
    """Connect it, before anything is claimed. `guarded`: the jobs with `guard: advisory_lock`.

    Raises DatabaseUnreachable where `direct_url` is given and leads nowhere, or to another database;
    PoolerInTheWay where jobs need a session of their own and a pooler has it.
    """
    variable = VARIABLE if direct_url is None else DIRECT_VARIABLE
    try:
        session.open()
        elsewhere = direct_url is not None and not _knows_us(session, room)
    except ContactLost as error:
        if direct_url is None:
            return  # it was there a moment ago: the keeper goes on trying
        raise unreachable(direct_url, error, DIRECT_VARIABLE) from None
    if elsewhere:
        raise DatabaseUnreachable(
            f"{DIRECT_VARIABLE} ({masked(direct_url or '')}) leads to another database than {VARIABLE}: this replica's "
            "row is not there. It must be the same database, past the pooler."
        )
    if (why := refusal(session, direct_url, guarded)) is not None:
        raise PoolerInTheWay(why)
    if session.pooled:
        room.bus.publish(PoolerFound(replica=room.owner.name, variable=variable, consequence=CONSEQUENCE))


def _knows_us(session: Session, room: Room) -> bool:
    try:
        return replicas.is_known(session, room.owner.id)
    except Refused:  # no such table: no Soloist there
        return False


def refusal(session: Session, direct_url: str | None, guarded: Sequence[str]) -> str | None:
    """Why these guarded jobs cannot be had here, as far as is known; None: they can."""
    if not (session.pooled and guarded):
        return None
    variable = VARIABLE if direct_url is None else DIRECT_VARIABLE
    names = ", ".join(guarded[:3]) + (f" and {len(guarded) - 3} more" if len(guarded) > 3 else "")
    first = f"guard: advisory_lock ({names}) needs a session of its own, but {variable} leads through a pooler, "
    if variable == DIRECT_VARIABLE:
        return f"{first}too: set {DIRECT_VARIABLE} to the PostgreSQL server itself"
    return f"{first}where two replicas can get the same lock: set {DIRECT_VARIABLE} to the server itself"
