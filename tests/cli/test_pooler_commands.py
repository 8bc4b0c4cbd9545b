"""What a person types, and what a body does, behind PgBouncer; and a role that may not do it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from desk import Desk
from pooler import Pooler, direct
from replicas import eventually

URL, DIRECT = "SOLOIST_DATABASE_URL", "SOLOIST_DIRECT_DATABASE_URL"
BODY = """
from sqlalchemy import text

def work(ctx):
    with ctx.connect() as connection:
        (isolation,) = connection.execute(text("SELECT current_setting('transaction_isolation')")).one()
        assert isolation == "read committed", isolation
        connection.execute(text("CREATE TABLE public.effect (step int)"))
        connection.commit()
    for step in range(20):
        with ctx.transaction(checkpoint=step) as connection:
            connection.execute(text("INSERT INTO public.effect VALUES (:step)"), {"step": step})
    with ctx.transaction() as connection:
        connection.execute(text("INSERT INTO public.effect VALUES (100)"))
"""
HOURLY = {"every": "1h", "call": "body:work"}


@pytest.fixture
def pooled(desk: Desk, pooled_url: str) -> Desk:
    """A desk whose database is behind a pooler."""
    desk.env[URL] = pooled_url
    (desk.folder / "body.py").write_text(BODY)
    return desk


@pytest.fixture
def strict(connection: psycopg.Connection) -> None:
    """A database whose default isolation would fail commits that a renewal has crossed."""
    connection.execute(f"ALTER DATABASE {connection.info.dbname} SET default_transaction_isolation = 'repeatable read'")


def test_the_schema_is_made(desk: Desk, empty_database_url: str, bouncer: Pooler) -> None:
    desk.env[URL] = bouncer.url_of(empty_database_url)
    assert desk.run("migrate").out.startswith("applied 0001_initial")
    assert desk.run("runs", "list", "-o", "json").rows == []


def test_a_body_writes_its_transactions(pooled: Desk, strict: None, connection: psycopg.Connection) -> None:
    pooled.write(hourly=HOURLY)
    answer = pooled.run("exec", "hourly")
    assert answer.code == 0, answer.err
    (count,) = connection.execute("SELECT count(*) FROM public.effect").fetchone() or (None,)
    assert count == 21
    (row,) = pooled.run("runs", "list", "-o", "json").rows
    assert (row["status"], row["attempt"]) == ("succeeded", 1)


def test_a_person_works_as_ever(pooled: Desk) -> None:
    pooled.write(quick={"every": "1h", "call": "work:quick"}, slow={"call": "work:slow"})
    serving = pooled.start("serve", "--replica", "one", "--drain", "1s")
    eventually(lambda: "replica_started" in serving.text, "it serves")
    assert "pooler_found" in serving.text, "what is off is said"
    assert pooled.run("trigger", "quick", "--wait").code == 0
    (slow,) = pooled.run("trigger", "slow", "-o", "json").rows
    eventually(lambda: serving.text.count("attempt_started") == 2, "it runs")
    (listed,) = pooled.run("runs", "list", "--status", "running", "-o", "json").rows
    assert listed["id"] == slow["id"]
    assert [row["state"] for row in pooled.run("replicas", "-o", "json").rows] == ["live"]
    assert pooled.run("purge", "-o", "json").code == 0
    assert serving.end() == 0
    assert "Traceback" not in serving.text


@pytest.mark.parametrize("command", [("exec", "hourly"), ("serve", "--replicas", "2")], ids=" ".join)
def test_a_guard_that_a_pooler_would_swallow_is_refused(
    pooled: Desk, connection: psycopg.Connection, command: tuple[str, ...]
) -> None:
    pooled.write(hourly={**HOURLY, "guard": "advisory_lock"})
    answer = pooled.run(*command)
    assert answer.code == 8, answer.err
    assert DIRECT in answer.err
    assert connection.execute("SELECT count(*) FROM soloist.run").fetchone() == (0,)


def test_with_the_direct_url_the_guard_is_accepted(pooled: Desk, pooled_url: str) -> None:
    pooled.write(hourly={**HOURLY, "guard": "advisory_lock"})
    pooled.env[DIRECT] = direct(pooled_url)
    answer = pooled.run("exec", "hourly")
    assert answer.code == 0, answer.err


def test_a_wrong_direct_url_is_named_and_its_password_is_not(pooled: Desk) -> None:
    pooled.write(hourly=HOURLY)
    pooled.env[DIRECT] = "postgresql://me:s3cret@127.0.0.1:1/x"
    answer = pooled.run("exec", "hourly")
    assert answer.code == 8
    assert DIRECT in answer.err
    assert "s3cret" not in answer.err


@pytest.fixture(params=["straight", "pooled"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def poor(desk: Desk, pooled_url: str, way: str) -> Iterator[Desk]:
    """A desk whose role may look into the schema, and into nothing there."""
    url = direct(pooled_url) if way == "straight" else pooled_url
    facts = psycopg.connect(direct(pooled_url), autocommit=True)
    facts.execute("CREATE ROLE poor_person LOGIN; GRANT USAGE ON SCHEMA soloist TO poor_person")
    desk.env[URL] = url.replace("//postgres:", "//poor_person:")
    desk.write(hourly={"every": "1h", "call": "work:quick"})
    yield desk
    facts.execute("DROP OWNED BY poor_person; DROP ROLE poor_person")
    facts.close()


ASKED = {
    "straight": [("serve", "--replicas", "2"), ("exec", "hourly"), ("runs", "list"), ("trigger", "hourly")],
    "pooled": [("serve",), ("purge",)],
}


def test_a_missing_right_is_named_whatever_is_asked_for(poor: Desk, way: str) -> None:
    for command in ASKED[way]:
        answer = poor.run(*command)
        assert answer.code == 8, (command, answer.err)
        assert "GRANT SELECT, INSERT, UPDATE" in answer.err, command
        assert 'ON soloist.run TO "poor_person";' in answer.err, command
        assert answer.err.count("lacks a right") == 1, "once, not by each replica"
