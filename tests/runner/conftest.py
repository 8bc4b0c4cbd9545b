"""Fixtures: real replica processes, and replicas inside the test's own process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from local import Local
from pooler import own_session
from replicas import fleet, nursery
from scene import Scene

__all__ = ["fleet", "nursery"]


@pytest.fixture
def start(database_url: str, request: pytest.FixtureRequest) -> Iterator[Callable[..., Local]]:
    """`start(jobs, name=…, **settings)`: a replica that is drained at the end."""
    made: list[Local] = []

    def begin(jobs: str, **settings: Any) -> Local:
        made.append(Local(database_url, jobs, **{**own_session(request.node, database_url), **settings}))
        return made[-1]

    yield begin
    for local in made:
        local.close()


@pytest.fixture
def facts(database_url: str) -> Iterator[Scene]:
    """The rows of the test's own database."""
    scene = Scene(database_url)
    yield scene
    scene.leave()
