"""The rooms of one replica, wired as ever and moved by hand, on the far side of a proxy: only what is meant is cut."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from patience import PATIENT, connect_deadline
from proxy import Proxy
from replicas import HERE, eventually, jobs_file
from scene import Scene

from scheduler.app import Soloist
from scheduler.config.jobs_file import parse
from scheduler.config.settings import Settings
from scheduler.core.events import Event
from scheduler.core.model import Ending, Outcome, Status
from scheduler.core.policy import Decision, decide_tick
from scheduler.store import claims, jobs, runs
from scheduler.store.claims import Want
from scheduler.store.engine import ContactLost
from scheduler.store.runs import Settlement

TICK = "2026-01-01T00:00:00+00:00"


class Rooms:
    """One replica without its loops, on the far side of a proxy. `facts` looks at the database past it.

    `settings`: of the replica; with a `direct_database_url` its dedicated session leads past the proxy.
    """

    def __init__(self, url: str, folder: Path, **settings: Any) -> None:
        self.facts, self.proxy, self.events = Scene(url), Proxy(url), list[Event]()
        self.effects, self.gate = folder / "effects", folder / "gate"
        args = {"path": str(self.effects), "gate": str(self.gate)}
        work = {"call": "effects:hold", "at": TICK, "isolation": "thread", "misfire": {"within": "3650d"}, "args": args}
        plan = parse(jobs_file(work=work).encode(), "jobs.yaml", HERE / "bodies")
        mine = Settings(**{"replica": "cut", "lease": 60.0, "seats": 4, **settings})
        self.parts, _ = Soloist(mine, plan, self.proxy.url, (self.events.append,)).wire()
        with connect_deadline(PATIENT):  # what connects once; a step that lost its connection is made again
            self.parts.follower.start()
            self.parts.keeper.step()

    def close(self) -> None:
        self.gate.touch()
        for kind in self.parts.kinds.values():
            kind.close()
        for session in self.parts.sessions.values():
            session.close()
        self.parts.seats.close()
        self.parts.wakeup.close()
        self.proxy.close()
        self.facts.leave()

    def afresh(self) -> None:
        """No run and no effect; nothing is due; every session is there, and its statements are prepared."""
        self.proxy.forget_cuts()
        self.hang_up()  # one that was cut at its very end may not know it yet
        for path in (self.effects, self.gate):
            path.unlink(missing_ok=True)
        self.facts.sql("DELETE FROM soloist.attempt")
        self.facts.sql("DELETE FROM soloist.run")
        self.watermark("0 s")
        with connect_deadline(PATIENT):
            for _ in range(2):
                self.move()
            self._prepare()
        self.events.clear()

    def _prepare(self) -> None:
        """Say each statement once in vain, with what its parameters will be: then an exchange is only an exchange."""
        owner, (job,) = self.parts.room.owner, self.parts.plan.jobs().values()
        before = datetime.fromisoformat(TICK) - timedelta(seconds=1)
        births = decide_tick(job.spec, before, datetime.now(UTC))
        want = Want(job.id, "another spec", before, tuple((uuid4(), birth) for birth in births))
        assert not claims.claim(self.parts.sessions["worker"], owner, [want]).made
        assert not claims.dequeue(self.parts.sessions["worker"], owner, self.parts.plan.generation, 4)
        done = Ending(Outcome.SUCCEEDED, result="done", cpu=0.1)
        runs.settle(self.parts.sessions["settler"], owner, [Settlement(uuid4(), 1, Decision(Status.SUCCEEDED), done)])

    def watermark(self, before: str) -> None:
        """The job's ticks have rows up to so long before its one tick; the plan knows that."""
        self.facts.sql("UPDATE soloist.job SET watermark = %s::timestamptz - %s::interval", TICK, before)
        self.parts.plan.swap(tuple(jobs.read_jobs(self.facts.mine)), self.parts.plan.generation)

    def move(self) -> None:
        """One step of the rooms that take work; a lost connection is no more than that."""
        for step in (self.parts.ticker.tick, self.look):
            with suppress(ContactLost):
                step()

    def look(self) -> None:
        """A step of the sweeper that does look."""
        self.parts.sweeper.look_soon()
        self.parts.sweeper.step()

    def until(self, fact: Callable[[], Any], what: str) -> None:
        """Move until it is so."""

        def moved() -> bool:
            return bool(fact()) or bool(self.move()) or bool(fact())

        eventually(moved, what)

    def hang_up(self) -> None:
        """No session that is to be cut has a connection: the next call makes one. The keeper's proves our presence."""
        for room in ("worker", "settler"):
            self.parts.sessions[room].close()

    def passed(self, towards: str) -> int:
        """Bytes so far in this direction."""
        return self.proxy.to_server if towards == "server" else self.proxy.to_client

    def bodies(self) -> int:
        """How many have begun."""
        text = self.effects.read_text() if self.effects.exists() else ""
        return sum(line.startswith("begin") for line in text.split("\n")[:-1])

    def said(self, kind: type[Event]) -> list[Event]:
        return [event for event in list(self.events) if isinstance(event, kind)]
