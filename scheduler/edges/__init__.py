"""Faces to the world. They listen to the engine's events and are never imported from below."""

from __future__ import annotations

import sys
from types import TracebackType

from scheduler.core.events import Listener


class Edges:
    """The listeners of one process: the log always, Sentry where a DSN is set."""

    def __init__(self, sentry_dsn: str | None, release: str) -> None:
        from scheduler.edges.logs import LogListener, configure_logging  # noqa: PLC0415 - late: an embedded replica
        # may want none of it

        configure_logging(sys.stderr)
        self._sentry = None
        listeners: list[Listener] = [LogListener(sys.stderr)]
        if sentry_dsn:
            from scheduler.edges.sentry import SentryListener  # noqa: PLC0415 - late: the SDK is slow to import

            self._sentry = SentryListener(sentry_dsn, release, None)
            listeners.append(self._sentry)
        self.listeners = tuple(listeners)

    def __enter__(self) -> Edges:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sentry is not None:
            self._sentry.close()
