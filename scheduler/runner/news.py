"""What has changed between two looks at the jobs, told once: pauses, sick schedules, the file in force, zone data."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from scheduler.core.events import FileInForce, FileSuperseded, JobPaused, JobResumed, JobSick, ZoneDataDiffers
from scheduler.core.model import SOLOIST
from scheduler.runner.plan import Planned
from scheduler.runner.room import Room
from scheduler.store.apply import Applied
from scheduler.store.jobs import KnownJob
from scheduler.store.pauses import Resumed


class News:
    """Remembers what was told last. It belongs to one thread."""

    def __init__(self, room: Room) -> None:
        self._bus, self._replica = room.bus, room.owner.name
        self._paused: dict[str, KnownJob] = {}
        self._resumed: set[str] = set()  # by us, and told
        self._sick: set[str] = set()
        self._behind = False  # a newer file is in force, and that was told
        self._zones: tuple[str, ...] = ()

    def pauses(self, known: Sequence[KnownJob], names: Container[str]) -> None:
        """Who was paused or resumed. What Soloist did by itself is told by the replica that did it."""
        paused = {job.name: job for job in known if job.paused and not job.removed and job.name in names}
        for name, job in paused.items():
            before = self._paused.get(name)
            if job.paused_by != SOLOIST and (before is None or before.pause != job.pause):
                by, reason = job.paused_by or "", job.paused_reason or ""
                self._bus.publish(
                    JobPaused(replica=self._replica, job=name, by=by, reason=reason, until=job.paused_until)
                )
        ticking = {job.name for job in known if not (job.paused or job.removed) and job.name in names}
        for name in (self._paused.keys() & ticking) - self._resumed:  # what was removed is no longer paused either
            self._bus.publish(JobResumed(replica=self._replica, job=name))
        self._paused, self._resumed = paused, set()

    def resumed(self, ended: Sequence[Resumed]) -> None:
        """Pauses that this replica has ended, as they were to end."""
        for one in ended:
            reason = "" if one.until is None else f"its pause was until {one.until.isoformat()}"
            facts = {"by": SOLOIST, "reason": reason, "job": one.job}
            self._bus.publish(JobResumed(replica=self._replica, **facts, missed=one.missed, capped=one.capped))
        self._resumed = {one.job for one in ended}

    def sick(self, jobs: Iterable[Planned]) -> None:
        """Jobs whose schedules cannot be worked out: once for each, not at each look."""
        sick = {job.spec.name: job.sick for job in jobs if job.sick is not None}
        for name in sick.keys() - self._sick:
            self._bus.publish(JobSick(replica=self._replica, job=name, error=sick[name]))
        self._sick = set(sick)

    def standing(self, applied: Applied, *, told: bool) -> None:
        """Whether our file is in force: where that has changed. `told`: the line about an edit has it already."""
        behind = not applied.in_force
        if behind and not (self._behind or told):
            self._bus.publish(
                FileSuperseded(replica=self._replica, generation=applied.generation, newest=applied.newest)
            )
        if self._behind and not (behind or told):
            self._bus.publish(FileInForce(replica=self._replica, generation=applied.generation))
        self._behind = behind

    def zones(self, mine: str, others: Sequence[str]) -> None:
        """The versions of the zone data that other live replicas have, where they differ."""
        differing = tuple(version for version in others if version != mine)
        if differing and differing != self._zones:
            self._bus.publish(ZoneDataDiffers(replica=self._replica, mine=mine, others=differing))
        self._zones = differing
