"""A role that may not do what a replica does is told so before anything is claimed, with the GRANT that is missing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import psycopg
import pytest
from pooler import direct

from scheduler.core.errors import DatabaseUnreachable
from scheduler.store.migrate import migrate
from scheduler.store.rights import ALL, NEEDED, missing_grants
from scheduler.store.visit import visit

_numbers = itertools.count()
TABLES = "ALL TABLES IN SCHEMA soloist"
Role = Callable[..., str]


@pytest.fixture
def role(server: Any, database_url: str, connection: psycopg.Connection) -> Iterator[Role]:
    """`role(url, *grants)`: the address for a new role that has these rights (`{}` is its name)."""
    made: list[str] = []

    def create(url: str, *grants: str) -> str:
        made.append(f"Poor {next(_numbers)}")  # its name needs quotes
        connection.execute(f'CREATE ROLE "{made[-1]}" LOGIN')
        for grant in grants:
            connection.execute(grant.format(f'"{made[-1]}"'))
        return url.replace("//postgres:", f"//{made[-1].replace(' ', '%20')}:")

    yield create
    for name in made:
        connection.execute(f'DROP OWNED BY "{name}"; DROP ROLE "{name}"')


@pytest.fixture(params=["straight", "pooled"])
def url(request: pytest.FixtureRequest, database_url: str) -> str:
    """Both ways to the test's database."""
    return direct(database_url) if request.param == "straight" else request.getfixturevalue("pooled_url")


def _grant(privileges: str, on: str) -> str:
    return f"GRANT {privileges} ON {on} TO {{}}"


USAGE = _grant("USAGE", "SCHEMA soloist")


def _enough() -> list[str]:
    return [USAGE, *(_grant(", ".join(privileges), f"soloist.{table}") for table, privileges in NEEDED.items())]


@pytest.mark.parametrize(
    ("has", "named"),
    [
        ([], "GRANT USAGE ON SCHEMA soloist TO"),
        ([_grant("ALL", TABLES)], "GRANT USAGE ON SCHEMA soloist TO"),
        ([USAGE], "GRANT SELECT, INSERT, UPDATE ON soloist.run TO"),
        ([USAGE, _grant("SELECT", TABLES)], "GRANT INSERT, UPDATE ON soloist.run TO"),
        ([USAGE, _grant("SELECT, INSERT, UPDATE", TABLES)], "GRANT DELETE ON soloist.plan_job TO"),
        ([USAGE, _grant("ALL", TABLES), "REVOKE UPDATE ON soloist.config FROM {}"], "GRANT UPDATE ON soloist.config"),
    ],
    ids=["nothing", "no usage", "usage", "reads", "no delete", "all but one"],
)
def test_a_start_names_what_is_missing(
    role: Role, url: str, connection: psycopg.Connection, has: list[str], named: str
) -> None:
    poor = role(url, *has)
    with pytest.raises(DatabaseUnreachable) as caught:
        migrate(poor)
    assert named in str(caught.value)
    for line in re.findall(r"^  (GRANT .*;)$", str(caught.value), re.M):
        connection.execute(line)  # as it stands there: with the name in its quotes
    assert migrate(poor) == (), "and that was all of it"


def test_with_the_rights_that_are_named_all_is_well(role: Role, url: str) -> None:
    assert migrate(role(url, *_enough())) == ()


def test_a_database_that_may_not_be_changed(role: Role, empty_database_url: str) -> None:
    poor = role(empty_database_url)
    with pytest.raises(DatabaseUnreachable, match=r"GRANT CREATE ON DATABASE \S+ TO \"Poor"):
        migrate(poor)


def test_an_older_schema_of_another_owner(role: Role, database_url: str, connection: psycopg.Connection) -> None:
    """What only the owner may do cannot be granted."""
    poor = role(database_url, *_enough(), _grant("ALL", TABLES))
    connection.execute("UPDATE soloist.alembic_version SET version_num = '0001_initial'")
    with pytest.raises(DatabaseUnreachable, match="Let the schema's owner run `soloist migrate`"):
        migrate(poor)


def test_a_command_of_a_person_names_it_too(role: Role, url: str) -> None:
    poor = role(url, USAGE)
    wanted = pytest.raises(DatabaseUnreachable, match=r"GRANT SELECT, .* ON soloist.run TO \"Poor")
    with wanted, visit(poor, "test") as connection:
        connection.exec_driver_sql("SELECT 1 FROM soloist.run")


def test_what_is_needed_is_what_the_statements_do(connection: psycopg.Connection) -> None:
    """Each verb and table of the protocol's statements, in both directions."""
    used: set[tuple[str, str]] = {("alembic_version", "SELECT"), ("config", "UPDATE")}
    verbs = {"insert into": "INSERT", "update": "UPDATE", "delete from": "DELETE", "from": "SELECT", "join": "SELECT"}
    for file in files("scheduler.store").joinpath("sql").iterdir():
        text = re.sub(r"--.*", "", file.read_text())
        for verb, table in re.findall(r"\b(insert into|update|delete from|from|join)\s+soloist\.(\w+)", text, re.I):
            used.add((table, verbs[verb.lower()]))
    granted = {(table, privilege) for table, privileges in ALL.items() for privilege in privileges}
    assert used <= granted
    assert granted <= used | {("attempt", "SELECT"), ("audit", "SELECT"), ("replica", "SELECT")}
    there = {
        row[0]
        for row in connection.execute("SELECT relname FROM pg_class WHERE relnamespace = 'soloist'::regnamespace")
    }
    assert set(ALL) <= there


def test_the_postgres_role_lacks_nothing(connection: psycopg.Connection) -> None:
    assert missing_grants(connection, ALL) == ()
