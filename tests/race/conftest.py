"""Fixtures of tests with real replica processes."""

from __future__ import annotations

from replicas import fleet, nursery

__all__ = ["fleet", "nursery"]
