"""Fixtures of tests with real replica processes, on servers and clocks of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clocks import clocked_fleet, clocked_nursery
from cluster import Postgres, cluster_folder, postgres, template_cluster
from own_server import own_fleet, own_server
from replicas import Fleet, Nursery, fleet, nursery

__all__ = [
    "clocked_fleet",
    "clocked_nursery",
    "cluster_folder",
    "fleet",
    "nursery",
    "own_fleet",
    "own_server",
    "postgres",
    "template_cluster",
]


@pytest.fixture
def postgres_fleet(nursery: Nursery, tmp_path: Path, postgres: Postgres) -> Iterator[Fleet]:
    """Replicas on a server of the test's own."""
    made = Fleet(nursery, tmp_path, postgres.url)
    yield made
    made.close()
