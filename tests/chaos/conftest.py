"""Fixtures of tests with real replica processes."""

from __future__ import annotations

from own_server import own_fleet, own_server
from replicas import fleet, nursery

__all__ = ["fleet", "nursery", "own_fleet", "own_server"]
