"""One attempt in a test: begun in a thread of its own, as a seat would."""

from __future__ import annotations

import datetime
import os
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from limit import Limit

from scheduler.core.context import RunInfo
from scheduler.core.model import Ending
from scheduler.kinds import Body, Execution, Kind

ROOT = Path(__file__).parent
LIMIT = 60.0


def run_info(**facts: Any) -> RunInfo:
    return RunInfo(
        **{
            "run_id": uuid.uuid4(),
            "job": "a-job",
            "run_key": "2026-11-29T03:00:00[UTC]",
            "scheduled_at": datetime.datetime(2026, 11, 29, 3, tzinfo=datetime.UTC),
            "attempt": 1,
            "owner": "a replica",
            **facts,
        }
    )


def boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Trial:
    """`call`: a function of `isolated_bodies`. `trust`: seconds from when the body begins; None: it may not."""

    def __init__(
        self,
        kind: Kind,
        call: str,
        args: dict[str, Any] | None = None,
        timeout: float | None = None,
        trust: float | None = 120.0,
        info: RunInfo | None = None,
    ) -> None:
        body = Body(info or run_info(), f"isolated_bodies:{call}", args or {}, timeout)
        may_begin: Callable[[], float | None] = lambda: None if trust is None else boottime() + trust  # noqa: E731
        self.execution: Execution = kind.start(body, boottime() + (trust or 0.0), may_begin)
        self._ending: list[Ending] = []
        self._thread = threading.Thread(target=lambda: self._ending.append(self.execution.wait()), daemon=True)

    def begin(self) -> Trial:
        self._thread.start()
        return self

    def ending(self, limit: float = LIMIT) -> Ending:
        if not self._thread.is_alive() and not self._ending:
            self._thread.start()
        self._thread.join(limit)
        assert self._ending, "the body did not end"
        return self._ending[0]


def run(kind: Kind, call: str, timeout: float | None = None, **args: Any) -> Ending:
    return Trial(kind, call, args, timeout).ending()


def until(fact: Callable[[], Any], what: str, limit: float = LIMIT) -> Any:
    """Wait for something true."""
    patience = Limit(limit)
    pause = threading.Event()
    while not (found := fact()):
        assert not patience.over(), f"did not come true: {what}"
        pause.wait(0.005)
    return found


def pids_at(path: Path) -> list[int]:
    """The pids that a body wrote when it was at work."""
    until(path.exists, f"a body writes {path.name}")
    return [int(word) for word in path.read_text().split()]


def alive(pid: int) -> bool:
    """Whether there is such a process, a zombie not counted."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
