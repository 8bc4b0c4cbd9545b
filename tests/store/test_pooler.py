"""Behind PgBouncer: seen before anything leans on a session, the engine's settings hold and reach nobody else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from pooler import Pooler, direct
from scene import Scene, birth, spec

from scheduler.core.events import DatabaseLost, DatabaseRegained
from scheduler.core.model import Status
from scheduler.store.connect import OPTIONS, POOLED_SETTINGS, connect
from scheduler.store.engine import Blocked, ContactLost, Refused, Session
from scheduler.store.migrate import migrate
from scheduler.store.transaction import RunDoor
from scheduler.store.visit import visit

SETTINGS = "transaction_isolation", "lock_timeout", "statement_timeout", "TimeZone", "search_path"
ASK = "SELECT " + ", ".join(f"btrim(current_setting('{name}'), '\"')" for name in SETTINGS)
OURS = ("read committed", "200ms", "10s", "UTC", "")
ODD = [
    "plain",
    "it's",
    'a "b"',
    "back\\slash",
    "\\'; DROP SCHEMA soloist CASCADE; --",
    "100 %",
    "%s %(a)s",
    "ünï \u2028",
]
Behind = Callable[..., Scene]


@pytest.fixture
def narrow(server: Any) -> Iterator[Callable[..., Pooler]]:
    """Poolers with one server connection for each role and database: every client gets the same."""
    made: list[Pooler] = []

    def start(options: str = "refuse", size: int = 1) -> Pooler:
        made.append(Pooler(server.url, server.data.parent, size, options))
        return made[-1]

    yield start
    for each in made:
        each.close()


@pytest.fixture
def behind(database_url: str, narrow: Callable[..., Pooler]) -> Iterator[Behind]:
    """`behind(options, size)`: a stage whose sessions go through a pooler of that kind."""
    made: list[Scene] = []

    def stage(options: str = "refuse", size: int = 1) -> Scene:
        made.append(Scene(narrow(options, size).url_of(database_url)))
        return made[-1]

    yield stage
    for scene in made:
        scene.leave()


@pytest.mark.parametrize("options", ["refuse", "ignore"])
def test_a_pooler_is_seen_whatever_it_does_with_options(behind: Behind, options: str) -> None:
    scene = behind(options)
    scene.mine.open()
    assert scene.mine.pooled
    with connect(scene.url, "test") as line:
        assert line.pooled
        assert line.prepare_threshold is None
    straight = Session(direct(scene.url), "test", scene.watchdog, scene.mine._contact)
    straight.open()
    assert not straight.pooled
    straight.close()


@pytest.mark.parametrize("options", ["refuse", "ignore"])
@pytest.mark.parametrize("isolation", ["serializable", "repeatable read"])
@pytest.mark.parametrize("whose", ["DATABASE {name}", "ROLE postgres IN DATABASE {name}"])
def test_the_engines_settings_hold_against_stricter_defaults(
    behind: Behind, options: str, isolation: str, whose: str
) -> None:
    scene = behind(options)
    _default(scene, whose, "default_transaction_isolation", isolation)
    _default(scene, whose, "lock_timeout", "0")
    assert scene.mine.execute(ASK) == [OURS]
    assert scene.mine.execute(ASK) == [OURS], "the second time as well"


def test_the_settings_reach_nobody_else_in_the_pool(behind: Behind) -> None:
    scene = behind()
    _default(scene, "DATABASE {name}", "default_transaction_isolation", "repeatable read")
    with psycopg.connect(scene.url, autocommit=True, prepare_threshold=None) as other:
        ((pid, *before),) = other.execute(f"SELECT pg_backend_pid(), {ASK[7:]}").fetchall()
        for use in (_statement, _wrong_statement, _blocked_statement, _application, _command, _body):
            use(scene)
            ((now, *after),) = other.execute(f"SELECT pg_backend_pid(), {ASK[7:]}").fetchall()
            assert now == pid, "the same server connection, or this shows nothing"
            assert after == before, use.__name__
        assert other.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        assert other.execute("SELECT count(*) FROM pg_listening_channels()").fetchone() == (0,)


def _statement(scene: Scene) -> None:
    for _ in range(10):
        assert scene.mine.execute(ASK) == [OURS]


def _wrong_statement(scene: Scene) -> None:
    with pytest.raises(Refused, match="nothing_there"):
        scene.mine.execute("SELECT * FROM soloist.nothing_there")


def _blocked_statement(scene: Scene) -> None:
    with scene.facts.transaction():
        scene.sql("LOCK TABLE soloist.audit")
        with pytest.raises(Blocked):
            scene.mine.execute("DELETE FROM soloist.audit")


def _application(scene: Scene) -> None:
    assert scene.apply(spec("a")).in_force


def _command(scene: Scene) -> None:
    with visit(scene.url, "test") as connection:
        for _ in range(10):
            connection.exec_driver_sql("SELECT count(*) FROM soloist.run").scalar_one()


def _body(scene: Scene) -> None:
    door = RunDoor(scene.url)
    for _ in range(10):
        with door.connect() as connection:
            row = connection.exec_driver_sql("SELECT current_setting('transaction_isolation')").scalar_one()
            assert row == "read committed"
            connection.commit()
    door.close()


def test_nothing_is_prepared_and_no_answer_is_anothers(behind: Behind) -> None:
    """psycopg names its prepared statements alike in every client: prepared ones would run each other's text."""
    scene = behind(size=2)
    sessions = [scene.session() for _ in range(4)]
    for turn in range(20):
        for number, session in enumerate(sessions):
            assert session.execute(f"SELECT {number}, %s::int", [turn]) == [(number, turn)]  # type: ignore[arg-type]


