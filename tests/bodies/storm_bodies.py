"""What the jobs of the storm do: traces with the machine's monotonic clock, so that overlaps can be seen afterwards."""

from __future__ import annotations

import os
import threading
import time

from effects import note
from sqlalchemy import text

from scheduler import RunContext

BEAT = 0.1


def _sign(ctx: RunContext, path: str, what: str) -> None:
    note(path, what, ctx.job, ctx.run_key, ctx.attempt, os.getpid(), f"{time.monotonic():.6f}")


def _work(ctx: RunContext, path: str, seconds: float) -> None:
    _sign(ctx, path, "begin")
    until, pause = time.monotonic() + seconds, threading.Event()
    while time.monotonic() < until:
        pause.wait(BEAT)
        _sign(ctx, path, "beat")


def work(ctx: RunContext, path: str, seconds: float) -> str:
    """Some time at work, with a sign of life now and then. It asks nobody whether it should stop."""
    _work(ctx, path, seconds)
    _sign(ctx, path, "end")
    return "done"


def flaky(ctx: RunContext, path: str, seconds: float) -> str:
    """As `work`; the first attempt of every second tick fails."""
    _work(ctx, path, seconds)
    if ctx.attempt == 1 and ctx.scheduled_at.microsecond == 0:
        raise ValueError("not this time")
    _sign(ctx, path, "end")
    return "done"


def transact(ctx: RunContext, path: str, seconds: float) -> str:
    """One row in `public.effect`, with the run's success, after some time at work."""
    _work(ctx, path, seconds)
    with ctx.transaction() as connection:
        row = {"run": ctx.run_id, "attempt": ctx.attempt}
        connection.execute(text("INSERT INTO public.effect (run, attempt) VALUES (:run, :attempt)"), row)
    _sign(ctx, path, "end")
    return "done"
