"""Soloist: scheduled singleton jobs. Every replica ticks, exactly one runs.

The public door. Jobs import from here and from nowhere else in this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scheduler.core.context import RunContext
from scheduler.core.errors import Cancelled, Fatal, LeaseLost, Retry, Skip, SoloistError

if TYPE_CHECKING:
    from scheduler.app import Soloist
    from scheduler.store.address import open_database
    from scheduler.store.purge import history_of as purge_history

__version__ = "0.1.0"
__all__ = [
    "Cancelled",
    "Fatal",
    "LeaseLost",
    "Retry",
    "RunContext",
    "Skip",
    "Soloist",
    "SoloistError",
    "__version__",
    "open_database",
    "purge_history",
]


def __getattr__(name: str) -> Any:
    if name == "Soloist":  # late: it brings the engine with it
        from scheduler.app import Soloist  # noqa: PLC0415

        return Soloist
    if name == "purge_history":  # late: it brings the store with it
        from scheduler.store.purge import history_of  # noqa: PLC0415

        return history_of
    if name == "open_database":  # late, for the same reason
        from scheduler.store.address import open_database  # noqa: PLC0415

        return open_database
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
