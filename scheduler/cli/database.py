"""Which database a command speaks to: the one of SOLOIST_DATABASE_URL, or the embedded one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scheduler.cli.failures import say

if TYPE_CHECKING:
    from scheduler.config.settings import Settings
    from scheduler.store.address import Database

_SAID = (
    "database: embedded PostgreSQL under .soloist/ "
    "(development on this host only; set SOLOIST_DATABASE_URL for a real one)"
)


@contextmanager
def opened(settings: Settings, *, create: bool = False, announce: bool = False) -> Iterator[Database]:
    """The database of these settings for the length of the block; `announce`: say so where it is the embedded one.

    `create`: make the embedded database where there is none; a command that only looks does not.
    Raises SchemaMismatch where there is nothing to look at, DatabaseUnreachable.
    """
    from scheduler.store import address

    with address.opened(settings.database_url, create=create) as database:
        if announce and database.embedded:
            say(_SAID)
        if database.notice:
            say(database.notice)
        yield database
