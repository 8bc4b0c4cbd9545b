"""Nothing comes back any more, and no error either: each call to the database ends by itself, in whichever room."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from proxy import Proxy
from replicas import eventually
from scene import Scene, at, birth, registration, spec
from sqlalchemy import text

from scheduler.core.errors import DatabaseUnreachable
from scheduler.core.model import Ending, Outcome, Status, Trigger
from scheduler.core.policy import Decision
from scheduler.runner.clock import SystemClock
from scheduler.store import apply as store_apply
from scheduler.store import claims, connect, jobs, replicas, runs
from scheduler.store import migrate as store_migrate
from scheduler.store.apply import Applier, PlanFile
from scheduler.store.claims import Owner, Request
from scheduler.store.contact import Contact
from scheduler.store.engine import ContactLost, Session
from scheduler.store.replicas import Counts
from scheduler.store.runs import Settlement
from scheduler.store.visit import visit, visit_session

BOUND = 30.0  # seconds: three times what a call may take, for a busy machine
JOB = spec("a")


@pytest.fixture
def stage(database_url: str) -> Iterator[Scene]:
    made = Scene(database_url)
    yield made
    made.leave()


@pytest.fixture
def proxy(database_url: str) -> Iterator[Proxy]:
    with Proxy(database_url) as made:
        yield made


def _calls(stage: Scene, owner: Owner) -> dict[str, Callable[[Session], Any]]:
    """One call of each kind that the rooms make."""
    stage.jobs(JOB)
    run, want = uuid4(), stage.want(JOB, birth(1))
    end = Settlement(run, 1, Decision(Status.SUCCEEDED), Ending(Outcome.SUCCEEDED))
    request = Request(run, "a", "manual:1", Trigger.MANUAL, "me")
    return {
        "claim": lambda s: claims.claim(s, owner, [want]),
        "read what was lost": lambda s: claims.read_lost(s, [(want.job_id, "k")]),
        "dequeue": lambda s: claims.dequeue(s, owner, 1, 1),
        "dequeue by name": lambda s: claims.dequeue_one(s, owner, run),
        "create": lambda s: claims.create_run(s, request, owner),
        "find": lambda s: claims.find_run(s, "a", "k"),
        "renew": lambda s: runs.renew(s, owner, [(run, 1, None)]),
        "read held": lambda s: runs.read_held(s, owner, [(run, 1)]),
        "settle": lambda s: runs.settle(s, owner, [end]),
        "complete a record": lambda s: runs.complete_record(s, [end]),
        "look": lambda s: runs.look(s, owner, 1),
        "take over": lambda s: runs.take_over(s, [(run, at(1))]),
        "promote": lambda s: runs.promote(s, None),
        "end stale": runs.end_stale,
        "read mine": lambda s: claims.read_mine(s, owner),
        "heartbeat": lambda s: replicas.heartbeat(s, owner.id, 0.0, Counts()),
        "leave": lambda s: replicas.leave(s, owner.id, Counts()),
        "read jobs": jobs.read_jobs,
        "last runs": lambda s: jobs.last_runs(s, [want.job_id]),
    }


@pytest.mark.case("C089")
def test_every_call_of_the_rooms_ends_and_works_again(stage: Scene, proxy: Proxy) -> None:
    """All at once, each in a session that was at work before; afterwards each connects anew."""
    calls = _calls(stage, stage.owner())
    ended: dict[str, bool] = {}
    sessions = {name: Session(proxy.url, name, stage.watchdog, Contact(stage.bus, "r", stage.clock)) for name in calls}
    for session in sessions.values():
        session.execute("SELECT 1")

    def call(name: str) -> None:
        try:
            calls[name](sessions[name])
        except ContactLost:
            ended[name] = True

    proxy.stall()
    threads = [threading.Thread(target=call, args=(name,), daemon=True) for name in calls]
    for thread in threads:
        thread.start()
    eventually(lambda: not any(thread.is_alive() for thread in threads), "every call has ended", BOUND)
    assert ended == dict.fromkeys(calls, True)
    proxy.flow()
    for session in sessions.values():
        assert session.execute("SELECT 1") == [(1,)]
        session.close()


def _ends(call: Callable[[], object], within: float = BOUND) -> BaseException:
    """The call fails by itself; with what."""
    failed: list[BaseException] = []

    def make() -> None:
        try:
            call()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    eventually(lambda: not thread.is_alive(), "the call ends", within)
    (error,) = failed
    return error


def _stalled_after(proxy: Proxy, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    """The network stalls when this function of the module is called: the connection stands by then."""
    real = getattr(module, name)

    def stalled(*args: Any, **fields: Any) -> Any:
        proxy.stall()
        return real(*args, **fields)

    monkeypatch.setattr(module, name, stalled)


def test_putting_the_plan_in_force_ends(stage: Scene, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_apply, "DEADLINE", 1.0)
    plan = PlanFile("1", "1", {}, (JOB,))
    applier = Applier(proxy.url, plan, registration(), stage.watchdog)
    _stalled_after(proxy, monkeypatch, store_apply, "apply")
    assert isinstance(_ends(applier), DatabaseUnreachable)
    proxy.flow()
    monkeypatch.undo()
    assert Applier(proxy.url, plan, registration(), stage.watchdog)().in_force


@pytest.mark.parametrize("step", ["current", "verify"])
def test_a_start_that_looks_at_the_schema_ends(
    stage: Scene, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(connect, "PATIENCE", 1.0)
    _stalled_after(proxy, monkeypatch, store_migrate, step)
    assert isinstance(_ends(lambda: store_migrate.migrate(proxy.url)), DatabaseUnreachable)


def test_a_commands_reads_end(stage: Scene, proxy: Proxy) -> None:
    def read() -> None:
        with visit(proxy.url, "runs") as connection:
            line = connection.connection.dbapi_connection
            assert isinstance(line, connect.Line)
            assert line.patience == connect.PATIENCE
            line.patience = 1.0  # from here on: what a visit begins with may take its time
            proxy.stall()
            connection.execute(text("SELECT 1"))

    error = _ends(read)
    assert isinstance(error, DatabaseUnreachable)
    assert "did not answer" in str(error)


def test_a_commands_statements_end(stage: Scene, proxy: Proxy) -> None:
    stage.jobs(JOB)
    request = Request(uuid4(), "a", "manual:1", Trigger.MANUAL, "me")

    def ask() -> None:
        with visit_session(proxy.url, "trigger", SystemClock()) as session:
            session.execute("SELECT 1")
            proxy.stall()
            claims.create_run(session, request)

    error = _ends(ask)
    assert isinstance(error, DatabaseUnreachable)
    assert "did not answer" in str(error)


@pytest.mark.parametrize("command", ["visit", "visit_session", "migrate", "apply"])
def test_a_command_that_meets_the_stall_at_its_connection_ends(stage: Scene, proxy: Proxy, command: str) -> None:
    proxy.stall()

    def visited() -> None:
        with visit(proxy.url, "runs") as connection:
            connection.execute(text("SELECT 1"))

    def asked() -> None:
        with visit_session(proxy.url, "trigger", SystemClock()) as session:
            session.execute("SELECT 1")

    calls: dict[str, Callable[[], object]] = {
        "visit": visited,
        "visit_session": asked,
        "migrate": lambda: store_migrate.migrate(proxy.url),
        "apply": Applier(proxy.url, PlanFile("1", "1", {}, (JOB,)), registration(), stage.watchdog),
    }
    assert isinstance(_ends(calls[command]), DatabaseUnreachable)
