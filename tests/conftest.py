"""A real PostgreSQL for every test that wants one: the embedded wheel's, one server a session, one database a test.

The database is cloned from a migrated template, and made hostile on purpose: an odd time zone and an empty search_path,
so that whatever leans on the session's settings fails loudly.

With SOLOIST_TEST_POOLER (see `pooler.MODES`) the engine reaches it through PgBouncer, and only the tests that reach a
database by these fixtures run: they are the integration suite. What the tests look at, they look at directly.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pooler
import psycopg
import pytest
from started_server import started_server

SHARED = Path(__file__).parents[1].parent / "shared"
_numbers = itertools.count()
Lead = Callable[[str], str]
OWN_WAY = {"bouncer", "narrow", "proxy"}  # fixtures of tests that lead to the database by a way of their own


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Behind a pooler: what does not reach the database through it, or has one of its own, runs in a plain session."""
    if pooler.mode() is None:
        return
    names = {item: set(getattr(item, "fixturenames", ())) for item in items}
    through = [item for item in items if "lead" in names[item] and not names[item] & OWN_WAY]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(through)])
    items[:] = through


@pytest.fixture(autouse=True)
def _own_session(request: pytest.FixtureRequest) -> None:
    """Behind a pooler a test of what needs a session of its own runs with the direct URL, or not at all."""
    marked = request.node.get_closest_marker("own_session") is not None
    if marked and pooler.mode() is not None and not {"fleet", "start"} & set(request.fixturenames):
        pytest.skip("needs a session of its own")


class Server:
    """The embedded PostgreSQL of this test session."""

    def __init__(self, directory: Path) -> None:
        self._server = started_server(directory / "data")
        self.url: str = self._server.get_uri()
        self.data = directory / "data"

    def url_of(self, database: str) -> str:
        return str(self._server.get_uri(database=database))

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]

    def clone(self, database: str, template: str) -> None:
        """A copy of the template, once nobody is connected to that any more."""
        self._execute_when_free(f"CREATE DATABASE {database} TEMPLATE {template}")

    def drop(self, database: str) -> None:
        """With whoever is still connected."""
        self._execute_when_free(f"DROP DATABASE {database} WITH (FORCE)")

    def _execute_when_free(self, statement: str) -> None:
        """PostgreSQL gives those who are to leave five seconds, a slow machine takes longer."""
        for _ in range(11):
            with suppress(psycopg.errors.ObjectInUse):
                self.execute(statement)
                return
        self.execute(statement)

    def stop(self) -> None:
        self._server.cleanup()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A running PostgreSQL with fsync on. Its path is short: a socket's may have 107 bytes."""
    directory = Path(tempfile.mkdtemp(prefix="sl-"))
    running = Server(directory)
    try:
        yield running
    finally:
        running.stop()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def template(server: Server) -> str:
    """A database with the schema in it, to be cloned."""
    from patience import give_schema

    server.execute("CREATE DATABASE template_soloist")
    give_schema(server.url_of("template_soloist"))
    return "template_soloist"


@pytest.fixture(scope="session")
def lead(server: Server) -> Iterator[Lead]:
    """The way from an address of the server to the one that the engine is given: through a pooler, or no way at all."""
    mode = pooler.mode()
    if mode is None:
        yield str
        return
    between = pooler.Pooler(server.url, server.data.parent, pooler.MODES[mode])
    yield between.url_of
    between.close()


@pytest.fixture
def database_url(server: Server, template: str, lead: Lead) -> Iterator[str]:
    """A fresh migrated database, dropped afterwards with whoever is still connected."""
    name = f"t{os.getpid()}_{next(_numbers)}"
    server.clone(name, template)
    server.execute(f"ALTER DATABASE {name} SET TimeZone = 'America/Los_Angeles'")
    server.execute(f"ALTER DATABASE {name} SET search_path = ''")
    try:
        yield lead(server.url_of(name))
    finally:
        server.drop(name)


@pytest.fixture(scope="session")
def bouncer(server: Server) -> Iterator[pooler.Pooler]:
    """A pooler before the server, whatever way this session goes."""
    between = pooler.Pooler(server.url, server.data.parent)
    yield between
    between.close()


@pytest.fixture
def pooled_url(bouncer: pooler.Pooler, database_url: str) -> str:
    """The test's own database, through a pooler."""
    return bouncer.url_of(database_url)


@pytest.fixture
def empty_database_url(server: Server, lead: Lead) -> Iterator[str]:
    """A fresh database without the schema."""
    name = f"e{os.getpid()}_{next(_numbers)}"
    server.execute(f"CREATE DATABASE {name}")
    try:
        yield lead(server.url_of(name))
    finally:
        server.drop(name)


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    """An autocommit connection to the test's database, to look at the facts with."""
    with psycopg.connect(pooler.direct(database_url), autocommit=True) as opened:
        yield opened


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared material beside the repository; whoever asks for it is skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("the folder `shared` does not lie beside this checkout")
    return SHARED
