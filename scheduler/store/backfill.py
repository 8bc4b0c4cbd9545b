"""Runs for ticks of the past that have none, because a person asks for them.

Chunks of ticks, a statement each: it can be cut off anywhere and asked again, as what has a run is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile
from uuid import UUID

from scheduler.core.errors import SoloistError
from scheduler.core.model import JobSpec
from scheduler.core.periods import runs_after
from scheduler.core.schedule import COUNTED_AT_MOST, due, run_key, tick_key
from scheduler.store.arrays import instants, plain, texts
from scheduler.store.engine import Refused, Session
from scheduler.store.jobs import FullJob
from scheduler.store.runs import promote
from scheduler.store.visit import patiently

CHUNK = 250
PRIORITY = 100  # regular runs, at 0, come first
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Which ticks, both ends included. `limit`: the oldest so many that have no run; None: all of them."""

    first: datetime
    last: datetime
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Filled:
    """A tick and its run. `what`: created, exists, or would_create; `run_status`: None where there is no run."""

    scheduled_at: datetime
    run_key: str
    what: str
    id: UUID | None
    run_status: str | None


def count_runs(spec: JobSpec, stretch: Stretch) -> tuple[int, bool]:
    """How many runs its ticks make if none has one; True: or more, counting stopped there."""
    if spec.schedule is None:
        return 0, False
    if spec.once_per is None:
        found = due(spec.schedule, stretch.first - _MICROSECOND, stretch.last, 0)
        return found.older, found.capped
    runs = _runs(spec, stretch)
    return sum(1 for _ in islice(runs, COUNTED_AT_MOST)), next(runs, None) is not None


@dataclass(frozen=True, slots=True)
class Backfill:
    """`who` asks for it. `dry_run`: nothing is written, and what would be is told."""

    session: Session
    job: FullJob
    who: str
    new_id: Callable[[], UUID]
    dry_run: bool = False

    def fill(self, stretch: Stretch) -> Iterator[Filled]:
        """Tick by tick, oldest first, as each chunk is written.

        Raises SoloistError when another spec is in force by now: what was made stays. Raises ContactLost and Blocked.
        """
        assert self.job.spec.schedule is not None
        ticks = _ticks(self.job.spec, stretch)
        left = stretch.limit
        while chunk := list(islice(ticks, CHUNK if left is None else min(CHUNK, left))):
            done = self._write(chunk)
            yield from done
            if left is not None:
                left -= sum(one.what != "exists" for one in done)

    def _write(self, chunk: list[tuple[datetime, str, str]]) -> list[Filled]:
        asked = {
            "job": self.job.id,
            "spec_hash": self.job.spec_hash,
            "who": self.who,
            "dry_run": self.dry_run,
            "priority": PRIORITY,
            "scheduled_at": instants(tick for tick, _, _ in chunk),
            "run_key": texts(key for _, key, _ in chunk),
            "tick_key": texts(key for _, _, key in chunk),
            "id": plain(self.new_id() for _ in chunk),
        }
        rows = patiently(lambda: self.session.run("backfill", asked))
        if not rows:
            raise SoloistError(f"{self.job.name} was changed or removed meanwhile: what was made stays; ask again")
        done = [Filled(*row[:-1]) for row in rows]
        if self.job.spec.exclusive and any(one.what == "created" for one in done):
            with suppress(Refused):  # another run became active just now: its end, or the sweeper, promotes
                promote(self.session, [self.job.id])
        return done


def _ticks(spec: JobSpec, stretch: Stretch) -> Iterator[tuple[datetime, str, str]]:
    """Tick, run key, tick key; of the ticks of one period the first."""
    schedule = spec.schedule
    assert schedule is not None
    for tick in _runs(spec, stretch):
        yield tick, run_key(schedule, tick, spec.once_per, spec.timezone), tick_key(schedule, tick)


def _runs(spec: JobSpec, stretch: Stretch) -> Iterator[datetime]:
    return takewhile(lambda tick: tick <= stretch.last, runs_after(spec, stretch.first - _MICROSECOND))
