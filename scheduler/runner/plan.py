"""The plan this replica works by: its file's jobs, as the database knows them. Swapped whole, read by several rooms."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from scheduler.core.model import Birth, JobSpec, Overlap
from scheduler.core.policy import decide_due
from scheduler.core.schedule import Due, due, next_after
from scheduler.core.words import NoTick
from scheduler.store.jobs import KnownJob


@dataclass(slots=True, eq=False)
class Planned:
    """A job that this replica may tick.

    `watermark`: as last seen in the database. `next`: the first tick after it, None: none to come. `rest`: why the job
    stands still here: paused, removed, another file's spec is in force, or it is `sick`. Then the calendar could not
    say when it ticks, which must not keep the others from ticking. Moved by the ticker alone. `_following`: the tick
    after `next`, in a tuple once the calendar has been asked for it.
    """

    id: int
    spec: JobSpec
    spec_hash: str
    watermark: datetime
    next: datetime | None = None
    rest: NoTick | None = None
    sick: str | None = None
    _following: tuple[datetime | None] | None = None

    @property
    def at_rest(self) -> bool:
        """Whether it stands still here."""
        return self.rest is not None

    @property
    def no_tick(self) -> NoTick | None:
        """Why there is no next tick; None: there is one."""
        if self.next is not None or self.rest is not None:
            return self.rest
        return NoTick.BY_HAND if self.spec.schedule is None else NoTick.OVER

    def births(self, now: datetime) -> tuple[Birth, ...]:
        """How the ticks that are due come into the world."""
        try:
            return decide_due(self.spec, self._due(now), now)
        except Exception as error:
            self._fall_sick(error)
            return ()

    def _due(self, now: datetime) -> Due:
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
        try:
            self._move(watermark)
        except Exception as error:
            self._fall_sick(error)

    def _move(self, watermark: datetime) -> None:
        if self.next is None or watermark != self.watermark:
            if self._following is not None and watermark == self.next:
                (self.next,) = self._following  # asked for already
            else:
                self.next = None if self.spec.schedule is None else next_after(self.spec.schedule, watermark)
            self.watermark, self._following = watermark, None

    def _fall_sick(self, error: Exception) -> None:
        """It stands still until the plan is read again, which is tried with each heartbeat while a job is at rest."""
        self.stand_down(NoTick.SICK)
        self.sick = f"{type(error).__name__}: {error}"

    def stand_down(self, why: NoTick = NoTick.AT_REST) -> None:
        """Not ours to tick, until the plan is read again."""
        self.next, self.rest = None, why


class PlanInForce:
    """Which jobs this replica holds, under which generation. `version` grows with each swap."""

    def __init__(self, specs: Iterable[JobSpec]) -> None:
        self._specs = _by_name(specs)
        self._lock = threading.Lock()
        self._jobs: dict[int, Planned] = {}
        self.names: dict[int, str] = {}  # of the jobs, by id
        self.replacing: tuple[int, ...] = ()  # those whose newest tick replaces what runs
        self.resumes_at: datetime | None = None  # when the next pause is over
        self.generation = 0
        self.version = 0

    @property
    def specs(self) -> dict[str, JobSpec]:
        """The jobs of this replica's file, by name."""
        return {name: spec for name, (spec, _) in self._specs.items()}

    def watermarks(self) -> dict[int, datetime]:
        """Where the ticker stands, by job id."""
        return {id_: job.watermark for id_, job in self.jobs().items()}

    def swap(
        self,
        known: Sequence[KnownJob],
        generation: int,
        specs: Iterable[JobSpec] | None = None,
        stood: Mapping[int, datetime] | None = None,
    ) -> None:
        """Take the jobs as the database has them now, and `specs`, where the file has others. From one thread.

        `stood`: the `watermarks` before `known` was read. The ticker may have moved on since; only what lies before
        them was forgotten by the database.
        """
        mine = self._specs if specs is None else _by_name(specs)
        stood = self.watermarks() if stood is None else stood
        jobs = {job.id: self._planned(job, *mine[job.name], stood) for job in known if job.name in mine}
        pauses = [job.paused_until for job in known if job.id in jobs and job.paused and job.paused_until is not None]
        with self._lock:
            self._specs, self._jobs, self.generation = mine, jobs, generation
            self.names = {id_: job.spec.name for id_, job in jobs.items()}
            self.replacing = tuple(id_ for id_, job in jobs.items() if job.spec.overlap is Overlap.REPLACE)
            self.resumes_at = min(pauses, default=None)
            self.version += 1

    def _planned(self, job: KnownJob, spec: JobSpec, spec_hash: str, stood: Mapping[int, datetime]) -> Planned:
        old, rest = self._jobs.get(job.id), _rest(job, spec_hash)
        alike = old is not None and not (rest or old.at_rest) and old.spec_hash == spec_hash
        # what a failover has forgotten lies before where the ticker stood: then it has to go back
        if old is not None and alike and job.watermark >= stood.get(job.id, job.watermark):
            old.spec = spec  # its prose may differ; where it stands is the ticker's, who learns by itself what moved on
            return old
        planned = Planned(job.id, spec, spec_hash, job.watermark)
        if rest is not None:
            planned.stand_down(rest)
        else:
            planned.move(job.watermark)
        return planned

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


def _rest(job: KnownJob, spec_hash: str) -> NoTick | None:
    """Why a job that the database has so is not ours to tick."""
    if job.removed:
        return NoTick.ABSENT
    if job.spec_hash != spec_hash:
        return NoTick.SUPERSEDED
    return NoTick.PAUSED if job.paused else None


def _by_name(specs: Iterable[JobSpec]) -> dict[str, tuple[JobSpec, str]]:
    return {spec.name: (spec, spec.hash) for spec in specs}
