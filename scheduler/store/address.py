"""Which database: the one whose address is given, or the embedded one of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from scheduler.core.errors import SchemaMismatch

VARIABLE = "SOLOIST_DATABASE_URL"
_NEITHER = (
    f"{VARIABLE} is not set, and there is no embedded database under .soloist/ here: "
    "set the variable, or start `soloist serve` in this folder"
)


@dataclass(frozen=True, slots=True)
class Database:
    """An address, and whether it is the embedded server's. `notice`: what the person should know, or empty."""

    url: str
    embedded: bool
    notice: str = ""


@contextmanager
def opened(url: str | None, *, create: bool = False) -> Iterator[Database]:
    """The database for the length of the block; an embedded server is started if nobody runs it, and left after.

    `create`: make the embedded database where there is none; who only looks does not.
    Raises SchemaMismatch where there is nothing to look at, DatabaseUnreachable.
    """
    if url is not None:
        yield Database(url, embedded=False)
        return
    from scheduler.store import embedded  # noqa: PLC0415 - late: with an address it is not needed

    if not create and not embedded.exists():
        raise SchemaMismatch(_NEITHER)
    with embedded.start() as server:
        yield Database(server.url, embedded=True, notice=server.notice)


@contextmanager
def open_database() -> Iterator[str]:
    """The address of Soloist's database, as libpq takes it, for the length of the block.

    It is what SOLOIST_DATABASE_URL says; where that is not set, the embedded server of this folder, which runs at
    least until the block ends. Raises SoloistError that says what to do, where there is neither.
    """
    with opened(os.environ.get(VARIABLE) or None) as database:
        yield database.url
