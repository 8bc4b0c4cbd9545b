"""Several replicas on one host, each a process of its own, as they would be on several: `serve --replicas N`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from scheduler.cli.failures import say
from scheduler.core.errors import DatabaseUnreachable
from scheduler.runner.signals import hung_up

if TYPE_CHECKING:
    from scheduler.config.settings import Settings

_ASKS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_fleet(settings: Settings, database_url: str, count: int) -> int:
    """Start `count` replicas and wait for all of them; returns the exit code: 0, or that of the first that had another.

    A broken schema or a wrong address is found here, once, not in each of them; for a database that may still come each
    waits by itself. Call it in the main thread:
    the kernel kills the replicas when the thread that started them ends. From the end of the last replica on this
    process takes no notice of signals: what is left to do (to stop an embedded server) must be done, and is soon.
    Raises SoloistError.
    """
    from scheduler.store.migrate import migrate

    try:
        migrate(database_url)
    except DatabaseUnreachable as error:
        if not error.may_heal:
            raise
    fleet = _Fleet()
    for number in _ASKS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup means it
            signal.signal(number, fleet.ask)
    try:
        for index in range(1, count + 1):
            fleet.start(f"{settings.replica}-{index}", _environment(settings, database_url))
        return fleet.wait()
    finally:
        for number in _ASKS:  # not our handler: at its very end, Python gives those back to the kernel's way, to die
            signal.signal(number, signal.SIG_IGN)


class _Fleet:
    def __init__(self) -> None:
        self._running: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}
        self._asks: list[int] = []
        self._first_code = 0
        self._on_terminal = os.isatty(0)

    def start(self, name: str, environment: dict[str, str]) -> None:
        """Start one replica, unless a signal came in the meantime."""
        if self._asks:
            return
        process = subprocess.Popen(
            [sys.executable, "-m", "scheduler", "serve", "--replica", name],
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches this process, which passes it on once
            preexec_fn=_die_with(os.getpid()),  # noqa: PLW1509 - this process has one thread
        )
        self._running[process.pid] = (name, process)
        if self._asks:  # between the question above and this line
            process.terminate()

    def ask(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - what signal handlers are given
        """Ask all replicas to stop; a second signal is passed on too, and makes them hurry.

        SIGHUP asks them to read the file again, unless it means that our terminal is gone.
        """
        if number == signal.SIGHUP and not (self._on_terminal and hung_up()):
            for _, process in list(self._running.values()):
                process.send_signal(number)
            return
        self._asks.append(number)
        for _, process in list(self._running.values()):
            process.terminate()

    def wait(self) -> int:
        """Until all have ended. Sleeps in the kernel; a signal's handler runs in between."""
        while self._running:
            # WNOWAIT: the number stays the dead child's until Popen takes it, so `ask` can never hit another process
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            assert ended is not None  # only WNOHANG gives None
            name, process = self._running.get(ended.si_pid, ("", None))
            if process is None:  # an orphan that was given to us, where this process is the container's first
                os.waitpid(ended.si_pid, 0)
                continue
            code = process.wait()
            del self._running[ended.si_pid]
            self._note(name, process.pid, code)
        return self._first_code if self._first_code or self._asks else 1

    def _note(self, name: str, pid: int, code: int) -> None:
        """Keep the first bad code, and tell of a replica that ended by itself."""
        # a signal of ours may come before a replica listens to it, or in its very last moment
        if self._asks and code in (0, -signal.SIGTERM):
            return
        self._first_code = self._first_code or (128 - code if code < 0 else code)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        left = len(self._running)
        others = f"; {left} other{' goes' if left == 1 else 's go'} on" if left and not self._asks else ""
        say(f"{name} (pid {pid}) {how}{others}")


def _die_with(parent: int) -> Callable[[], None]:
    from scheduler.pool.linux import die_with_parent

    return lambda: die_with_parent(parent)


def _environment(settings: Settings, database_url: str) -> dict[str, str]:
    """The parent's, and over it what its flags said; the address is not an argument, where `ps` would show it."""
    said = {
        "SOLOIST_DATABASE_URL": database_url,
        "SOLOIST_JOBS": str(settings.jobs),
        "SOLOIST_ROOT": "" if settings.root is None else str(settings.root),
        "SOLOIST_SEATS": str(settings.seats),
        "SOLOIST_LEASE": f"{round(settings.lease * 1000)}ms",
        "SOLOIST_DRAIN": f"{round(settings.drain * 1000)}ms",
    }
    return os.environ | said
