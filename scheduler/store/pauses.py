"""Pauses: a job whose ticks stop until a person resumes it, or until an instant; and those that failures bring about.

A pause takes ticks, not runs that somebody asked for. While it lasts the watermark stands still, so what was due and
unclaimed when it began is a part of it. At its end, and before the job's spec changes meanwhile, one row says how many
ticks it took, from which one on; none of them runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from scheduler.core.errors import SoloistError
from scheduler.core.model import SOLOIST
from scheduler.core.policy import decide_pause
from scheduler.store.claims import note_of
from scheduler.store.engine import Blocked, Session, Statements
from scheduler.store.jobs import FullJob, read_job

Said = dict[str, str | None]  # who ends a pause, and why
TRIES = 10  # a job that changes between the count and the statement is counted afresh


@dataclass(frozen=True, slots=True)
class Wish:
    """A pause that somebody asks for: `until` an instant, or `lasting` seconds, or (both None) until it is resumed."""

    job: str
    who: str
    why: str
    until: datetime | None = None
    lasting: float | None = None


@dataclass(frozen=True, slots=True)
class Paused:
    """A pause that was asked for. `at` None: its end had come already by `database_now`, and nothing was done.

    `before`: the pause that the job had; its beginning stays.
    """

    at: datetime | None
    until: datetime | None
    before: Before | None
    database_now: datetime


@dataclass(frozen=True, slots=True)
class Before:
    """The pause that a job had before."""

    at: datetime
    until: datetime | None
    by: str
    reason: str


def pause_job(session: Session, wish: Wish) -> Paused | None:
    """Pause the job, or change its pause, and note it. None: the plan in force has no such job.

    Raises ContactLost: asked again it says the same once more. Raises Blocked: somebody holds a lock on the job's row.
    """
    rows = session.run(
        "pause_job",
        {"job": wish.job, "who": wish.who, "why": wish.why, "until": wish.until, "lasting": wish.lasting},
    )
    if not rows:
        return None
    at, until, since, old_until, by, reason, now, _ = rows[0]
    before = None if since is None else Before(since, old_until, by or "", reason or "")
    return Paused(at, until, before, now)


@dataclass(frozen=True, slots=True)
class Resumed:
    """A pause that has ended. `missed`: how many ticks it took, from `since` to `last`; `capped`: or more."""

    job: str
    until: datetime | None
    missed: int = 0
    since: datetime | None = None
    last: datetime | None = None
    capped: bool = False


def resume_job(session: Session, name: str, who: str, why: str | None, new_id: Callable[[], UUID]) -> Resumed | None:
    """End the job's pause now, and note it: nothing of the past is due. None: it is not paused, or not there."""
    for _ in range(TRIES):
        job = read_job(session, name)
        if job is None or job.paused_at is None or job.removed_at is not None:
            return None
        ended = _end(session, job, job.database_now, {"who": who, "why": why}, new_id)
        if ended is not None:
            return ended
    raise SoloistError(f"{name} is being changed over and over by others: nothing was done; try again")


def end_pauses(session: Session, new_id: Callable[[], UUID]) -> tuple[Resumed, ...]:
    """End the pauses whose end has come; their jobs' ticks after that instant are due as ever. Any replica may.

    One that another deals with, or whose row is locked, is left to it, or to the next call.
    """
    ended = []
    for job in [FullJob.of(row) for row in session.run("read_expired_pauses", {})]:
        assert job.paused_until is not None
        try:
            one = _end(session, job, job.paused_until, _by_itself(job.paused_until), new_id)
        except Blocked:
            continue
        if one is not None:
            ended.append(one)
    return tuple(ended)


def settle_pause(statements: Statements, name: str, now: datetime, new_id: Callable[[], UUID]) -> None:
    """Before the spec of a paused job changes or goes, in that transaction: what the pause took so far gets its row.

    Its ticks are those of the spec that was in force; by the next one others would be counted. Then the pause goes on,
    from `now`. One whose end has come is ended, as any replica would have: the ticks after it are due as ever. The job
    may have been removed meanwhile, by a version that did not count then: its ticks ended there.
    """
    job = read_job(statements, name)
    if job is None or job.paused_at is None:
        return
    if job.removed_at is None and job.paused_until is not None and job.paused_until <= now:
        _end(statements, job, job.paused_until, _by_itself(job.paused_until), new_id)
        return
    upto = min(end for end in (now, job.paused_until, job.removed_at) if end is not None)
    if upto > job.watermark:
        _end(statements, job, upto, None, new_id)


def _by_itself(until: datetime) -> Said:
    return {"who": SOLOIST, "why": f"until {_instant(until)}"}


def _end(
    session: Statements, job: FullJob, upto: datetime, said: Said | None, new_id: Callable[[], UUID]
) -> Resumed | None:
    """End the pause as it was read, its ticks counted up to `upto`. None: it is not so any more.

    `said` None: it does not end, its ticks are counted all the same.
    """
    birth = decide_pause(job.spec, job.watermark, upto)
    asked: dict[str, Any] = {
        "job": job.id,
        "paused_at": job.paused_at,
        "paused_until": job.paused_until,
        "seen": job.watermark,
        "spec_hash": job.spec_hash,
        "upto": upto,
        "ends": said is not None,
        "id": new_id(),
        "run_key": None if birth is None else birth.run_key,
        "tick_key": None if birth is None else birth.tick_key,
        "scheduled_at": None if birth is None else birth.scheduled_at,
        "note": None if birth is None else note_of(birth),
    }
    if not session.run("resume_job", asked | (said or {"who": None, "why": None})):
        return None
    if birth is None:
        return Resumed(job.name, job.paused_until)
    return Resumed(
        job.name, job.paused_until, birth.missed or 0, since=birth.since, last=birth.scheduled_at, capped=birth.capped
    )


@dataclass(frozen=True, slots=True)
class Failing:
    """A job that was paused because its runs failed in a row."""

    job: str
    reason: str


def pause_failing(session: Session, jobs: Sequence[str]) -> tuple[Failing, ...]:
    """Pause those of these jobs whose last runs all ended badly, as many in a row as their specs say, and note it."""
    return tuple(Failing(name, reason) for name, reason, _ in session.run("pause_failing", {"job": [*jobs]}))


def _instant(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
