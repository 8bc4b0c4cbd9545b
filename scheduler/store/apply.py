"""The plan in the database: which jobs there are, up to where their ticks have rows, whose file is in force.

Each distinct content of the file has a generation, in order of first sight. In force is the newest generation among the
live replicas. `plan_job` says which spec of each job a generation holds, so an older replica may still take the runs of
every job that the newer file left alone. No replica deletes what it does not know: a job that the file in force lacks
is marked removed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from uuid_utils.compat import uuid7

from scheduler.core.errors import DatabaseUnreachable, PlanSuperseded
from scheduler.core.model import JobSpec, Status
from scheduler.core.policy import decide_tick, first_watermark
from scheduler.core.spec import spec_from_dict
from scheduler.store.claims import Owner, Want, claim
from scheduler.store.connect import connect_once, one_line
from scheduler.store.engine import Row
from scheduler.store.pauses import settle_pause
from scheduler.store.replicas import SILENCE, Registration
from scheduler.store.sql import load
from scheduler.store.watchdog import Watchdog, shut

DEADLINE = 30.0  # seconds that a whole application may take


@dataclass(frozen=True, slots=True)
class Applied:
    """What putting a plan in force did. `in_force`: False when a newer one is (`newest`), and nothing was touched.

    `tzdata`: the versions of the zone data that the other live replicas have.
    """

    generation: int
    in_force: bool
    newest: int = 0
    tzdata: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan as the store keeps it.

    `config_hash`: of the file's bytes; `retention`: seconds by group of states. `only`: the one job that is to be put
    in force; whoever executes a single run has no say in the others.
    """

    config_hash: str
    content: str
    retention: dict[str, float]
    jobs: tuple[JobSpec, ...]
    only: str | None = None

    @property
    def key(self) -> str:
        """What has a generation: the file as this version understands it.

        Two versions that read one file differently must not both think that their own reading is in force.
        """
        return hashlib.sha256(" ".join([self.config_hash, *(job.hash for job in self.jobs)]).encode()).hexdigest()[:16]


class Applier:
    """Puts a plan in force: at the start, whenever the database says that something else is, and when it is edited."""

    def __init__(self, database_url: str, plan: PlanFile, me: Registration, watchdog: Watchdog) -> None:
        self._url, self._plan, self._me, self._watchdog = database_url, plan, me, watchdog
        self._connection: psycopg.Connection[Any] | None = None
        self._after = 0
        self.new_id: Callable[[], UUID] = uuid7

    def offer(self, plan: PlanFile, after: int) -> None:
        """Another plan, from the next call on. `after`: the generation that this edit comes from."""
        self._plan, self._after = plan, after

    def __call__(self) -> Applied:
        """Raises DatabaseUnreachable: nothing was done; and PlanSuperseded, for `only`."""
        with connect_once(self._url, "apply") as connection:
            self._connection = connection
            number = self._watchdog.begin(connection, DEADLINE)
            try:
                return apply(connection, self._plan, self._me, self.new_id, self._after)
            finally:
                self._watchdog.end(number)
                self._connection = None

    def cut(self) -> None:
        """Make a call that is on its way fail now, from another thread."""
        connection = self._connection
        if connection is not None:
            shut(connection)


def apply(
    connection: psycopg.Connection[Any], plan: PlanFile, me: Registration, new_id: Callable[[], UUID], after: int = 0
) -> Applied:
    """Register the content and the replica, and put the plan in force unless a newer one is. One transaction.

    `after`: the generation that the file was edited from under a running replica; 0: the replica starts with it.
    Before a spec changes, the ticks that the old one still owed are accounted for, up to the database's now.
    Raises DatabaseUnreachable when the connection broke, or somebody kept a lock for too long: nothing was done.
    """
    application = _Application(connection, plan, new_id)  # what takes long with many jobs, before the transaction
    try:
        with connection.transaction():
            return application.apply(me, after)
    except psycopg.OperationalError as error:
        text = f"the plan could not be put in force: {one_line(error)}"
        raise DatabaseUnreachable(text, may_heal=True) from error  # another replica's turn took too long, or a reset


