"""`soloist migrate`: the database's schema."""

from __future__ import annotations

from typing import Annotated

import typer

Sql = Annotated[bool, typer.Option("--sql", help="Print the SQL script, for those who apply it themselves.")]


def migrate(sql: Sql = False) -> None:
    """Bring the database's schema up to date. `serve` does so too."""
    from scheduler.store import migrate as migrations

    if sql:
        print(migrations.script(), end="")
        return
    from scheduler.cli.database import opened
    from scheduler.config.settings import load_settings

    with opened(load_settings(), create=True) as database:
        applied = migrations.migrate(database.url)
    for revision in applied:
        print(f"applied {revision}")
    if not applied:
        print("up to date")
