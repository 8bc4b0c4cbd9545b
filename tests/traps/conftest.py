"""Fixtures of the regression tests of the traps."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from patience import patient_connections
from scene import Scene

__all__ = ["patient_connections"]


@pytest.fixture(scope="module")
def stage_url(server: Any, template: str, lead: Any) -> Iterator[str]:
    """A migrated database that the tests of one file share: a new one each would cost more than the tests."""
    name = f"stage_traps_{os.getpid()}"
    server.clone(name, template)
    server.execute(f"ALTER DATABASE {name} SET TimeZone = 'America/Los_Angeles'")
    server.execute(f"ALTER DATABASE {name} SET search_path = ''")
    yield lead(server.url_of(name))
    server.drop(name)


@pytest.fixture
def scene(stage_url: str) -> Iterator[Scene]:
    """Empty tables at the start of each test."""
    stage = Scene(stage_url)
    yield stage
    stage.close()
