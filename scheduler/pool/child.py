"""What runs inside a warm child: one body after the other, in the main thread."""

from __future__ import annotations

import faulthandler
import logging
import os
import resource
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from scheduler.core.context import RunContext
from scheduler.pool import linux
from scheduler.pool.baseline import Baseline, reset_signals
from scheduler.pool.body import Terminated, arguments, ending_of, execute, pack_ending, resolve, unpack_info
from scheduler.pool.channel import Channel, Message
from scheduler.pool.door import ChildPort, doors_of_environment
from scheduler.pool.words import Word, Words

OURS = "soloist"
"""Threads whose name begins so belong to Soloist: they may outlive a body."""

_PEAK_KIB = 1024  # how much of an earlier body's peak we bear with


@dataclass(frozen=True, slots=True)
class Cradle:
    """What the zygote gives a child. `root`: where callables are found.

    `channel`, `output`, `replica`, `zygote`: descriptors; the last two are pipes whose other end nobody but the replica
    or the zygote holds. `parent`: the zygote's pid.
    """

    channel: int
    output: int
    replica: int
    zygote: int
    slot: int
    words: Words
    parent: int
    root: Path


def live(cradle: Cradle) -> NoReturn:
    """The whole life of a child, called in the fork. Never returns."""
    code = 70
    try:
        _settle(cradle)
        _Child(cradle).run()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _settle(cradle: Cradle) -> None:
    """A group of its own, which the kernel kills when the replica or the zygote dies, in whatever order."""
    os.setsid()
    linux.adopt_orphans()
    linux.name_process("soloist-child")
    linux.kill_group_at_end(cradle.replica)
    # Opened anew: who is to be signalled belongs to the open file, and all children inherit the same one.
    zygote = os.open(f"/proc/self/fd/{cradle.zygote}", os.O_RDONLY | os.O_CLOEXEC)
    linux.kill_group_at_end(zygote)
    # A dying process closes its files before its children are told, so the group goes with us, not after us.
    linux.die_with_parent(cradle.parent)
    signal.set_wakeup_fd(-1)
    reset_signals()
    _close_others({0, 1, 2, cradle.channel, cradle.output, cradle.replica, zygote})


def _close_others(keep: set[int]) -> None:
    """The zygote's own descriptors: its control socket above all."""
    for fd in [int(name) for name in os.listdir("/proc/self/fd")]:
        if fd not in keep:
            with suppress(OSError):  # the one that listed them
                os.close(fd)


