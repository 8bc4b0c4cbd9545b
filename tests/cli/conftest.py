"""Fixtures of the command line's tests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from desk import JOBS, Desk, clean_environment, end_server, end_tree
from patience import patient_connections
from preloaded import Preloaded
from scene import Scene

__all__ = ["patient_connections"]


@pytest.fixture(scope="session")
def loaded() -> Iterator[Preloaded]:
    process = Preloaded(clean_environment())
    yield process
    process.close()


@pytest.fixture
def desk(loaded: Preloaded) -> Iterator[Desk]:
    """A folder with callables and no database. Its path is short, for the embedded server's socket."""
    made = Desk(Path(tempfile.mkdtemp(prefix="sl-")), loaded=loaded)
    (made.folder / "work.py").write_text(JOBS)
    try:
        yield made
    finally:
        for running in made.started:
            end_tree(running.process.pid)
            running.wait()
        end_server(made.folder / ".soloist" / "pg")
        shutil.rmtree(made.folder, ignore_errors=True)


@pytest.fixture
def scene(desk: Desk, database_url: str) -> Iterator[Scene]:
    """A database of this test's own, which the desk's commands use."""
    desk.env["SOLOIST_DATABASE_URL"] = database_url
    stage = Scene(database_url)
    yield stage
    stage.close()
