"""Sees that the jobs file was edited, and takes the edit whole or not at all.

What counts is the content: its hash is compared every two seconds, and at once when the folder says that something in
it changed. The folder is watched, never the file: an editor that replaces the file, and a ConfigMap that swaps a link
above it, leave a watch on the file with what was there before.

A content is looked at once it has stood still for a moment, so that nobody reads a file that is being written. What
may be the first half of one (the beginning of the former content, an empty file, none at all) has to stand for longer.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import watchfiles

from scheduler.config.check import check_draft
from scheduler.config.jobs_file import examine
from scheduler.config.plan import Plan
from scheduler.config.yaml_reader import LARGEST
from scheduler.core.errors import ConfigInvalid, Problem
from scheduler.core.events import PlanRefused, PlanRestored, PlanUnread
from scheduler.runner.edits import Edited
from scheduler.runner.room import Loop, Room

POLL = 2.0  # seconds between two looks where nothing tells of a change
STILL = 0.3  # seconds that a content must stand unchanged
HALF = 2.5  # the same for what may be half of one
RESTLESS = 4.0  # seconds after which of a file that is written all the time
BRIEF = 0.05  # so much stillness is enough: longer than a write takes
LATE = 0.25  # seconds after which a look is late: the machine stood still, or this thread had other work
TOLD = 20  # problems that are told of
LAST_LOOK = 1.0  # seconds that a look may take yet when the replica stops
SLOW = 20.0  # seconds after which a look that goes on is told of: longer than the largest file takes


@dataclass(frozen=True, slots=True)
class Source:
    """Where the plan came from: the file, the folder of its callables, and its name in messages."""

    path: Path
    root: Path
    name: str


@dataclass(slots=True)
class _Seen:
    """A content that is not settled yet: since when it stands so, and since when there has been any change at all.

    `due`: when it is to be looked at again. `doubted`: one such look came late, and was not believed.
    """

    text: bytes | None
    since: float
    restless_since: float
    due: float
    doubted: bool = False


class Reloader:
    """It has a thread of its own, for a look may never end: the disk hangs, or the import of a module that an edit
    names. Whoever takes the edits must neither stand still nor be kept from stopping by that.

    `ask` (a signal), `edit` and `trouble` may be called from any thread; `look` is for that of its own.

    `refusal`: why a sound plan cannot be taken here all the same, or None. `making`: entered while one is made.
    """

    def __init__(self, source: Source, plan: Plan, room: Room) -> None:
        self._source, self._room = source, room
        self._good = plan.content.encode()  # what this replica works by
        self._settled: str | None = plan.content_hash  # the content that was looked at last; None: no file
        self._seen: _Seen | None = None
        self._asked = threading.Event()
        self._ended = threading.Event()
        self._edits: deque[Edited] = deque(maxlen=1)  # the newest counts
        self._since: float | None = None  # when the look that goes on began, by CLOCK_BOOTTIME
        self._unread: float | None = None  # the same, of the one that was told of
        self.problem: str | None = None
        self._news: Callable[[], None] = lambda: None
        self._looks: Loop | None = None
        self.making: Callable[[], AbstractContextManager[None]] = nullcontext
        self.refusal: Callable[[Plan], str | None] = lambda _plan: None

    def ask(self) -> None:
        """Look at the file at the next step as it stands, whether it changed or not."""
        self._asked.set()
        if self._looks is not None:
            self._looks.wake()

    def start(self, news: Callable[[], None], failed: Callable[[], None]) -> None:
        """Look at the file now and then, and when its folder changes. `news`: called when `edit` or `trouble` have
        some; `failed`: when a look failed.
        """
        self._news = news
        self._looks = Loop("reloader", self._step, self._room, failed)
        self._looks.start()
        threading.Thread(target=self._watch, args=(self._looks.wake,), name="watch", daemon=True).start()

    def close(self) -> None:
        """End all that. A look that never ends is left behind: nobody waits for it any more."""
        self._ended.set()
        if self._looks is not None:
            self._looks.ask_to_stop()
            self._looks.join(LAST_LOOK)

    def _step(self) -> float:
        """One look; returns seconds to the next."""
        self._since, problem = self._room.clock.boottime(), self.problem
        try:
            edit, wait = self.look()
        finally:
            self._since = None
        if edit is not None:
            self._edits.append(edit)
        if edit is not None or self.problem != problem or self._unread is not None:
            self._news()
        return wait

    def edit(self) -> Edited | None:
        """The newest edit that nobody has had yet."""
        with suppress(IndexError):
            return self._edits.pop()
        return None

    def trouble(self) -> str | None:
        """Why the file is not what this replica works by; a look that does not end is told of once."""
        since = self._since
        if since is None or (after := self._room.clock.boottime() - since) < SLOW:
            self._unread = None
            return self.problem
        if since != self._unread:
            self._unread = since
            self._room.bus.publish(PlanUnread(replica=self._room.owner.name, file=self._source.name, after=after))
        return f"{self._source.name}: a look at it does not end (its disk, or the import of a module that it names)"

    def look(self) -> tuple[Edited | None, float]:
        """The edit, where there is a new one and it is in order; and seconds to the next look."""
        now, text, asked = self._room.clock.boottime(), self._read(), self._asked.is_set()
        read_at = self._room.clock.boottime()  # it may be later by a pause, in which nobody saw the content stand still
        self._asked.clear()
        digest = None if text is None else _hash(text)
        if not asked:
            if digest == self._settled:
                self._seen = None
                return None, POLL
            if (wait := self._unsettled(text, now, read_at)) > 0:
                return None, wait
        self._seen, self._settled = None, digest
        return self._take(text), POLL

    def _unsettled(self, text: bytes | None, now: float, read_at: float) -> float:
        """Seconds for which this content has to stand still yet. It was read between `now` and `read_at`."""
        if self._seen is None or self._seen.text != text:
            restless = now if self._seen is None else self._seen.restless_since
            self._seen = _Seen(text, read_at, restless, read_at)
        half = text is None or (len(text) < len(self._good) and self._good.startswith(text))
        restless = now - self._seen.restless_since >= RESTLESS
        still = HALF if half else BRIEF if restless else STILL
        if now > self._seen.due + LATE and not self._seen.doubted:
            # whoever writes may have stood still as well, and needs a moment to go on. Once: we may be slow each time
            self._seen.doubted, self._seen.since = True, max(self._seen.since, now + min(STILL, still) - still)
        self._seen.due = self._seen.since + still
        return self._seen.due - now

    def _read(self) -> bytes | None:
        with suppress(OSError), self._source.path.open("rb") as file:
            return file.read(LARGEST + 1)
        return None

    def _take(self, text: bytes | None) -> Edited | None:
        """The content as an edit, or None: it is what we work by, or it is refused and that is said."""
        if text == self._good:
            if self.problem is not None:
                self.problem = None
                self._room.bus.publish(PlanRestored(replica=self._room.owner.name, file=self._source.name))
            return None
        try:
            with self.making():
                plan = self._checked(text)
        except ConfigInvalid as error:
            self._refuse(error.problems)
            return None
        assert text is not None
        self._good, self.problem = text, None
        return Edited(plan.name, plan.content, plan.content_hash, plan.jobs, plan.retention.to_dict())

    def _checked(self, text: bytes | None) -> Plan:
        """Raises ConfigInvalid."""
        source = self._source
        if text is None:
            raise ConfigInvalid((Problem(source.name, 0, 0, "", "cannot be read, or is gone"),))
        made = examine(text, source.name, source.root)
        problems = check_draft(made)
        if problems:
            raise ConfigInvalid(problems)
        if (why := self.refusal(made.plan)) is not None:
            raise ConfigInvalid((Problem(source.name, 0, 0, "", why),))
        return made.plan

    def _refuse(self, problems: tuple[Problem, ...]) -> None:
        texts = [str(problem) for problem in problems]
        more = f"; {len(texts) - 1} more" if len(texts) > 1 else ""
        self.problem = f"{texts[0][:500]}{more}"
        if len(texts) > TOLD:
            texts[TOLD:] = [f"{len(texts) - TOLD} more"]
        refused = PlanRefused(replica=self._room.owner.name, file=self._source.name, problems=tuple(texts))
        self._room.bus.publish(refused)

    def _watch(self, wake: Callable[[], None]) -> None:
        """Without it (a file system that tells nothing, no more watches to be had) the looks go on by themselves."""
        file = self._source.path.absolute()
        # it tells each change at INFO; our own log may be written in that very folder, and would go on for ever
        logging.getLogger("watchfiles").setLevel(logging.WARNING)
        with suppress(OSError, RuntimeError):
            changes = watchfiles.watch(
                file.parent,
                recursive=False,
                stop_event=self._ended,
                watch_filter=lambda _, path: _concerns(path, file.name),
                debounce=100,
                rust_timeout=2000,
            )
            for _ in changes:
                wake()


def _concerns(path: str, name: str) -> bool:
    """Whether a change of this entry of the folder may be one of the file: its own, or of a ConfigMap's `..data`."""
    changed = os.path.basename(path)
    return changed == name or changed.startswith("..")


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]
