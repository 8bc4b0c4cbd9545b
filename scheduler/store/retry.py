"""A retry by hand: a new run beside the old one, which keeps its place in the history."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Any
from uuid import UUID

from scheduler.core.errors import AlreadyRunning
from scheduler.core.model import TERMINAL, Trigger
from scheduler.store.claims import Created, Request, create_run
from scheduler.store.engine import Session

_NUMBERED = re.compile(r"(?P<key>.*)~(?P<number>[0-9]{1,6})")


def retry_run(session: Session, run: dict[str, Any], triggered_by: str, new_id: Callable[[], UUID]) -> Created:
    """Make the run `<key>~2`, or the next number that is free, with the same tick and payload.

    `run`: as `history.read_run` gives it. Raises AlreadyRunning while an earlier retry of it is still on its way: so
    two people who retry the same run make one, not two. Raises NotFound when the job is no longer in the plan.
    """
    shape = _NUMBERED.fullmatch(run["run_key"])
    key, first = (shape["key"], int(shape["number"]) + 1) if shape else (run["run_key"], 2)
    for number in count(first):
        request = Request(
            id=new_id(),
            job=run["job"],
            run_key=f"{key}~{number}",
            trigger=Trigger.RETRY,
            triggered_by=triggered_by,
            scheduled_at=run["scheduled_at"],
            retry_of=run["id"],
            payload=run["payload"],
            action="retry",
        )
        made = create_run(session, request)
        if made.fresh:
            return made
        if made.status not in TERMINAL:
            raise AlreadyRunning(f"it is being retried already: run {made.id} ({request.run_key}) is {made.status}")
    raise AssertionError("unreachable")
