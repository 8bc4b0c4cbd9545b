"""Bodies that are hard on whoever has to keep them: they burn, hold the interpreter, take their time."""

from __future__ import annotations

import ctypes
import os
import threading
import time

from effects import note

from scheduler import RunContext


def keyed(ctx: RunContext, path: str, gate: str = "", hold: float = 0.0) -> str:
    """One effect that names what a receiver could tell repetitions by; attempt 1 then takes `hold` seconds, or waits
    until the gate stands open.
    """
    note(path, "work", ctx.run_id, ctx.idempotency_key, ctx.attempt, os.getpid())
    if ctx.attempt == 1:
        threading.Event().wait(hold)
    while ctx.attempt == 1 and gate and not os.path.exists(gate):
        threading.Event().wait(0.02)
    note(path, "done", ctx.run_id, ctx.idempotency_key, ctx.attempt, os.getpid())
    return "done"


def burn(ctx: RunContext, path: str, seconds: float, threads: int = 1) -> str:
    """Busy in pure Python: the interpreter changes hands only when it has to."""
    note(path, "begin", ctx.job, ctx.attempt, os.getpid())
    end = time.monotonic() + seconds
    others = [threading.Thread(target=_spin, args=(end,)) for _ in range(threads - 1)]
    for other in others:
        other.start()
    _spin(end)
    for other in others:
        other.join()
    note(path, "end", ctx.job, ctx.attempt, os.getpid())
    return "done"


def clutch(ctx: RunContext, path: str, seconds: float) -> str:
    """Sleep in C code that never lets go of the interpreter; attempt 1 only."""
    note(path, "begin", ctx.job, ctx.attempt, os.getpid())
    if ctx.attempt == 1:
        ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
    note(path, "end", ctx.job, ctx.attempt, os.getpid())
    return "done"


def _spin(end: float) -> None:
    number = 0
    while time.monotonic() < end:
        number += 1