def test_values_are_values_whatever_they_hold(behind: Behind) -> None:
    """Behind a pooler they are written into the statement, on this side of the wire."""
    scene = behind()
    _default(scene, "DATABASE {name}", "standard_conforming_strings", "off")
    for text in ODD:
        assert scene.mine.execute("SELECT %(a)s::text", {"a": text}) == [(text,)]
        assert scene.mine.execute("SELECT %(a)s::text[]", {"a": [text, None]}) == [([text, None],)]
    run, instant = UUID(int=7), datetime(2026, 11, 29, 3, 0, 0, 250, UTC)
    asked = {"a": None, "b": instant, "c": [run], "d": [], "e": 2.5, "f": True, "g": [instant, None]}
    kinds = "%(a)s::int, %(b)s::timestamptz, %(c)s::uuid[], %(d)s::int[], %(e)s::float8, %(f)s::bool"
    found = scene.mine.execute(f"SELECT {kinds}, %(g)s::timestamptz[]", asked)  # type: ignore[arg-type]
    assert found == [(None, instant, [run], [], 2.5, True, [instant, None])]
    assert found[0][1].utcoffset() == timedelta(0), "in UTC: run keys and logs are made of it"
    assert scene.sql("SELECT 1 FROM soloist.job") == [], "the schema is still there"


def test_a_claim_and_its_take_over_work_with_two_server_connections(behind: Behind) -> None:
    scene = behind(size=2)
    job = spec("a")
    scene.jobs(job)
    (made,) = scene.claim(scene.owner(), scene.want(job, birth(1))).made
    assert made.status is Status.RUNNING
    assert scene.row(made.id)["claimed_until"].utcoffset() is not None


def test_a_lock_that_somebody_keeps_blocks_for_a_moment_only(behind: Behind) -> None:
    scene = behind()
    _blocked_statement(scene)
    assert scene.mine.execute("DELETE FROM soloist.audit") == []
    assert scene.events == []


def test_a_server_connection_that_ends_is_a_loss_and_comes_back(behind: Behind) -> None:
    scene = behind()
    scene.mine.execute("SELECT 1")
    epoch = scene.mine.epoch
    with pytest.raises((ContactLost, Refused)):
        scene.mine.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert scene.mine.execute("SELECT 1") == [(1,)]
    assert scene.mine.epoch > epoch
    assert [type(event) for event in scene.events] == [DatabaseLost, DatabaseRegained]


def test_a_pool_that_is_used_up_is_an_outage_that_passes(behind: Behind) -> None:
    scene = behind()
    scene.mine.execute("SELECT 1")
    with psycopg.connect(scene.url) as hog:
        hog.execute("SELECT 1")  # its transaction is open, and has the only server connection
        with pytest.raises(ContactLost):
            scene.mine.execute("SELECT 1", deadline=0.5)
    assert scene.mine.execute("SELECT 1") == [(1,)]


def test_two_clients_both_get_one_lock(pooled_url: str) -> None:
    """Why there is no presence, and no advisory lock, behind a pooler: a lock belongs to a server connection."""
    with psycopg.connect(pooled_url, autocommit=True) as one, psycopg.connect(pooled_url, autocommit=True) as two:
        assert [each.execute("SELECT pg_try_advisory_lock(39)").fetchone() for each in (one, two)] == [(True,)] * 2
    with psycopg.connect(direct(pooled_url), autocommit=True) as facts:
        look = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 39"
        (pid,) = facts.execute(look).fetchone() or (None,)
        assert pid is not None, "and it is held still, when both have left"
        facts.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])


def test_the_schema_is_made_through_a_pooler_once(empty_database_url: str, bouncer: Pooler) -> None:
    from concurrent.futures import ThreadPoolExecutor

    url = bouncer.url_of(empty_database_url)
    with ThreadPoolExecutor(4) as threads:
        applied = [one for one in threads.map(migrate, [url] * 4) if one]
    assert len(applied) == 1
    assert migrate(url) == ()
    with psycopg.connect(direct(url)) as facts:
        assert facts.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone() == (0,)


def test_what_a_session_is_set_to_a_statement_behind_a_pooler_brings_along() -> None:
    """Whatever a session of ours needs, its statements need there as well; it was forgotten once for `jit`."""
    of_the_session_alone = {
        "plan_cache_mode",  # no plan is kept there
        "idle_session_timeout",
        "idle_in_transaction_session_timeout",
        "default_transaction_isolation",  # SET TRANSACTION stands for it
        "tcp_keepalives_idle",
        "tcp_keepalives_interval",
        "tcp_keepalives_count",
    }
    named = set(re.findall(r"-c (\w+)=", OPTIONS))
    assert {name for name in named if f"SET LOCAL {name} " not in POOLED_SETTINGS} == of_the_session_alone


def _default(scene: Scene, whose: str, name: str, value: str) -> None:
    """For sessions that begin from now on."""
    database = scene.facts.info.dbname
    scene.sql(f"ALTER {whose.format(name=database)} SET {name} = '{value}'")
