"""The replica's hold on one child: its channel, its output, its slot in shared memory, the news of its death."""

from __future__ import annotations

import array
import fcntl
import os
import select
import termios
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from scheduler.pool.channel import Channel, ChannelBroken, Message
from scheduler.pool.text import Tail
from scheduler.pool.words import Word, Words, boottime

_PIECE = 64 * 1024
_MOST_AT_ONCE = 1 << 20  # of output, before the answer is looked for again
_LONGEST_POLL_MS = 30_000  # poll's clock stops in a suspend, so look at ours now and then


@dataclass(frozen=True, slots=True)
class Death:
    """How a child ended. `code`: exit code or minus the signal, None = not known; `why`: what we ended it for."""

    code: int | None
    why: str | None
    cpu: float | None = None
    peak_rss: int | None = None


class TimeIsUp(Exception):
    """No answer until the instant that was given."""


Tell = Callable[[dict[str, Any]], None]


class Leash:
    """One child. `begin`, `answer` and `last_output` belong to one thread; `end`, `extend` to any.

    `tell`: sends a message to the zygote. `pid` is 0 until the zygote has forked. Raises OSError without descriptors.
    """

    def __init__(self, slot: int, words: Words, tell: Tell) -> None:
        self.slot = slot
        self.runs = 0
        self.pid = 0
        self.idle_since = 0  # CLOCK_BOOTTIME ns
        self.cpu_before = 0.0
        self.death: Death | None = None
        self.discarded = False
        self.started = threading.Event()  # it lives, or it never will
        self.gone = threading.Event()
        self.tail = Tail()
        self._words = words
        self._tell = tell
        with ExitStack() as undo:  # all or nothing, when descriptors are scarce
            self._output, output = _pipe(undo)
            life, self._life = _pipe(undo)
            end, self._theirs = Channel.pair()
            undo.pop_all()
        self._channel = Channel(end)
        self.gifts = (self._theirs.fileno(), output, life)
        os.set_blocking(self._output, False)
        words.clear(slot)
        self._poll = select.poll()
        self._poll.register(self._channel, select.POLLIN)
        self._poll.register(self._output, select.POLLIN)

    def given(self) -> None:
        """The child's ends are on their way to it: close ours of them."""
        self._theirs.close()
        for fd in self.gifts[1:]:
            os.close(fd)

    def trust(self, until: int) -> None:
        """Clear the slot for a new body that is trusted until `until` (CLOCK_BOOTTIME ns)."""
        self.runs += 1
        self.tail = Tail()
        self._words.clear(self.slot)
        self.extend(until)
        if until < boottime() + 1_500_000_000:
            self._tell({"look": True})  # the zygote looks once a second by itself: too late for this one

    def begin(self, message: Message) -> None:
        """Hand the body over. Raises OSError when the child is gone, TypeError or ValueError when it is not JSON."""
        self._channel.send(message)

    def extend(self, until: int) -> None:
        """Trust the body until `until` (CLOCK_BOOTTIME ns); 0 = there is none."""
        self._words.store(self.slot, Word.DEADLINE, until)

    def cancel(self) -> None:
        """Make `ctx.cancelled` true."""
        self._words.store(self.slot, Word.CANCEL, 1)

    def end(self, why: str, term: float | None, kill: float) -> None:
        """Have the zygote signal the group: TERM after `term` seconds (None: not at all), KILL after `kill`."""
        self._tell({"end": self.slot, "why": why, "term": term, "kill": kill})

    @property
    def begun(self) -> bool:
        """Whether the child took up the body."""
        return self._words.load(self.slot, Word.BEGUN) != 0

    def said(self) -> tuple[int, int | None, str | None] | None:
        """The progress that the body last told."""
        return self._words.said(self.slot)

    def answer(self, until: int | None) -> Message | None:
        """Collect output until the answer is there; None when the child is gone, or speaks gibberish.

        Raises TimeIsUp when `until` (CLOCK_BOOTTIME ns) has come first.
        """
        while True:
            for fd, event in self._poll.poll(_patience(until)):
                if fd == self._output:
                    self._listen(event)
                else:
                    return self._receive()
            if until is not None and boottime() >= until:
                raise TimeIsUp

    def last_output(self) -> None:
        """Take what the pipe holds now. "Until it would block" might never end: a grandchild may go on writing."""
        size = array.array("i", [0])
        fcntl.ioctl(self._output, termios.FIONREAD, size)
        if size[0]:
            self._drain(size[0])

    def close(self) -> None:
        """Close our ends. The child's group is killed by the kernel if it is still there."""
        self._channel.close()
        for fd in (self._output, self._life):
            os.close(fd)

    def died(self, death: Death) -> None:
        """The zygote's news. Wakes whoever waits, also when a fork of the body still holds the channel."""
        self.death = death
        self._channel.shutdown()
        self.gone.set()
        self.started.set()

    def _receive(self) -> Message | None:
        try:
            return self._channel.receive()
        except (ChannelBroken, OSError):
            return None

    def _listen(self, event: int) -> None:
        if event & select.POLLIN:
            self._drain(_MOST_AT_ONCE)
        else:  # nobody holds the other end any more
            self._poll.unregister(self._output)

    def _drain(self, most: int) -> None:
        while most > 0:
            try:
                data = os.read(self._output, min(most, _PIECE))
            except BlockingIOError:
                return
            if not data:
                return
            self.tail.append(data)
            most -= len(data)


def _pipe(undo: ExitStack) -> tuple[int, int]:
    ends = os.pipe2(os.O_CLOEXEC)
    for fd in ends:
        undo.callback(os.close, fd)
    return ends


def _patience(until: int | None) -> int | None:
    if until is None:
        return None
    return max(0, min((until - boottime()) // 1_000_000 + 1, _LONGEST_POLL_MS))
