"""The composition root: settings and a plan become wired objects. No logic."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scheduler import __version__
from scheduler.config.jobs_file import Plan
from scheduler.config.settings import Settings
from scheduler.core.events import Bus, Listener
from scheduler.core.model import Guard, Isolation, JobSpec
from scheduler.core.zones import tzdata_version
from scheduler.edges import Edges
from scheduler.kinds import Kind
from scheduler.kinds.python import PythonKind
from scheduler.kinds.thread import ThreadKind
from scheduler.runner.attempt import Attempts, Leave
from scheduler.runner.clock import SystemClock, new_id
from scheduler.runner.clock_watch import ClockWatch
from scheduler.runner.collector import FullRounds, rest_what_stays
from scheduler.runner.dedicated import refusal
from scheduler.runner.follower import Follower
from scheduler.runner.job_locks import JobLocks
from scheduler.runner.keeper import Charge, Keeper
from scheduler.runner.plan import PlanInForce
from scheduler.runner.presence import Presence
from scheduler.runner.reaper import Reaper
from scheduler.runner.reloader import Reloader, Source
from scheduler.runner.room import Room
from scheduler.runner.seats import Seats
from scheduler.runner.service import Facts, Parts, Service
from scheduler.runner.settler import Settler
from scheduler.runner.signals import stop_on_signals
from scheduler.runner.single import Single, Tick
from scheduler.runner.sweeper import Sweeper
from scheduler.runner.tally import Tally
from scheduler.runner.ticker import Ticker
from scheduler.runner.witness import Witness
from scheduler.store.apply import Applier, PlanFile
from scheduler.store.claims import Owner
from scheduler.store.connect import masked
from scheduler.store.contact import Contact
from scheduler.store.engine import Session
from scheduler.store.migrate import migrate
from scheduler.store.replicas import Registration
from scheduler.store.wakeup import Wakeup
from scheduler.store.watchdog import Watchdog


@dataclass(frozen=True, slots=True)
class Soloist:
    """A replica to embed in a service of one's own: `Soloist(settings, plan, url).service()`, then `run` or `start`.

    `database_url`: what libpq takes. `listeners`: told every event; see `scheduler.core.events`. `watched`: the file of
    the plan, to be read again when it is edited; None: the plan stays as it is.
    """

    settings: Settings
    plan: Plan
    database_url: str
    listeners: tuple[Listener, ...] = ()
    watched: Path | None = None

    def service(self) -> Service:
        """One replica, not yet started."""
        return self.wire()[1]

    def wire(self, *, only: str | None = None) -> tuple[Parts, Service]:
        """The rooms of one replica, and its life. `only`: a job; then it takes no work but what it is told to do."""
        clock = SystemClock(self.settings.clock_offset)
        bus = Bus(_report_listener)
        owner = Owner(new_id(), self.settings.replica, self.settings.lease)
        room = Room(owner, clock, bus)
        tally, witness, watchdog = Tally(), Witness(room), Watchdog(clock)
        self._subscribe(bus, tally, witness)
        dedicated, worker, settling = self._sessions(room, watchdog)
        plan, kinds = PlanInForce(self.plan.jobs), self._kinds()
        seats, settler = Seats(self.settings.seats), Settler(settling, room)
        presence = Presence(dedicated, room, seats, tuple(kinds.values()))
        seats.attend = Attempts(kinds, settler, room, Leave(presence, JobLocks(dedicated, room))).attend
        sweeper = Sweeper(worker, room, plan, seats, Reaper(worker, room, dedicated))
        sweeper.notified = lambda: not dedicated.pooled
        ticker = Ticker(worker, room, plan, seats)
        ticker.unclear, ticker.overflowed = sweeper.answer_lost, sweeper.overflowed
        follower = Follower(room, plan, ticker, worker)
        follower.reloader = self._reloader(room, dedicated)
        applier = Applier(self.database_url, self._plan_file(only), self._registration(owner, only), watchdog)
        self._let_apply(follower, applier)
        charge = Charge(seats, tally, presence, ClockWatch(room, seats), witness, follower.pulse, follower.look_soon)
        keeper = Keeper(dedicated, room, charge)
        sweeper.elsewhere = keeper.doubt
        parts = Parts(
            room=room,
            plan=plan,
            seats=seats,
            settler=settler,
            ticker=ticker,
            follower=follower,
            keeper=keeper,
            sweeper=sweeper,
            charge=charge,
            kinds=kinds,
            wakeup=Wakeup(dedicated, clock),
            sessions={"keeper": dedicated, "worker": worker, "settler": settling},
        )
        return parts, Service(parts, self._facts(only))

    def _subscribe(self, bus: Bus, tally: Tally, witness: Witness) -> None:
        bus.subscribe(tally, *Tally.COUNTS)
        bus.subscribe(witness, *Witness.REMEMBERS)
        for listener in self.listeners:
            bus.subscribe(listener)

    def _sessions(self, room: Room, watchdog: Watchdog) -> tuple[Session, Session, Session]:
        """The dedicated one, for renewals, locks and notifications; one that claims and sweeps; one for outcomes."""
        contact = Contact(room.bus, room.owner.name, room.clock)
        direct = self.settings.direct_database_url or self.database_url
        # two ways fail apart: the answers that come by one would end an outage of the other, again and again
        past = contact if direct == self.database_url else Contact(room.bus, room.owner.name, room.clock)
        dedicated = Session(direct, "keeper", watchdog, past)
        worker = Session(self.database_url, "worker", watchdog, contact)
        settling = Session(self.database_url, "settler", watchdog, contact)
        dedicated.companions = (worker, settling)
        return dedicated, worker, settling

    def _let_apply(self, follower: Follower, applier: Applier) -> None:
        follower.apply, follower.cut, follower.tzdata = applier, applier.cut, tzdata_version()
        follower.retention = self.plan.retention.to_dict()
        follower.migrate = lambda: migrate(self.database_url)
        follower.offer = lambda edit, after: applier.offer(
            PlanFile(edit.config_hash, edit.content, edit.retention, edit.jobs), after
        )

    def _reloader(self, room: Room, dedicated: Session) -> Reloader | None:
        if self.watched is None:
            return None
        reloader = Reloader(Source(self.watched, self.plan.root, self.plan.name), self.plan, room)
        direct_url = self.settings.direct_database_url
        reloader.refusal = lambda plan: refusal(dedicated, direct_url, guarded_jobs(plan.jobs))
        return reloader

    def _facts(self, only: str | None) -> Facts:
        jobs = [job for job in self.plan.jobs if only in (None, job.name)]
        return Facts(
            version=__version__,
            database=masked(self.database_url),
            drain=self.settings.drain,
            takes_work=only is None,
            direct_url=self.settings.direct_database_url,
            guarded=guarded_jobs(jobs),
            isolations=frozenset(job.isolation for job in jobs),
        )

    def _kinds(self) -> dict[Isolation, Kind]:
        root, url = self.plan.root, self.database_url
        modules = tuple(sorted({job.call.partition(":")[0] for job in self.plan.jobs}))
        return {
            Isolation.PROCESS: PythonKind(root, database_url=url, preload=modules, seats=self.settings.seats),
            Isolation.THREAD: ThreadKind(root, database_url=url),
        }

    def _plan_file(self, only: str | None) -> PlanFile:
        plan = self.plan
        return PlanFile(plan.content_hash, plan.content, plan.retention.to_dict(), plan.jobs, only)

    def _registration(self, owner: Owner, only: str | None) -> Registration:
        return Registration(
            id=owner.id,
            name=owner.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            tzdata=tzdata_version(),
            seats=self.settings.seats,
            clock_offset=0.0,
            serves=only is None,
            lease=self.settings.lease,
        )


def _report_listener(event: object, error: Exception) -> None:
    """A listener that raises is said on stderr, and is otherwise nobody's business."""
    print(f"soloist: a listener failed on {type(event).__name__}: {error}", file=sys.stderr)


