"""One protocol statement a file, loaded by name: readable in psql, greppable, each one EXPLAINed by a test."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import LiteralString


@cache
def load(name: str) -> LiteralString:
    """The text of `sql/<name>.sql`, with psycopg's named binds (`%(id)s`). Raises FileNotFoundError."""
    text: LiteralString = files("scheduler.store").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    return text  # our own files, never a user's text
