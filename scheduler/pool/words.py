"""Shared memory between replica, zygote and children: per child one slot of eight words and a short note.

Each word is one aligned 8-byte store, so nobody needs a lock: not the replica's keeper, which extends a deadline once a
second, and not the zygote, which reads it while the replica may be frozen.
"""

from __future__ import annotations

import mmap
import os
import time
from enum import IntEnum

WORDS = 8
NOTE_BYTES = 128
SLOT_BYTES = WORDS * 8 + NOTE_BYTES
_MOST = 2**63 - 1
FOREVER = 9 * 10**18  # ns: a deadline for a body that goes on through lost contact
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Word(IntEnum):
    """The words of a slot. Written by: R the replica, Z the zygote, C the child."""

    DEADLINE = 0  # R: CLOCK_BOOTTIME nanoseconds until which the body is trusted; 0 = no body
    ENDING = 1  # Z: 1 = a TERM that comes now is ours
    BEGUN = 2  # C: 1 = the child took up the body
    CANCEL = 3  # R: 1 = `ctx.cancelled`
    SAID = 4  # C: grows by 2 with every `ctx.progress`; odd while one is being written
    DONE = 5  # C
    TOTAL = 6  # C: -1 = not said
    NOTE = 7  # C: length of the note in bytes; -1 = no note


def boottime() -> int:
    """CLOCK_BOOTTIME in nanoseconds: the one place in this package that reads a clock.

    Zygote and child are processes of their own, so the replica's Clock cannot be handed to them. All of them must
    compare with one and the same clock, and it must go on while the machine is suspended. Other systems than Linux
    have no such clock and no children: CLOCK_MONOTONIC is enough for their threads.
    """
    return time.clock_gettime_ns(_CLOCK)


class Words:
    """The slots, mapped from a memory file that zygote and children inherit."""

    def __init__(self, fd: int, slots: int) -> None:
        self._bytes = memoryview(mmap.mmap(fd, slots * SLOT_BYTES))
        self._words = self._bytes.cast("q")

    @staticmethod
    def create(slots: int) -> int:
        """A new memory file with room for `slots` slots, all zero; returns its descriptor."""
        fd = os.memfd_create("soloist-words")
        os.truncate(fd, slots * SLOT_BYTES)
        return fd

    def load(self, slot: int, word: Word) -> int:
        """Read one word."""
        return self._words[slot * SLOT_BYTES // 8 + word]

    def store(self, slot: int, word: Word, value: int) -> None:
        """Write one word."""
        self._words[slot * SLOT_BYTES // 8 + word] = value

    def clear(self, slot: int) -> None:
        """All words of a slot to zero, for its next body."""
        start = slot * SLOT_BYTES
        self._bytes[start : start + WORDS * 8] = bytes(WORDS * 8)

    def say(self, slot: int, done: int, total: int | None, note: str | None) -> None:
        """Write progress. Numbers are held to 63 bits, a note to 128 bytes of UTF-8."""
        said = self.load(slot, Word.SAID)
        self.store(slot, Word.SAID, said + 1)
        self.store(slot, Word.DONE, _fit(done))
        self.store(slot, Word.TOTAL, -1 if total is None else _fit(total))
        text = b"" if note is None else note.encode("utf-8", "replace")[:NOTE_BYTES]
        start = slot * SLOT_BYTES + WORDS * 8
        self._bytes[start : start + len(text)] = text
        self.store(slot, Word.NOTE, -1 if note is None else len(text))
        self.store(slot, Word.SAID, said + 2)

    def said(self, slot: int) -> tuple[int, int | None, str | None] | None:
        """What was last said: (done, total, note), or None if nothing was, or if it is being written just now."""
        before = self.load(slot, Word.SAID)
        if before == 0 or before % 2:
            return None
        done, total, size = (self.load(slot, word) for word in (Word.DONE, Word.TOTAL, Word.NOTE))
        start = slot * SLOT_BYTES + WORDS * 8
        text = bytes(self._bytes[start : start + max(0, min(size, NOTE_BYTES))])
        if self.load(slot, Word.SAID) != before:
            return None
        # "ignore": a note that was cut may end in half a character
        note = None if size < 0 else text.decode("utf-8", "ignore")
        return done, None if total < 0 else total, note


def _fit(number: int) -> int:
    return max(0, min(int(number), _MOST))
