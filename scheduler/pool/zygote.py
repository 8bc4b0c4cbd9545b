"""The zygote: forks children, reaps them, kills them and keeps their trust deadlines. One thread, no job.

Started as `python -c … main(settings)` by `nursery.py`; it imports little before it forks and preloads what it is told.
"""

from __future__ import annotations

import errno
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from scheduler.config.callables import load_module
from scheduler.pool import linux
from scheduler.pool.baseline import reset_signals
from scheduler.pool.child import Cradle, live
from scheduler.pool.words import FOREVER, Word, Words, boottime

BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1])['path']; "
    "from scheduler.pool.zygote import main; main(sys.argv[1])"
)
"""How an interpreter becomes a zygote: with the replica's own import path."""

_LOOK_MS = 1000  # a renewed deadline is written without telling us, so look at least this often
_STRAYS_NS = 2_000_000_000  # how long a stray may keep its child's end from being told


@dataclass(frozen=True, slots=True)
class Settings:
    """What a zygote is started with. `control`, `words`: descriptors; `skipped`: module → why it was not preloaded."""

    control: int
    words: int
    slots: int
    parent: int
    root: str
    path: list[str]
    preload: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def command(self) -> list[str]:
        """The argv. `-P`: nothing in the working directory may stand in for a module of ours."""
        return [sys.executable, "-P", "-c", BOOT, json.dumps(asdict(self))]


@dataclass(slots=True)
class _Kid:
    """A living child. `term_at`, `kill_at`: CLOCK_BOOTTIME ns; `why`: what it is being ended for."""

    slot: int
    why: str | None = None
    term_at: int | None = None
    kill_at: int | None = None


def main(argument: str) -> NoReturn:
    """Become a zygote. `argument`: Settings as JSON."""
    settings = Settings(**json.loads(argument))
    reset_signals()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # its life follows the replica's and nothing else
    linux.name_process("soloist-zygote")
    linux.adopt_orphans()
    # A pidfd: PDEATHSIG would follow the thread that started us, and the control socket's end may be held by a fork.
    watch = os.pidfd_open(settings.parent)
    if os.getppid() != settings.parent:
        os._exit(0)
    _preload(settings)
    gc.collect()
    gc.freeze()  # else a child's first full collection would copy every page it shares with us
    _Zygote(settings, watch).run()


def _preload(settings: Settings) -> None:
    """Import what children will need. A module that starts threads cannot be in a process that forks."""
    for module in settings.preload:
        if module in settings.skipped:
            continue
        before = linux.tasks()
        try:
            _import(module, Path(settings.root))
        except BaseException as error:  # the child that needs it will say so
            settings.skipped[module] = f"cannot be imported: {type(error).__name__}: {error}"
        if linux.tasks() > before:
            settings.skipped[module] = "starts threads when it is imported"
            # Threads cannot be taken back, a process image can. Our pid and our descriptors stay.
            os.execv(sys.executable, settings.command())  # noqa: S606 - our own command, no shell


def _import(module: str, root: Path) -> None:
    top = module.partition(".")[0]
    if top != "scheduler" and ((root / top).is_dir() or (root / f"{top}.py").is_file()):
        load_module(module, root)  # as the child will do it
    else:
        importlib.import_module(module)


