"""Forks replicas on demand: sixteen of them cost one import of the engine, not sixteen.

Reads orders from stdin, one JSON object a line, and says on stdout what it started and how each one ended. It has one
thread, so a fork of it is sound; each fork is a real replica: a session of its own, its own signals, its own stderr.
When stdin ends, so do all of them.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import traceback
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from scheduler.app import Soloist
from scheduler.config.jobs_file import parse
from scheduler.config.settings import Settings
from scheduler.core.errors import SoloistError
from scheduler.core.events import Event
from scheduler.edges import Edges
from scheduler.runner.signals import stop_on_signals
from scheduler.store import sql
from scheduler.store.sql import load

BODIES = Path(__file__).parent / "bodies"


class Journal:
    """A listener that writes each event as one line, for the test to read while the replica lives."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def __call__(self, event: Event) -> None:
        facts = {name: getattr(event, name) for cls in type(event).__mro__ for name in getattr(cls, "__slots__", ())}
        line = json.dumps({"event": type(event).__name__, **facts}, default=str)
        os.write(self._fd, line.encode() + b"\n")


def replica(order: dict[str, Any]) -> int:
    """One replica, from start to exit code; as `serve` does it, with a journal beside the log."""
    if order["statements"] is not None:
        _speak(order["statements"])
    file = None if order["file"] is None else Path(order["file"])
    plan = parse(order["jobs"].encode() if file is None else file.read_bytes(), "jobs.yaml", BODIES)
    settings = Settings(**order["settings"])
    try:
        with Edges(None, "soloist@test") as edges:
            listeners = (*edges.listeners, Journal(order["journal"]))
            parts, service = Soloist(settings, plan, order["url"], listeners, watched=file).wire()
            stop_on_signals(service.stop, None if file is None else parts.follower.reload)
            return service.run()
    except SoloistError as error:
        print(f"soloist: {error}", file=sys.stderr)
        return error.exit_code


def _speak(folder: str) -> None:
    """Statements of a test's own in place of the engine's, in this replica only: what if one lacked its fence?"""
    load.cache_clear()
    sql.files = lambda _: Path(folder)  # type: ignore[attr-defined]


def _child(order: dict[str, Any]) -> None:
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    stderr = os.open(order["stderr"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for theirs, ours in ((null, 0), (stderr, 1), (stderr, 2)):
        os.dup2(theirs, ours)
    os.environ.update(order["environment"])
    code = 70
    try:
        code = replica(order)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _say(**words: Any) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def _reap(alive: set[int]) -> None:
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            alive.discard(pid)
            _say(pid=pid, exit=os.waitstatus_to_exitcode(status))


def _load_statements() -> None:
    """All replicas of a session speak the same statements, read before the first fork."""
    for entry in files("scheduler.store").joinpath("sql").iterdir():
        load(entry.name.removesuffix(".sql"))


def main() -> None:
    """Serve until stdin ends."""
    _load_statements()
    alive: set[int] = set()
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(write)
    _say(ready=os.getpid())
    while True:
        ready, _, _ = select.select([0, read], [], [])
        if read in ready:
            os.read(read, 4096)
            _reap(alive)
        if 0 not in ready:
            continue
        line = sys.stdin.buffer.raw.readline()  # type: ignore[attr-defined]
        if not line:
            break
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _child(order)
        alive.add(pid)
        _say(pid=pid, started=order["name"])
    for pid in alive:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