class _Child:
    def __init__(self, cradle: Cradle) -> None:
        self._pid = os.getpid()
        self._words = cradle.words
        self._slot = cradle.slot
        self._root = cradle.root
        self._socket = socket.socket(fileno=cradle.channel)
        self._channel = Channel(self._socket)
        self._armed = False
        self._terminated = False
        self._functions: dict[str, Callable[..., Any]] = {}
        self._tasks = _foreign_tasks()
        self._meter = _Meter()
        self._doors = doors_of_environment()
        signal.signal(signal.SIGTERM, self._on_term)
        self._baseline = Baseline(cradle.output)
        faulthandler.enable(file=2)  # a segfault says where it was, in the attempt's output
        # A fork made by the body must neither answer for it nor hide our death by holding the channel open.
        os.register_at_fork(after_in_child=self._socket.close)

    def run(self) -> None:
        """Until the replica closes the channel."""
        while (message := self._channel.receive()) is not None:
            # From here on the body counts as begun: resolving it may import the user's modules.
            self._words.store(self._slot, Word.BEGUN, 1)
            answer = self._attempt(message)
            if os.getpid() != self._pid:
                self._leave_fork(answer)
            self._channel.send(answer)
            self._baseline.restore()  # now, not before the next body: nobody waits for it

    def _attempt(self, message: Message) -> Message:
        info = unpack_info(message["info"])
        port = ChildPort(info, self._words, self._slot, self._doors)
        context = RunContext(info, port, logging.getLogger(info.job))
        self._meter.begin()
        self._terminated = False

        def call() -> Any:
            function = self._resolve(message["call"])
            return function(context, **arguments(function, message["args"], self._root))

        try:
            with self._term_arrives():
                ending = execute(call)
        except Terminated as late:  # it came between the body's end and the last line of `execute`
            ending = ending_of(late)
        if os.getpid() == self._pid:
            self._words.store(self._slot, Word.ENDING, 0)
        self._baseline.flush()
        cpu, peak, total = self._meter.read()
        return {
            "ending": pack_ending(replace(ending, cpu=cpu, peak_rss=peak)),
            "told": port.told,
            "terminated": self._terminated,
            "left": self._left_behind(),
            "cpu_total": total,
        }

    def _resolve(self, call: str) -> Callable[..., Any]:
        if call not in self._functions:
            self._functions[call] = resolve(call, self._root)
            # Threads that a module starts when it is imported are the module's, not this body's.
            self._tasks = max(self._tasks, _foreign_tasks())
            self._baseline.take()
        return self._functions[call]

    @contextmanager
    def _term_arrives(self) -> Iterator[None]:
        self._armed = True
        try:
            yield
        finally:
            self._armed = False

    def _on_term(self, _number: int, _frame: object) -> None:
        if os.getpid() != self._pid:  # a fork of the body: it inherited this handler, not its meaning
            os._exit(128 + signal.SIGTERM)
        # A TERM that is not ours (systemd signals a whole service at once) must not cut a drain short.
        if self._armed and self._words.load(self._slot, Word.ENDING):
            self._armed = False
            self._terminated = True
            raise Terminated("stopped by Soloist (SIGTERM)")

    def _left_behind(self) -> list[str]:
        """What the body left running. The replica replaces such a child, and all this goes with it."""
        left = []
        if _living_descendants():
            left.append("processes")
        if _foreign_tasks() > self._tasks:
            left.append("threads")
        return left

    def _leave_fork(self, answer: Message) -> NoReturn:
        """The body forked and the fork came back from it: it has nothing more to do here."""
        ending = answer["ending"]
        sys.stderr.write(ending["output_tail"])
        self._baseline.flush()
        code = ending["exit_code"]
        os._exit(code if code is not None else int(ending["outcome"] == "failed"))


def _foreign_tasks() -> int:
    """Threads that are not Soloist's own."""
    tasks = linux.tasks()
    return tasks if tasks == 1 else tasks - sum(one.name.startswith(OURS) for one in threading.enumerate())


def _living_descendants() -> bool:
    """Whether any process is left below us; the dead ones are reaped on the way. We adopt orphans, so none escapes."""
    try:
        while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG) is not None:
            pass
    except ChildProcessError:
        return False
    return True


class _Meter:
    """CPU seconds and peak memory of one body after the other, their own processes included."""

    def __init__(self) -> None:
        self._peak_after_reset = 0
        self.begin()

    def begin(self) -> None:
        """A body begins."""
        own, others = _usages()
        # Or the peak would be that of the hungriest body so far. Not each time: it costs as much as a small body.
        if own.ru_maxrss > self._peak_after_reset + _PEAK_KIB:
            with suppress(OSError), open("/proc/self/clear_refs", "wb", buffering=0) as file:
                file.write(b"5")
            own, others = _usages()
            self._peak_after_reset = own.ru_maxrss
        self._cpu = _seconds(own) + _seconds(others)
        self._others_peak = others.ru_maxrss

    def read(self) -> tuple[float, int, float]:
        """(CPU seconds of the body, its peak in bytes, CPU seconds of this process since its birth).

        A process that the body started counts for the peak if it was the largest so far.
        """
        own, others = _usages()
        peak = max(own.ru_maxrss, others.ru_maxrss if others.ru_maxrss > self._others_peak else 0)
        total = _seconds(own) + _seconds(others)
        return round(total - self._cpu, 6), peak * 1024, total


def _usages() -> tuple[resource.struct_rusage, resource.struct_rusage]:
    return resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)


def _seconds(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime
