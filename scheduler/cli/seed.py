"""`serve --seed`: sample data for a first look, on the embedded database and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scheduler.cli.failures import say
from scheduler.core.errors import ConfigInvalid, Problem

if TYPE_CHECKING:
    from scheduler.store.address import Database


def seed(call: str, root: Path, database: Database) -> None:
    """Call the function that `call` names with a connection and today's date; it returns how many rows it made.

    A real database is nobody's playground: there nothing is called. Raises ConfigInvalid: no such function.
    """
    if not database.embedded:
        say("--seed is for the embedded database: nothing was seeded")
        return
    from scheduler.config.callables import CallInvalid, resolve
    from scheduler.runner.clock import SystemClock
    from scheduler.store.transaction import RunDoor

    try:
        function = resolve(call, root)
    except CallInvalid as error:
        raise ConfigInvalid((Problem("--seed", 0, 0, "", str(error)),)) from None
    door = RunDoor(database.url)
    with door.connect() as connection:
        rows = function(connection, SystemClock().now().date())
    door.close()
    say(
        f"sample data: {rows} rows made by {call}, on the embedded database only"
        if rows
        else "sample data: there already"
    )
