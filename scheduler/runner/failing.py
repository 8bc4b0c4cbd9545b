"""Pauses jobs whose runs fail in a row, after a run that ended badly: asked by whoever wrote that end."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.store import pauses
from scheduler.store.engine import Blocked, Refused, Session

TRIES = 3  # each of which waits LOCK_WAIT by itself for whoever has the job's row


def pause_failing(session: Session, jobs: Iterable[str]) -> dict[str, str]:
    """Which of these jobs are paused by this: name -> reason. Raises ContactLost: asked again, it is done or done once.

    A job whose row stays locked, or that this role may not pause, goes on; its next bad end asks again.
    """
    names = sorted(set(jobs))
    for _ in range(TRIES):
        try:
            return {one.job: one.reason for one in pauses.pause_failing(session, names)}
        except Blocked:
            continue
        except Refused:
            return {}
    return {}
