"""Who plays in the state machine: replicas that know only what they have read, and the files that they may hold."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from own_time import START
from scene import Scene, registration
from uuid_utils.compat import uuid7

from scheduler.core.model import (
    AfterCrash,
    Birth,
    Claim,
    FirstSight,
    JobSpec,
    Misfire,
    MisfirePolicy,
    Overlap,
    Period,
    RetryPolicy,
    Status,
    Trigger,
    first_claim,
)
from scheduler.core.policy import decide_tick
from scheduler.core.schedule import At, Every
from scheduler.runner.single import tick_of
from scheduler.store import claims, jobs, replicas
from scheduler.store.apply import Applied, PlanFile, apply
from scheduler.store.claims import Owner, Request, Want
from scheduler.store.jobs import KnownJob
from scheduler.store.replicas import Counts, Registration

LEASE = 25.0
_MISFIRE = Misfire(grace=15.0, within=100.0, limit=3)
_ALL, _NEVER = (replace(_MISFIRE, policy=policy) for policy in (MisfirePolicy.ALL, MisfirePolicy.SKIP))
_TWICE = RetryPolicy(2, 5.0, 60.0)


def _job(name: str, every: float = 10.0, **fields: Any) -> JobSpec:
    more: dict[str, Any] = {"misfire": _MISFIRE, "retry": RetryPolicy(1), **fields}
    return JobSpec(name=name, schedule=Every(every), call="effects:append", **more)


PLAIN = {
    "skip": _job("skip", pause_after_failures=2),
    "one": _job("one", overlap=Overlap.QUEUE, misfire=_ALL, jitter=4.0, retry=_TWICE),
    "each": _job("each", overlap=Overlap.QUEUE_ALL, misfire=_ALL, after_crash=AfterCrash.FAIL),
    "newest": _job("newest", overlap=Overlap.REPLACE),
    "free": _job("free", overlap=Overlap.ALLOW, misfire=_NEVER, crash_limit=2, retry=_TWICE),
    "daily": _job("daily", 20.0, once_per=Period.DAY, misfire=_ALL),
    "once": replace(
        _job("once"), schedule=At(START + timedelta(seconds=45)), misfire=replace(_MISFIRE, first_sight=FirstSight.RUN)
    ),
}


def _edited(**edits: dict[str, Any] | None) -> tuple[JobSpec, ...]:
    """All jobs, with these fields changed; None: the job is gone."""
    jobs = []
    for name, plain in PLAIN.items():
        edit = edits.get(name, {})
        if edit is not None:
            jobs.append(replace(plain, **edit))
    return tuple(jobs)


_OTHER = {"timeout": 9.0}
FILES: tuple[tuple[JobSpec, ...], ...] = (
    _edited(),
    _edited(skip={"schedule": Every(7.0)}, each=None, newest=_OTHER, daily={"schedule": Every(30.0)}),
    _edited(one=None, newest={"overlap": Overlap.SKIP}, free=_OTHER, once=None),
    _edited(skip={"description": "prose"}, one=_OTHER, each={"overlap": Overlap.SKIP}, free=None, daily=_OTHER),
    _edited(skip=None, newest=None, free={"schedule": Every(13.0, START + timedelta(seconds=3))}, daily=None),
)
"""They differ in schedules, in policies, in what makes no tick differ, in prose alone, and in which jobs there are."""


@dataclass
class Player:
    """A replica. `known`: the jobs as it last read them; `held`: what it believes to run."""

    scene: Scene
    applying: psycopg.Connection[Any]
    name: str
    file: int
    me: Registration = field(default_factory=registration)
    after: int = 0
    generation: int = 0
    known: dict[str, KnownJob] = field(default_factory=dict)
    held: dict[UUID, tuple[Claim, JobSpec]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.me = replace(self.me, id=new_id(), name=self.name, lease=LEASE)
        self.owner = Owner(self.me.id, self.name, LEASE)

    @property
    def specs(self) -> dict[str, JobSpec]:
        return {spec.name: spec for spec in FILES[self.file]}

    def apply(self) -> Applied:
        """Put its file in force, if no newer one is, and read the jobs."""
        text = str(self.file)
        plan = PlanFile(text, text, {}, FILES[self.file])
        applied = apply(self.applying, plan, self.me, new_id, self.after)
        self.generation = applied.generation
        self.read()
        return applied

    def read(self) -> None:
        self.known = {job.name: job for job in jobs.read_jobs(self.scene.mine) if job.name in self.specs}

    def beat(self) -> None:
        replicas.heartbeat(self.scene.mine, self.me.id, 0.0, Counts())

    def claim(self, now: datetime, seats: int) -> None:
        """Claim what is due by its own clock and by what it knows, which may be stale in every way."""
        wants, granted = [], seats
        for job in self.known.values():
            spec, births = self.specs[job.name], []
            for birth in decide_tick(spec, job.watermark, now):
                wanted = birth.status is Status.RUNNING
                births.append(replace(birth, status=Status.QUEUED) if wanted and granted <= 0 else birth)
                granted -= wanted
            if births:
                wants.append(Want(job.id, spec.hash, job.watermark, tuple((new_id(), birth) for birth in births)))
        answer = claims.claim(self.scene.mine, self.owner, wants)
        self._seat(wants, {one.id: one.status for one in answer.made})
        marks = {want.job_id: want.births[-1][1].scheduled_at for want in wants}
        for name, job in self.known.items():
            if job.id in answer.moved:
                self.known[name] = replace(job, watermark=marks[job.id])

    def _seat(self, wants: list[Want], made: dict[UUID, Status]) -> None:
        names = {job.id: job.name for job in self.known.values()}
        for want in wants:
            spec = self.specs[names[want.job_id]]
            for id_, birth in want.births:
                if made.get(id_) is Status.RUNNING:
                    self.held[id_] = _first(spec, id_, birth), spec

    def dequeue(self, seats: int) -> list[UUID]:
        names = {job.id: job.name for job in self.known.values()}
        taken = claims.dequeue(self.scene.mine, self.owner, self.generation, seats, names)
        for _, claim in taken:
            self.held[claim.id] = claim, self.specs[claim.job]
        return [claim.id for _, claim in taken]


def _first(spec: JobSpec, id_: UUID, birth: Birth) -> Claim:
    return first_claim(spec, id_, birth.run_key, birth.scheduled_at, birth.trigger)


def new_id() -> UUID:
    return UUID(str(uuid7()))


def pod_request(player: Player, spec: JobSpec, at: datetime) -> Request:
    """What a CronJob's pod asks for."""
    tick = tick_of(spec, at)
    return Request(
        id=new_id(),
        job=spec.name,
        run_key=tick.run_key,
        trigger=Trigger.CRONJOB,
        triggered_by=player.name,
        tick_key=tick.tick_key,
        scheduled_at=at,
        if_blocked=Status.SKIPPED,
    )


def cancel(scene: Scene, run: UUID) -> None:
    """What runs is asked to end; what has not begun ends here."""
    scene.sql(
        "UPDATE soloist.run SET cancel_requested_at = clock_timestamp(), ready_at = NULL,"
        " status = CASE status WHEN 'running' THEN 'running' ELSE 'cancelled' END,"
        " finished_at = CASE status WHEN 'running' THEN NULL ELSE clock_timestamp() END WHERE id = %s",
        run,
    )
