"""A stage for tests of the store: jobs with specs, owners, sessions, and the rows as they are."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from pooler import direct
from psycopg.rows import dict_row
from uuid_utils.compat import uuid7

from scheduler.core.events import Bus, Event
from scheduler.core.model import Birth, JobSpec, Status
from scheduler.core.schedule import Every
from scheduler.runner.clock import SystemClock
from scheduler.store import claims, jobs
from scheduler.store.apply import Applied, PlanFile, apply
from scheduler.store.claims import ClaimAnswer, Owner, Want
from scheduler.store.connect import connect
from scheduler.store.contact import Contact
from scheduler.store.engine import Session
from scheduler.store.jobs import KnownJob
from scheduler.store.replicas import Registration
from scheduler.store.watchdog import Watchdog

BASE = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """An instant of the past, where the ticks of these tests lie."""
    return BASE + timedelta(seconds=seconds)


def spec(name: str = "a", **fields: Any) -> JobSpec:
    return JobSpec(name=name, schedule=Every(1.0), call="effects:append", **fields)


def birth(seconds: float, status: Status = Status.RUNNING, **fields: Any) -> Birth:
    key = at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")
    return replace(Birth(at(seconds), key, key, status), **fields)


def registration(content: str = "1", name: str = "r", **fields: Any) -> Registration:
    me = Registration(uuid7(), name, "a-host", 1, "0", "2026", 16, 0.0)
    return replace(me, **fields)


@dataclass
class Scene:
    """`url`: a migrated database of this test's own."""

    url: str
    events: list[Event] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = SystemClock()
        self.watchdog = Watchdog(self.clock)
        self.bus = Bus()
        self.bus.subscribe(self.events.append)
        self.facts = psycopg.connect(direct(self.url), autocommit=True, row_factory=dict_row)
        self.mine = self.session()

    def leave(self) -> None:
        """Close what is open; the database is dropped as it is, perhaps while replicas still work in it."""
        for session in self.sessions:
            session.close()
        self.facts.close()

    def close(self) -> None:
        """Leave an empty database, for the next test to use."""
        for session in self.sessions:
            session.close()
        for table in ("attempt", "run", "plan_job", "job", "replica", "config", "audit"):
            self.sql(f"DELETE FROM soloist.{table}")
        self.facts.close()

    def session(self, room: str = "test") -> Session:
        made = Session(self.url, room, self.watchdog, Contact(self.bus, room, self.clock))
        self.sessions.append(made)
        return made

    def owner(self, name: str = "r", lease: float = 60.0) -> Owner:
        """A replica that is registered."""
        who = Owner(uuid.UUID(str(uuid7())), name, lease)
        self.sql(
            "INSERT INTO soloist.replica (id, name, host, pid, version, config_hash, generation, tzdata, seats, serves)"
            " VALUES (%s, %s, 'h', 1, '0', '1', 1, '2026', 16, true)",
            who.id,
            name,
        )
        return who

    def apply(self, *specs: JobSpec, content: str = "1", me: Registration | None = None) -> Applied:
        """Put a plan in force, as a replica that starts does."""
        with connect(self.url, "apply") as connection:
            plan = PlanFile(content, content, {}, specs)
            return apply(connection, plan, me or registration(content), uuid7)

    def jobs(self, *specs: JobSpec) -> dict[str, KnownJob]:
        """Jobs whose every tick up to BASE has a row."""
        self.apply(*specs)
        self.sql("UPDATE soloist.job SET watermark = %s", BASE)
        return self.known()

    def known(self) -> dict[str, KnownJob]:
        return {job.name: job for job in jobs.read_jobs(self.mine)}

    def want(self, of: JobSpec, *births: Birth, seen: datetime | None = None) -> Want:
        job = self.known()[of.name]
        ids = tuple((uuid.UUID(str(uuid7())), one) for one in births)
        return Want(job.id, of.hash, seen or job.watermark, ids)

    def claim(self, owner: Owner, *wants: Want) -> ClaimAnswer:
        return claims.claim(self.mine, owner, wants)

    def running(self, owner: Owner, of: JobSpec, seconds: float = 1) -> uuid.UUID:
        """A run of this job in the hands of `owner`."""
        (made,) = self.claim(owner, self.want(of, birth(seconds))).made
        assert made.status is Status.RUNNING
        return made.id

    def queued(self, of: JobSpec, seconds: float = 1) -> uuid.UUID:
        (made,) = self.claim(self.owner(), self.want(of, birth(seconds, Status.QUEUED))).made
        assert made.status is Status.QUEUED
        return made.id

    def expire(self, *runs: uuid.UUID) -> None:
        """The leases of these runs are over."""
        self.sql(
            "UPDATE soloist.run SET claimed_until = clock_timestamp() - interval '1 s' WHERE id = ANY (%s)", [*runs]
        )

    def sql(self, statement: str, *params: Any) -> list[dict[str, Any]]:
        cursor = self.facts.execute(statement, params or None)  # type: ignore[call-overload]
        return cursor.fetchall() if cursor.description else []

    def row(self, run: uuid.UUID) -> dict[str, Any]:
        return self.sql("SELECT * FROM soloist.run WHERE id = %s", run)[0]

    def rows(self, job: str | None = None) -> list[dict[str, Any]]:
        """All runs (of a job), in the order of their ticks."""
        return self.sql(
            "SELECT run.*, job.name FROM soloist.run JOIN soloist.job ON job.id = run.job"
            " WHERE %s::text IS NULL OR job.name = %s ORDER BY scheduled_at, run.id",
            job,
            job,
        )

    def attempts(self, run: uuid.UUID) -> list[dict[str, Any]]:
        return self.sql("SELECT * FROM soloist.attempt WHERE run = %s ORDER BY number", run)
