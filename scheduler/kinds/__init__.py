"""How a body is executed. The engine knows the words of this page only; each kind has a room of its own.

`python.py` runs a body in a warm child process, `thread.py` in the seat's own thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from scheduler.core.context import RunInfo
    from scheduler.core.model import Ending

FOREVER = 9e9  # CLOCK_BOOTTIME seconds: the trust of a body that goes on through lost contact

MayBegin = Callable[[], float | None]
"""Asked just before a body begins: the trust deadline (CLOCK_BOOTTIME seconds), or None = do not begin."""


@dataclass(frozen=True, slots=True)
class Body:
    """What a kind executes: one attempt. `call`: `package.module:function`; `timeout`: seconds or None."""

    info: RunInfo
    call: str
    args: dict[str, Any]
    timeout: float | None


class Stop(StrEnum):
    """Why the engine stops a body."""

    LEASE_LOST = "lease_lost"
    SHUTDOWN = "shutdown"


@dataclass(frozen=True, slots=True)
class Progress:
    """What the body last said with `ctx.progress(done, total, note)`."""

    done: int
    total: int | None
    note: str | None


class Execution(Protocol):
    """One body on its way. `wait` belongs to the seat's thread; all else may be called from any thread."""

    def wait(self) -> Ending:
        """Block until the body has ended and say how. Never raises for what the body did."""

    def extend(self, until: float) -> None:
        """Trust it until `until` (CLOCK_BOOTTIME seconds). Cheap: one store in shared memory."""

    def cancel(self) -> None:
        """Make `ctx.cancelled` true. A body that goes on all the same is ended after a grace."""

    def stop(self, why: Stop) -> None:
        """End the body: at once for LEASE_LOST; for SHUTDOWN it first gets TERM and a short grace."""

    def progress(self) -> Progress | None:
        """What the body last said, or None."""


class Kind(Protocol):
    """A way to execute bodies. `start` may be called from several seats at once."""

    def start(self, body: Body, trust: float, may_begin: MayBegin) -> Execution:
        """Prepare one attempt; it begins in `wait`. Cheap, never blocks, never raises for what the body is.

        `trust`: CLOCK_BOOTTIME seconds until which the body may run. `may_begin` is asked when a place to run
        has been obtained, which may take a while. None from it: the Ending is HANDED_BACK, `started=False`.
        """

    def warm(self) -> None:
        """Work is about to come: make ready for it, without waiting."""

    def tidy(self) -> None:
        """Give back what has not been needed for a while. Called now and then."""

    def watch(self, session: int, interval: float) -> None:
        """From the end of this session (a descriptor) bodies have `interval` seconds, or until `watch` or `lift` comes.

        Only a kind that can end its bodies while the replica is frozen has something to do here.
        """

    def lift(self) -> None:
        """The end of the session means nothing: bodies have as long as they are trusted."""

    def close(self) -> None:
        """Every process and thread of this kind is gone when this returns, within a few seconds."""