def guarded_jobs(jobs: Iterable[JobSpec]) -> tuple[str, ...]:
    """The names of those with `guard: advisory_lock`."""
    return tuple(job.name for job in jobs if job.guard is Guard.ADVISORY_LOCK)


def serve_replica(settings: Settings, plan: Plan, database_url: str) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code. SIGHUP reads the file again, as an edit does.

    Raises SoloistError when it cannot start.
    """
    with Edges(settings.sentry_dsn, f"soloist@{__version__}") as edges:
        parts, service = Soloist(settings, plan, database_url, edges.listeners, watched=settings.jobs).wire()
        stop_on_signals(service.stop, parts.follower.reload)
        parts.follower.make_by(FullRounds().put_off)
        return service.run(rest_what_stays)


def execute_one(settings: Settings, plan: Plan, database_url: str, tick: Tick) -> int:
    """One run of a job for this tick, in this process and under the same guard; returns the exit code of its end."""
    with Edges(settings.sentry_dsn, f"soloist@{__version__}") as edges:
        parts, service = Soloist(settings, plan, database_url, edges.listeners).wire(only=tick.spec.name)
        single = Single(service, parts, lambda text: print(f"soloist: {text}", file=sys.stderr))
        stop_on_signals(single.stop)
        return single.run(tick)