class _Application:
    """One application of a plan, inside its transaction."""

    def __init__(self, connection: psycopg.Connection[Any], plan: PlanFile, new_id: Callable[[], UUID]) -> None:
        self._connection, self._plan, self._new_id = connection, plan, new_id
        self._texts = {spec.name: json.dumps(spec.to_dict()) for spec in plan.jobs}
        self._plain = {name: json.loads(text) for name, text in self._texts.items()}
        self._key = plan.key
        self._generation = 0
        self._now: datetime

    def run(self, name: str, params: dict[str, Any]) -> list[Row]:
        """Run `sql/<name>.sql` in this transaction."""
        cursor = self._connection.execute(load(name), params or None)
        return cursor.fetchall() if cursor.description else []

    def apply(self, me: Registration, after: int) -> Applied:
        """All of it. Raises PlanSuperseded, which undoes all of it."""
        plan = self._plan
        # two contents seen first at one instant must not get one generation
        self._connection.execute("LOCK TABLE soloist.config IN EXCLUSIVE MODE")
        retention = json.dumps(plan.retention)
        content = {"config_hash": self._key, "content": plan.content, "retention": retention}
        self.run("register_config", {**content, "after": after})
        asked = {"config_hash": self._key, "me": me.id, "silence": SILENCE}
        self._generation, newest, zones, self._now = self.run("read_generation", asked)[0]
        if self._generation >= newest:
            done = self._put_in_force()
        else:
            self._refuse_superseded()
            done = Applied(self._generation, in_force=False, newest=newest)
        self.run(
            "register_plan",
            {
                "generation": self._generation,
                "name": [job.name for job in plan.jobs],
                "spec_hash": [job.hash for job in plan.jobs],
            },
        )
        me.write(self._connection, self._generation, plan.config_hash)
        if done.added or done.changed or done.removed:
            self._connection.execute("SELECT pg_notify('soloist', 'plan')")
        return replace(done, tzdata=tuple(zones or ()))

    def _refuse_superseded(self) -> None:
        """Whoever came for one job must not run another spec of it than the one in force."""
        for spec in self._plan.jobs:
            known = self.run("read_jobs", {"name": [spec.name]}) if spec.name == self._plan.only else []
            if self._plan.only == spec.name and (not known or known[0][2] != spec.hash or known[0][6]):
                raise PlanSuperseded(f"{spec.name}: a newer jobs file is in force, and has another spec of this job")

    def _put_in_force(self) -> Applied:
        only, generation = self._plan.only, self._generation
        specs = [spec for spec in self._plan.jobs if only is None or spec.name == only]
        # who holds the lock of the table of configs alone changes specs: what is read here stays so
        known = {row[1]: row for row in self.run("see_jobs", {})}
        wanted = {spec.name for spec in specs}
        # also those that a generation newer than ours removed or changed: nothing of it is in force any more
        stray = [row for name, row in known.items() if name not in wanted and only is None]
        gone = [row for row in stray if not row[6] or row[4] > generation]
        kept = [(known[spec.name], spec) for spec in specs if spec.name in known]
        stale = [(row, spec) for row, spec in kept if self._differs(row, spec)]
        changed = [(row, spec) for row, spec in stale if row[3] != spec.hash or row[6]]
        # watermarks and pauses do change: those of the jobs concerned are read again under lock, the others tick on
        ids = sorted(row[0] for row in [*gone, *(row for row, _ in stale)])
        locked = self._lock(ids, owing=[row[0] for row in [*gone, *(row for row, _ in changed)]])
        self._settle_accounts([locked[r[0]] for r in [*(row for row, _ in changed), *gone] if not r[6]])
        self._change([(locked[row[0]], spec) for row, spec in stale])
        if gone:
            self.run("remove_jobs", {"id": [row[0] for row in gone], "generation": generation})
        added = [spec for spec in specs if spec.name not in known]
        self._add(added)
        return Applied(
            generation,
            in_force=True,
            added=tuple(spec.name for spec in added),
            changed=tuple(spec.name for _, spec in changed),
            removed=tuple(row[1] for row in gone if not row[6]),
        )

    def _lock(self, ids: list[int], owing: list[int]) -> dict[int, Row]:
        """These jobs, locked, by id. Of those that owe ticks by their old specs, pauses have theirs counted by now."""
        locked = {row[0]: row for row in self.run("lock_jobs", {"id": ids})} if ids else {}
        paused = [locked[id_][1] for id_ in owing if locked[id_][7]]
        for name in paused:
            settle_pause(self, name, self._now, self._new_id)
        return {row[0]: row for row in self.run("lock_jobs", {"id": ids})} if paused else locked

    def _differs(self, row: Row, spec: JobSpec) -> bool:
        """Whether the job's row says anything else than this spec."""
        changed = row[3] != spec.hash or row[6] or row[4] > self._generation
        return bool(changed or row[2] != self._plain[spec.name])

    def _settle_accounts(self, rows: list[Row]) -> None:
        """Give every tick that the old specs owe its row. Born queued: whoever holds the new spec runs them."""
        wants = []
        for id_, _, old, spec_hash, _, watermark, _, paused in rows:
            births = () if paused else decide_tick(spec_from_dict(old), watermark, self._now)
            if not births:
                continue
            queued = (replace(b, status=Status.QUEUED) if b.status is Status.RUNNING else b for b in births)
            wants.append(Want(id_, spec_hash, watermark, tuple((self._new_id(), birth) for birth in queued)))
        if wants:
            nobody = Owner(UUID(int=0), "", 1.0)  # nothing is born running, so nobody owns anything
            claim(self, nobody, wants)

    def _change(self, stale: list[tuple[Row, JobSpec]]) -> None:
        """Write the specs that differ in anything; only a changed hash makes a new generation and a new start."""
        mine = self._generation
        if not stale:
            return
        fresh = [row[3] != spec.hash or row[6] for row, spec in stale]
        self.run(
            "change_jobs",
            {
                "id": [row[0] for row, _ in stale],
                "spec": [self._texts[spec.name] for _, spec in stale],
                "spec_hash": [spec.hash for _, spec in stale],
                "generation": [mine if new else min(r[4], mine) for (r, _), new in zip(stale, fresh, strict=True)],
                "watermark": [self._now if new else r[5] for (r, _), new in zip(stale, fresh, strict=True)],
            },
        )

    def _add(self, added: list[JobSpec]) -> None:
        if not added:
            return
        self.run(
            "add_jobs",
            {
                "name": [spec.name for spec in added],
                "spec": [self._texts[spec.name] for spec in added],
                "spec_hash": [spec.hash for spec in added],
                "watermark": [first_watermark(spec, self._now) for spec in added],
                "generation": self._generation,
            },
        )
