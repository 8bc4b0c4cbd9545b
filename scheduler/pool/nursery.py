"""The replica's hold on one zygote: start it, have it fork, hear of its children's deaths, end it."""

from __future__ import annotations

import array
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from scheduler.core.errors import SoloistError
from scheduler.pool import linux
from scheduler.pool.channel import Channel
from scheduler.pool.leash import Death, Leash
from scheduler.pool.words import Words
from scheduler.pool.zygote import Settings

CLOSED = "closed"
ZYGOTE_DIED = "zygote"
_BIRTH = 60.0  # seconds that the zygote has for its start and the first child


logger = logging.getLogger("soloist.pool")


class NurseryGone(Exception):
    """This zygote is dead."""


class Nursery:
    """One zygote and its children. `environment`: what the zygote, and so every body, starts with."""

    def __init__(self, root: Path, environment: dict[str, str], preload: list[str], slots: int) -> None:
        if not sys.executable:
            raise SoloistError(
                "isolation: process needs a Python interpreter of its own (sys.executable is empty here): "
                "set `isolation: thread`"
            )
        self.skipped: dict[str, str] = {}
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._sending = threading.Lock()
        self._leashes: dict[int, Leash] = {}
        self._slots = list(range(slots))
        self._alive = True
        self._closing = False
        memory = Words.create(slots)
        self._words = Words(memory, slots)
        self._control, theirs = Channel.pair()
        settings = Settings(
            control=theirs.fileno(),
            words=memory,
            slots=slots,
            parent=os.getpid(),
            root=str(root),
            path=sys.path,
            preload=preload,
        )
        self._process = subprocess.Popen(
            settings.command(),
            pass_fds=(theirs.fileno(), memory),
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the replica
        )
        theirs.close()
        os.close(memory)
        self._thread = threading.Thread(target=self._hear, name="soloist-nursery", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the zygote can still be asked for children."""
        return self._alive

    @property
    def pid(self) -> int:
        """The zygote's."""
        return self._process.pid

    def fork(self) -> Leash:
        """A new child, when it lives; waits for a slot and the zygote's start. Raises NurseryGone, OSError."""
        with self._room:
            self._room.wait_for(lambda: self._slots or not self._alive)
            if not self._alive:
                raise NurseryGone
            leash = Leash(self._slots[-1], self._words, self._tell)
            self._leashes[self._slots.pop()] = leash
        self._tell({"fork": leash.slot}, leash.gifts)
        leash.given()
        if not leash.started.wait(_BIRTH):
            self._process.kill()  # it hangs, in the import of a preloaded module most likely
            leash.started.wait()
        return leash

    def discard(self, leash: Leash, wait: float) -> None:
        """Kill a child with all it left behind. Waits up to `wait` seconds for its end. Call it once per leash."""
        leash.end("discarded", None, 0.0)
        with self._lock:
            leash.discarded = True
            if leash.death is not None:
                self._free(leash)
        leash.gone.wait(wait)

    def watch(self, session: int, interval: float) -> None:
        """From the end of this session (a descriptor, copied) the children have `interval` seconds."""
        self._tell({"watch": interval}, (session,))

    def lift(self) -> None:
        """The session's end means nothing: the children have as long as their own deadlines."""
        self._tell({"lift": True})

    def close(self) -> None:
        """The zygote and all below it are gone when this returns."""
        self._closing = True
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()  # PDEATHSIG takes the children with it
            self._process.wait()
        self._thread.join(5)
        self._control.close()

    def _tell(self, message: dict[str, Any], gifts: tuple[int, ...] = ()) -> None:
        """A message to the zygote; never blocks. One that does not read for hundreds of messages is of no use."""
        data = json.dumps(message).encode()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", gifts))] if gifts else []
        try:
            with self._sending:
                self._control.sendmsg([data], rights, socket.MSG_DONTWAIT)
        except BlockingIOError:
            self._process.kill()
        except OSError:
            pass  # it is dead: `_hear` knows

    def _hear(self) -> None:
        while message := self._next():
            if "ready" in message:
                self.skipped = message["ready"]["skipped"]
                for module, why in self.skipped.items():
                    logger.warning("not preloaded: %s: %s", module, why)
            elif "started" in message:
                leash = self._leashes[message["started"]]
                leash.pid = message["pid"]
                leash.started.set()
            else:
                death = Death(message["code"], message["why"], message.get("cpu"), message.get("peak_rss"))
                self._bury(self._leashes[message["exited"]], death)
        self._process.wait()
        with self._room:
            self._alive = False
            self._room.notify_all()
            orphans = [leash for leash in self._leashes.values() if leash.death is None]
        for leash in orphans:
            if not self._closing:
                _kill_orphan(leash.pid)
            self._bury(leash, Death(None, CLOSED if self._closing else ZYGOTE_DIED))

    def _next(self) -> dict[str, Any] | None:
        try:
            data = self._control.recv(65536)
        except OSError:
            return None
        return json.loads(data) if data else None

    def _bury(self, leash: Leash, death: Death) -> None:
        with self._lock:
            leash.died(death)
            if leash.discarded:
                self._free(leash)

    def _free(self, leash: Leash) -> None:
        """Close what is ours of it, and let its slot go. Holds the lock."""
        del self._leashes[leash.slot]
        leash.close()
        self._slots.append(leash.slot)
        self._room.notify()


def _kill_orphan(pid: int) -> None:
    """The zygote died. PDEATHSIG has killed the child; what it started is in its group and is ours to kill."""
    if pid:
        linux.kill_group(pid, signal.SIGKILL)
        with suppress(ChildProcessError):  # it is ours only if we are the first process of a container
            os.waitpid(pid, os.WNOHANG)
