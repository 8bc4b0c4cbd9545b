"""`isolation: thread`: a body runs in its seat's own thread, for services that embed Soloist and cannot have children.

A thread cannot be killed, so everything here is cooperative. `ctx.cancelled` turns true on a cancel, on a stop, at the
timeout and at the trust deadline, and the body must look at it. A body that never looks runs to its end: what it then
returns is its result (its work is done, and a repetition would do it twice), and its output says how late it was. A
body that looked, heard yes and ended is TIMED_OUT, CANCELLED, HANDED_BACK or LEASE_LOST; so is one that raised.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scheduler.core.context import RunContext, RunInfo
from scheduler.core.model import Ending, Outcome
from scheduler.kinds import Body, MayBegin, Progress, Stop
from scheduler.kinds.verdict import OUTCOME, Why, of_answer, unbegun
from scheduler.pool.body import arguments, execute, resolve
from scheduler.pool.door import Doors
from scheduler.pool.text import Tail, log_form
from scheduler.pool.words import boottime

if TYPE_CHECKING:
    from sqlalchemy import Connection

LOGGERS = "soloist.jobs"
"""The parent of the loggers that bodies in threads are given."""

_STOP = {Stop.LEASE_LOST: Why.LEASE_LOST, Stop.SHUTDOWN: Why.SHUTDOWN}


class ThreadKind:
    """Bodies in the seats' own threads.

    `root`: the folder in which callables are found. `database_url`: where `ctx.transaction()` leads to. Of the output
    only logging is kept: stdout belongs to the whole process. Threads that a body starts are not followed.
    """

    def __init__(self, root: Path, *, database_url: str | None = None) -> None:
        self._functions = _Functions(root)
        self._doors = Doors(database_url)
        self._capture = _Capture()
        logging.getLogger().addHandler(self._capture)
        # as in a child; the service's own root logger may be quieter. On the parent of all jobs' loggers, once: setting
        # a level walks over every logger of the process
        logging.getLogger(LOGGERS).setLevel(logging.INFO)

    def start(self, body: Body, trust: float, may_begin: MayBegin) -> ThreadExecution:
        """Prepare one attempt; it runs inside `wait`."""
        return ThreadExecution(body, trust, may_begin, self._functions, self._doors)

    def warm(self) -> None:
        """There is nothing to make ready."""

    def tidy(self) -> None:
        """Nor is anything kept."""

    def watch(self, session: int, interval: float) -> None:
        """Nobody but the body itself can end a thread."""

    def lift(self) -> None:
        """Nor is there anything to lift."""

    def close(self) -> None:
        """No handler and no connection is left. A body at work is in its seat's hands."""
        logging.getLogger().removeHandler(self._capture)
        self._doors.close()


class _Functions:
    """The functions that were called before, for finding one asks the file system; and the jobs' loggers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._found: dict[str, Callable[..., Any]] = {}
        self._loggers: dict[str, logging.Logger] = {}

    def get(self, call: str) -> Callable[..., Any]:
        """Raises what the import of `call` raises; that is tried anew the next time."""
        if call not in self._found:
            self._found[call] = resolve(call, self.root)
        return self._found[call]

    def logger(self, job: str) -> logging.Logger:
        """The logger of this job's bodies."""
        if job not in self._loggers:
            self._loggers[job] = logging.getLogger(f"{LOGGERS}.{job}")
        return self._loggers[job]


