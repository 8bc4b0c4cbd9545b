"""What persons did, and Soloist by itself: who, what, to which job or run, and why. Newest first."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select

from scheduler.store.tables import audit

LONGEST_PAGE = 1000
Row = dict[str, Any]


def note(connection: Connection, who: str, action: str, why: str | None = None) -> None:
    """Write a line about what concerns no single job."""
    connection.execute(insert(audit).values(who=who, action=action, why=why))


def list_audit(connection: Connection, job: str | None = None, limit: int = 50) -> list[Row]:
    """The newest lines (of one job)."""
    wanted = select(audit)
    if job is not None:
        wanted = wanted.where(audit.c.job == job)
    newest = wanted.order_by(audit.c.at.desc(), audit.c.id.desc()).limit(min(limit, LONGEST_PAGE))
    return [dict(row) for row in connection.execute(newest).mappings()]


def read_last(connection: Connection, job: str, action: str, before: datetime) -> Row | None:
    """The last line of this action on the job up to that instant."""
    wanted = select(audit).where(audit.c.job == job, audit.c.action == action, audit.c.at <= before)
    found = connection.execute(wanted.order_by(audit.c.at.desc()).limit(1)).mappings().one_or_none()
    return None if found is None else dict(found)
