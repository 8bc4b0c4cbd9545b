"""Which database a command speaks to: the one of SOLOIST_DATABASE_URL, or the embedded one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scheduler.cli.failures import say
from scheduler.core.errors import SchemaMismatch

if TYPE_CHECKING:
    from scheduler.config.settings import Settings

_SAID = (
    "database: embedded PostgreSQL under .soloist/ "
    "(development on this host only; set SOLOIST_DATABASE_URL for a real one)"
)


@dataclass(frozen=True, slots=True)
class Database:
    """An address, and whether it is the embedded server's."""

    url: str
    embedded: bool


@contextmanager
def opened(settings: Settings, *, create: bool = False, announce: bool = False) -> Iterator[Database]:
    """The database for the length of the block; an embedded server is started if nobody runs it, and left after.

    `create`: make the embedded database where there is none; a command that only looks does not.
    Raises SchemaMismatch where there is nothing to look at, DatabaseUnreachable.
    """
    if settings.database_url is not None:
        yield Database(settings.database_url, embedded=False)
        return
    from scheduler.store import embedded

    if not create and not embedded.exists():
        raise SchemaMismatch(
            "SOLOIST_DATABASE_URL is not set, and there is no embedded database under .soloist/ here: "
            "set the variable, or start `soloist serve` in this folder"
        )
    with embedded.start() as server:
        if announce:
            say(_SAID)
        if server.notice:
            say(server.notice)
        yield Database(server.url, embedded=True)