class ThreadExecution:
    """One body in the thread that waits for it. See `kinds.Execution`."""

    def __init__(self, body: Body, trust: float, may_begin: MayBegin, functions: _Functions, doors: Doors) -> None:
        self._body = body
        self._may_begin = may_begin
        self._functions = functions
        self._doors = doors
        self._lock = threading.Lock()
        self._trust = trust
        self._timeout_at: float | None = None
        self._why: Why | None = None
        self._told: Why | None = None
        self._said: Progress | None = None

    def wait(self) -> Ending:
        """Run the body here, and say how it ended."""
        until = self._may_begin()
        with self._lock:
            if self._why is not None:
                return unbegun(OUTCOME[self._why], f"{self._text(self._why)}; it had not begun")
            if until is None:
                return unbegun(Outcome.HANDED_BACK, "the lease was no longer sure when the body was to begin")
            self._trust = until
        if self._body.timeout is not None:
            self._timeout_at = _now() + self._body.timeout
        tail = Tail()
        token, start = _tail.set(tail), time.thread_time()
        ending = execute(self._call)
        cpu = round(time.thread_time() - start, 6)
        _tail.reset(token)
        ending = self._conclude(ending)
        return ending.with_output(tail.text(ending.output_tail), tail.total, cpu)

    def extend(self, until: float) -> None:
        """Trust it until then."""
        self._trust = until

    def cancel(self) -> None:
        """`ctx.cancelled` becomes true. There is no more that one can do to a thread."""
        with self._lock:
            self._why = self._why or Why.CANCEL

    def stop(self, why: Stop) -> None:
        """`ctx.cancelled` becomes true. There is no more that one can do to a thread."""
        with self._lock:
            if self._why is None or why is Stop.LEASE_LOST:
                self._why = _STOP[why]

    def progress(self) -> Progress | None:
        """What the body last said."""
        return self._said

    def say(self, said: Progress) -> None:
        """For the body's port."""
        self._said = said

    def tell(self) -> bool:
        """For the body's port: whether it should stop. Remembers that it was told, and why."""
        self._told = self._told or self._reason()
        return self._told is not None

    def _call(self) -> Any:
        info = self._body.info
        function = self._functions.get(self._body.call)
        context = RunContext(info, _ThreadPort(self, info, self._doors), self._functions.logger(info.job))
        return function(context, **arguments(function, self._body.args, self._functions.root))

    def _reason(self) -> Why | None:
        if self._why is not None:
            return self._why
        if self._timeout_at is not None and _now() >= self._timeout_at:
            return Why.TIMEOUT
        return Why.LEASE_LOST if _now() >= self._trust else None

    def _conclude(self, ending: Ending) -> Ending:
        late = 0.0 if self._timeout_at is None else _now() - self._timeout_at
        why = self._why or self._told or (Why.TIMEOUT if late > 0 else None)
        text = "" if why is None else self._text(why)
        concluded = of_answer(ending, why, told=self._told is not None, terminated=False, text=text)
        if late > 0:
            note = f"soloist: ended {late:.1f} s after its timeout; a thread cannot be stopped from outside\n"
            concluded = replace(concluded, output_tail=concluded.output_tail + note)
        return concluded

    def _text(self, why: Why) -> str:
        return {
            Why.TIMEOUT: f"timed out after {self._body.timeout or 0:g} s (cooperatively: isolation: thread)",
            Why.CANCEL: "cancelled on request",
            Why.SHUTDOWN: "stopped: the replica is shutting down",
            Why.LEASE_LOST: "stopped: the lease was lost",
        }[why]


class _ThreadPort:
    """The Port of a body in a thread."""

    def __init__(self, execution: ThreadExecution, info: RunInfo, doors: Doors) -> None:
        self._execution = execution
        self._info = info
        self._doors = doors

    def progress(self, done: int, total: int | None, note: str | None) -> None:
        self._execution.say(Progress(done, total, note))

    def cancelled(self) -> bool:
        return self._execution.tell()

    def save_checkpoint(self, state: Any) -> None:
        self._doors.open().save_checkpoint(self._info, state)

    def connect(self) -> AbstractContextManager[Connection]:
        return self._doors.open().connect()

    def transaction(self, *, checkpoint: Any, has_checkpoint: bool) -> AbstractContextManager[Connection]:
        return self._doors.open().transaction(self._info, checkpoint=checkpoint, has_checkpoint=has_checkpoint)


_tail: ContextVar[Tail | None] = ContextVar("soloist_tail", default=None)


class _Capture(logging.Handler):
    """Log records of the thread (or the coroutines) of a body go to that body's tail, and to nobody else's."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(log_form())

    def emit(self, record: logging.LogRecord) -> None:
        tail = _tail.get()
        if tail is None:
            return
        try:
            tail.append((self.format(record) + "\n").encode("utf-8", "replace"))
        except Exception:
            self.handleError(record)


def _now() -> float:
    return boottime() / 1e9
