"""The plan this replica works by: its file's jobs, as the database knows them. Swapped whole, read by several rooms."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from scheduler.core.model import JobSpec, Overlap
from scheduler.core.schedule import Due, due, next_after
from scheduler.store.jobs import KnownJob


@dataclass(slots=True, eq=False)
class Planned:
    """A job that this replica may tick.

    `watermark`: as last seen in the database. `next`: the first tick after it, None: none to come. `at_rest`: the job
    stands still here (paused, removed, or another file's spec is in force). Moved by the ticker alone.
    `_following`: the tick after `next`, in a tuple once the calendar has been asked for it.
    """

    id: int
    spec: JobSpec
    spec_hash: str
    watermark: datetime
    next: datetime | None = None
    at_rest: bool = False
    _following: tuple[datetime | None] | None = None

    def due(self, now: datetime) -> Due:
        """The ticks in (watermark, now]: most often `next` alone, which costs one look at the calendar."""
        if self.spec.schedule is None or self.next is None or self.next > now:
            return Due()
        if self._following is None:
            self._following = (next_after(self.spec.schedule, self.next),)
        (following,) = self._following
        if following is None or following > now:
            return Due((self.next,))
        return due(self.spec.schedule, self.watermark, now, max(1, self.spec.misfire.limit))

    def move(self, watermark: datetime) -> None:
        """The watermark is here; the calendar is asked only when it changed."""
        if self.next is None or watermark != self.watermark:
            if self._following is not None and watermark == self.next:
                (self.next,) = self._following  # asked for already
            else:
                self.next = None if self.spec.schedule is None else next_after(self.spec.schedule, watermark)
            self.watermark, self._following = watermark, None

    def stand_down(self) -> None:
        """Not ours to tick, until the plan is read again."""
        self.next, self.at_rest = None, True


class PlanInForce:
    """Which jobs this replica holds, under which generation. `version` grows with each swap."""

    def __init__(self, specs: Iterable[JobSpec]) -> None:
        self._specs = {spec.name: (spec, spec.hash) for spec in specs}
        self._lock = threading.Lock()
        self._jobs: dict[int, Planned] = {}
        self.names: dict[int, str] = {}  # of the jobs, by id
        self.replacing: tuple[int, ...] = ()  # those whose newest tick replaces what runs
        self.generation = 0
        self.version = 0

    def swap(self, known: Sequence[KnownJob], generation: int) -> None:
        """Take the jobs as the database has them now."""
        jobs = {}
        for job in known:
            mine = self._specs.get(job.name)
            if mine is None:
                continue
            spec, spec_hash = mine
            planned = Planned(job.id, spec, spec_hash, job.watermark)
            if job.at_rest or job.spec_hash != spec_hash:
                planned.stand_down()
            else:
                planned.move(job.watermark)
            jobs[job.id] = planned
        names = {id_: job.spec.name for id_, job in jobs.items()}
        replacing = tuple(id_ for id_, job in jobs.items() if job.spec.overlap is Overlap.REPLACE)
        with self._lock:
            self.replacing = replacing
            self._jobs, self.names, self.generation, self.version = jobs, names, generation, self.version + 1

    def differs_from(self, known: Sequence[KnownJob]) -> bool:
        """Whether the database has another spec of a job of ours in force, or none."""
        there = {job.name: job for job in known}
        return any(
            name not in there or there[name].removed or there[name].spec_hash != spec_hash
            for name, (_, spec_hash) in self._specs.items()
        )

    def any_at_rest(self) -> bool:
        """Whether a job of ours stands still."""
        return any(job.at_rest for job in self.jobs().values())

    def jobs(self) -> dict[int, Planned]:
        """The jobs by their ids in the database."""
        with self._lock:
            return self._jobs

    def get(self, job_id: int) -> Planned | None:
        """The job with this id, or None when this replica's file has it not."""
        return self.jobs().get(job_id)
