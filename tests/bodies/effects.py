"""What jobs of the tests do: leave traces in a file, one line an effect, appended in one write."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from sqlalchemy import text

from scheduler import Cancelled, Fatal, Retry, RunContext, Skip


def note(path: str, *words: object) -> None:
    """One line, whole: O_APPEND keeps lines of many processes apart."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, (" ".join(str(word) for word in words) + "\n").encode())
    finally:
        os.close(fd)


def append(ctx: RunContext, path: str) -> None:
    """One effect."""
    note(path, ctx.job, ctx.run_key, ctx.attempt, os.getpid())


def sign(ctx: RunContext, path: str, word: str) -> None:
    """One effect, with a word by which the spec is known that the body was begun with."""
    note(path, ctx.job, ctx.run_key, ctx.attempt, word)


def hold(ctx: RunContext, path: str, gate: str, slow: list[int] | None = None, seconds: float = 3600) -> str:
    """Begin, then work (a beat every 20 ms) until the gate stands open or the time is over.

    Only attempts of `slow` (None: all) work, the others end at once. Each line ends with the machine's CLOCK_BOOTTIME,
    which all processes share: two bodies at once show in it.
    """

    def say(what: str) -> None:
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        note(path, what, ctx.job, ctx.run_key, ctx.attempt, os.getpid(), f"{now:.6f}")

    say("begin")
    pause, end = threading.Event(), time.monotonic() + seconds
    while (slow is None or ctx.attempt in slow) and not Path(gate).exists() and time.monotonic() < end:
        say("beat")
        if ctx.cancelled:
            return "told to stop"
        pause.wait(0.02)
    say("end")
    return "done"


def transact(ctx: RunContext, path: str, die: str = "", gate: str = "") -> str:
    """Write one row with the run's success; attempt 1 dies (or is held at the gate) at the step that `die` names."""
    victim = die if ctx.attempt == 1 else ""
    note(path, "begin", ctx.job, ctx.attempt, os.getpid())
    if victim == "before":
        _die(path, gate)
    with ctx.transaction() as connection:
        connection.execute(text("INSERT INTO public.effect (run) VALUES (:run)"), {"run": ctx.run_id})
        if victim == "inside":
            _die(path, gate)
    if victim == "after":
        _die(path, gate)
    return "done"


def step_by_step(ctx: RunContext, path: str, steps: int, die_after: list[int]) -> str:
    """One row a step, each committed with its checkpoint; dies after those of `die_after`, once each."""
    first = ctx.checkpoint or 0
    note(path, "begin", ctx.job, ctx.attempt, first)
    for step in range(first, steps):
        with ctx.transaction(checkpoint=step + 1) as connection:
            connection.execute(text("INSERT INTO public.effect (run) VALUES (:run)"), {"run": ctx.run_id})
        if step in die_after and first <= step and ctx.attempt == die_after.index(step) + 1:
            os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def in_transaction(ctx: RunContext, path: str, seconds: float) -> str:
    """Sit in `ctx.transaction()` for a long time, with a write open."""
    with ctx.transaction() as connection:
        connection.execute(text("INSERT INTO public.effect (run) VALUES (:run)"), {"run": ctx.run_id})
        note(path, "inside", ctx.job, ctx.attempt, os.getpid())
        threading.Event().wait(seconds)
    note(path, "outside", ctx.job, ctx.attempt, os.getpid())
    return "done"


def leave(ctx: RunContext, path: str) -> None:
    """The process goes without a word."""
    note(path, "begin", ctx.job, ctx.attempt, os.getpid())
    os._exit(3)


def behave(ctx: RunContext, how: str, path: str = "") -> Any:
    """End in the way that is asked for."""
    if path:
        note(path, ctx.job, ctx.attempt)
    return _WAYS[how](ctx)


def _die(path: str, gate: str) -> None:
    if gate:  # somebody kills us from outside
        note(path, "at the gate", os.getpid())
        threading.Event().wait(120)
    os.kill(os.getpid(), signal.SIGKILL)


def _raise(error: BaseException) -> Any:
    raise error


def _talk(ctx: RunContext) -> None:
    print("before\x00after \udcff")
    ctx.logger.warning("a log line with \x00 in it")


def _progress(ctx: RunContext, done: Any, total: Any, note: Any) -> str:
    ctx.progress(done, total, note)
    threading.Event().wait(1.0)  # longer than a renewal takes to come by
    return "done"


_WAYS = {
    "fail": lambda ctx: _raise(ValueError("no")),
    "fail once": lambda ctx: _raise(ValueError("no")) if ctx.attempt == 1 else "second time lucky",
    "retry": lambda ctx: _raise(Retry("not yet", after=0.3)) if ctx.attempt == 1 else "done",
    "retry late": lambda ctx: _raise(Retry("not yet", after=3600)),
    "skip": lambda ctx: _raise(Skip("nothing to do")),
    "secret": lambda ctx: _raise(ValueError(f"refused: {os.environ['REPORTS_PASSWORD']}")),
    "fatal": lambda ctx: _raise(Fatal("never")),
    "cancelled": lambda ctx: _raise(Cancelled("enough")),
    "exit 7": lambda ctx: _raise(SystemExit(7)),
    "set": lambda ctx: {1, 2},
    "nan": lambda ctx: float("nan"),
    "nul result": lambda ctx: {"text": "a\x00b"},
    "surrogate result": lambda ctx: {"text": "a\udcffb"},
    "large result": lambda ctx: "x" * 70_000,
    "nul error": lambda ctx: _raise(ValueError("a\x00b \udcff")),
    "nul output": _talk,
    "nul progress": lambda ctx: _progress(ctx, 1, 2, "a\x00b"),
    "surrogate progress": lambda ctx: _progress(ctx, 1, 2, "a\udcffb"),
    "odd progress": lambda ctx: _progress(ctx, {1}, object(), 5),
    "nul checkpoint": lambda ctx: ctx.save_checkpoint({"text": "a\x00b"}),
    "result": lambda ctx: {"rows": 3, "ünï": ["ß", None, 1.5]},
}


def nap(ctx: RunContext, path: str, seconds: float) -> None:
    """One effect at the beginning, then some time at work."""
    note(path, ctx.job, ctx.run_key, ctx.attempt, os.getpid())
    threading.Event().wait(seconds)