class _Zygote:
    def __init__(self, settings: Settings, watch: int) -> None:
        self._root = Path(settings.root)
        self._words = Words(settings.words, settings.slots)
        self._control = socket.socket(fileno=settings.control)
        self._watch = watch
        self._kids: dict[int, _Kid] = {}
        self._unsent: list[bytes] = []
        self._untold: list[dict[str, Any]] = []  # ends of children that wait for their strays to die
        self._untold_since = 0
        self._session: int | None = None  # the replica's dedicated session; see `_watch_session`
        self._interval = 0
        self._limit = FOREVER
        self._pipe, self._held = os.pipe2(os.O_CLOEXEC)  # children see our end by the end of it
        self._wake, wake_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        self._poll = select.poll()
        for fd in (watch, self._wake, settings.control):
            self._poll.register(fd, select.POLLIN)
        self._send({"ready": {"threads": linux.tasks(), "skipped": settings.skipped}})

    def run(self) -> NoReturn:
        """Until the replica is gone."""
        while True:
            asked, since = self._enforce(), boottime()
            ready = {fd for fd, _ in self._poll.poll(asked)}
            if self._wake in ready:
                os.read(self._wake, 4096)
            if self._session in ready:
                self._forget_session()
                # asleep for longer than we had asked, we do not know when it ended: at the earliest when we lay down
                slept = asked is not None and boottime() - since > (asked + 20) * 1_000_000
                self._limit = (since if slept else boottime()) + self._interval
            if self._watch in ready:
                self._end_everything()
            if self._control.fileno() in ready:
                self._obey()
            self._reap()
            self._flush()

    def _enforce(self) -> int | None:
        """Kill what is due; milliseconds until something else may be, or None for no hurry."""
        if self._untold:
            return 50
        if not self._kids:
            return None
        now = boottime()
        nearest = now + min(_LOOK_MS * 1_000_000, self._interval // 2 or _LOOK_MS * 1_000_000)
        for pid, kid in self._kids.items():
            trust = self._words.load(kid.slot, Word.DEADLINE)
            if trust != FOREVER:
                trust = min(trust, self._limit)
            if trust and trust <= now:
                kid.why, kid.kill_at = "trust", now
            if kid.term_at is not None and kid.term_at <= now:
                kid.term_at = None
                self._words.store(kid.slot, Word.ENDING, 1)  # before the signal: the child asks whether it is ours
                linux.kill_group(pid, signal.SIGTERM)
            if kid.kill_at is not None and kid.kill_at <= now:
                kid.kill_at = None
                linux.kill_group(pid, signal.SIGKILL)
            nearest = min([nearest, *(t for t in (trust, kid.term_at, kid.kill_at) if t and t > now)])
        return (nearest - now) // 1_000_000 + 1

    def _obey(self) -> None:
        """One message of the replica."""
        try:
            data, fds, _, _ = socket.recv_fds(self._control, 65536, 3, socket.MSG_CMSG_CLOEXEC)
        except OSError:  # ECONNRESET: the replica died with messages of ours unread
            data, fds = b"", []
        if not data:
            self._end_everything()
        message = json.loads(data)
        if "fork" in message:
            self._fork(message["fork"], fds)
        elif "end" in message:
            self._plan_end(message)
        elif "watch" in message:
            self._watch_session(message["watch"], fds)
        elif "lift" in message:
            self._limit = FOREVER

    def _watch_session(self, interval: float, fds: list[int]) -> None:
        """Keep an eye on the session by which others know that the replica is there.

        From its end the children have `interval` seconds to hear of a new one: after that others may begin their work
        anew. The replica cannot be left to see to it, for it may be frozen just then.
        """
        self._forget_session()
        (self._session,) = fds
        self._limit, self._interval = FOREVER, int(interval * 1e9)
        self._poll.register(self._session, select.POLLRDHUP)

    def _forget_session(self) -> None:
        if self._session is not None:
            self._poll.unregister(self._session)
            os.close(self._session)
        self._session = None

    def _plan_end(self, message: dict[str, Any]) -> None:
        """`{"end": slot, "why": …, "term": seconds | null, "kill": seconds}`: the earlier of two plans holds."""
        now = boottime()
        for kid in self._kids.values():
            if kid.slot == message["end"]:
                kid.why = message["why"]
                if message["term"] is not None:
                    kid.term_at = _earlier(kid.term_at, now + int(message["term"] * 1e9))
                kid.kill_at = _earlier(kid.kill_at, now + int(message["kill"] * 1e9))

    def _fork(self, slot: int, fds: list[int]) -> None:
        me = os.getpid()
        try:
            if len(fds) != 3:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))  # the kernel dropped what did not fit
            pid = os.fork()
        except OSError as error:
            self._send({"exited": slot, "code": None, "why": f"fork: {error}"})
            pid = -1
        if pid == 0:
            channel, output, replica = fds
            live(Cradle(channel, output, replica, self._pipe, slot, self._words, me, self._root))
        if pid > 0:
            self._kids[pid] = _Kid(slot)
            self._send({"started": slot, "pid": pid})
        for fd in fds:
            os.close(fd)

    def _reap(self) -> bool:
        """Bury the dead, kill strays, tell the replica. True when nothing is left below us."""
        nothing = False
        try:
            while (dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)) is not None:
                # Still a zombie: neither its pid nor its group can have been given to anybody else.
                linux.kill_group(dead.si_pid, signal.SIGKILL)
                self._bury(dead.si_pid)
        except ChildProcessError:
            nothing = True
        strays = [] if nothing else [pid for pid in linux.children() if pid not in self._kids]
        for pid in strays:
            # Their attempt is over. With a session of their own they were in no group that we killed.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self._untold and (not strays or boottime() - self._untold_since > _STRAYS_NS):
            for message in self._untold:
                self._send(message)
            self._untold.clear()
        return nothing

    def _bury(self, pid: int) -> None:
        _, status, usage = os.wait4(pid, 0)
        kid = self._kids.pop(pid, None)
        if kid is None:
            return
        if not self._untold:
            self._untold_since = boottime()
        self._untold.append(
            {
                "exited": kid.slot,
                "code": os.waitstatus_to_exitcode(status),
                "why": kid.why,
                "cpu": usage.ru_utime + usage.ru_stime,
                "peak_rss": usage.ru_maxrss * 1024,
            }
        )

    def _send(self, message: dict[str, Any]) -> None:
        self._unsent.append(json.dumps(message).encode())

    def _flush(self) -> None:
        """Never blocks: a stopped replica does not read, and its children's deadlines are kept all the same."""
        with suppress(OSError):
            while self._unsent:
                self._control.send(self._unsent[0], socket.MSG_DONTWAIT)
                self._unsent.pop(0)

    def _end_everything(self) -> NoReturn:
        """The replica is gone: so is everything below it."""
        for pid in self._kids:
            linux.kill_group(pid, signal.SIGKILL)
        while not self._reap():
            self._poll_wake()
        os._exit(0)

    def _poll_wake(self) -> None:
        wake = select.poll()
        wake.register(self._wake, select.POLLIN)
        if wake.poll(20):
            os.read(self._wake, 4096)


def _earlier(one: int | None, other: int) -> int:
    return other if one is None else min(one, other)
