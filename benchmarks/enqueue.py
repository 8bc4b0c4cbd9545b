"""Runs asked for by name, one by one, as an application or `soloist trigger` does."""

from __future__ import annotations

import time
from collections.abc import Iterable


def enqueue(url: str, runs: Iterable[tuple[str, str]], gap: float = 0.0) -> dict[tuple[str, str], float]:
    """Create a run of each (job, key), a gap apart; returns when each (job, run key) was asked for."""
    from scheduler.core.model import Trigger
    from scheduler.runner.clock import SystemClock, new_id
    from scheduler.store.claims import Request, create_run
    from scheduler.store.visit import visit_session

    asked: dict[tuple[str, str], float] = {}
    with visit_session(url, "bench", SystemClock()) as session:
        for job, key in runs:
            request = Request(new_id(), job, f"manual:{key}", Trigger.MANUAL, "bench")
            asked[job, request.run_key] = time.time()
            create_run(session, request)
            time.sleep(gap)
    return asked
