"""Sentry: each trouble is one event. Nothing here can delay a run or a shutdown for long."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from scheduler.core.events import Event
from scheduler.core.redaction import Redaction
from scheduler.edges.reports import report, trouble_of

if TYPE_CHECKING:
    from sentry_sdk import Client

QUEUE = 100
"""Events that wait at the most; a mass failure beyond it is counted, not kept."""

_ANSWER_WITHIN = 5  # seconds for one request
_FLUSH_WITHIN = 120  # seconds, more than the SDK's few tries of a request take
# No example of an address here: the log would mask it as somebody's.
_BROKEN = (
    "SENTRY_DSN cannot be used, so nothing is reported to Sentry: it should be an https address with a key before "
    "the @ and the project's number at the end, as Sentry shows it under Client Keys (DSN)"
)
# Nothing of the process is patched, watched or collected: an event is what we put into it. (Personal data are off by
# the SDK's default; to say so is deprecated.)
_ONLY_SENDING: dict[str, Any] = {
    "default_integrations": False,
    "auto_enabling_integrations": False,
    "auto_session_tracking": False,
    "enable_backpressure_handling": False,
    "send_client_reports": False,
    "include_local_variables": False,
    "include_source_context": False,
    "attach_stacktrace": False,
    "max_breadcrumbs": 0,
    "spotlight": False,
}

logger = logging.getLogger("soloist.sentry")


class SentryListener:
    """Reports what `reports` says is a trouble: bad ends for good, refused edits, jobs that stand still.

    A call only puts the event into a bounded queue; one daemon thread makes and sends what Sentry gets. `dsn`: a
    broken one is said once in the log, and then nothing is sent. `release`: `soloist@0.1.0`. `environment`: None takes
    Sentry's own default. The values to mask are read from the process's environment, once.
    """

    def __init__(self, dsn: str, release: str, environment: str | None = None) -> None:
        self._redaction = Redaction({**os.environ, "SENTRY_DSN": dsn})
        self._waiting: deque[Event] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._given_up = False
        self._on_its_way = False
        self._dropped = 0
        self._refused: str | None = None
        self._healthy = True
        self._thread: threading.Thread | None = None
        self._client = _connect(dsn, release, environment, self._on_refused)
        if self._client is not None:
            self._thread = threading.Thread(target=self._send_all, args=(self._client,), name="sentry", daemon=True)
            self._thread.start()

    @property
    def dropped(self) -> int:
        """Events that Sentry never got: the queue was full, Sentry did not take them, or the time to stop had come."""
        return self._dropped

    def __call__(self, event: Event) -> None:
        """Queue the event if it is a trouble. Never waits for the network."""
        if self._client is None or trouble_of(event) is None:
            return
        with self._changed:
            if self._closing or len(self._waiting) >= QUEUE:
                self._dropped += 1
                return
            self._waiting.append(event)
            self._changed.notify()

    def close(self, timeout: float = 2.0) -> None:
        """Send what is queued, for `timeout` seconds at the most. What then is left is counted and said."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        with self._changed:
            self._closing = True
            self._changed.notify()
        thread.join(timeout)
        with self._changed:
            if thread.is_alive():
                self._given_up = True
                self._dropped += len(self._waiting) + self._on_its_way  # whose answer nobody awaits
                self._waiting.clear()
            dropped = self._dropped
        if dropped:
            logger.warning("Sentry did not get %d events of this process; no run was affected", dropped)

    def _send_all(self, client: Client) -> None:
        while (event := self._next()) is not None:
            self._refused = None
            try:
                if (made := report(event, self._redaction)) is not None:
                    client.capture_event(made)
                client.flush(timeout=_FLUSH_WITHIN)  # one at a time: the one bounded queue is ours
            except Exception as error:
                self._refused = type(error).__name__
            self._account(self._refused)
        client.close(timeout=0.1)

    def _next(self) -> Event | None:
        """The next to send; waits for it. None: closing, and nothing is left."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            self._on_its_way = bool(self._waiting)
            return self._waiting.popleft() if self._waiting else None

    def _on_refused(self, reason: str) -> None:
        """The SDK's word, from its sending thread, that the event on its way did not arrive."""
        self._refused = reason

    def _account(self, refused: str | None) -> None:
        """Count a loss, and say the first of a row of them."""
        with self._changed:
            self._on_its_way = False
            if self._given_up:
                return
            self._dropped += refused is not None
            first, self._healthy = self._healthy and refused is not None, refused is None
        if first:
            logger.warning(
                "Sentry did not take an event (%s); no run is affected, and further losses are counted", refused
            )


def _connect(dsn: str, release: str, environment: str | None, refused: Callable[[str], None]) -> Client | None:
    """The SDK's client with nothing but sending in it; None, and a warning, where that is not possible."""
    try:
        import sentry_sdk  # noqa: PLC0415 - it costs most of a second
        from sentry_sdk.transport import HttpTransport  # noqa: PLC0415

        class ImpatientTransport(HttpTransport):
            """Waits less long, and says what did not arrive."""

            TIMEOUT = _ANSWER_WITHIN

            def on_dropped_event(self, reason: str) -> None:
                """Called for each event that Sentry did not take."""
                refused(reason)

        # it tells of each of the SDK's tries; that an event was lost is told by us
        logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
        client = sentry_sdk.Client(
            dsn=dsn.strip(),
            release=release,
            environment=environment,
            transport=ImpatientTransport,
            **_ONLY_SENDING,
        )
    except Exception as error:
        # the address stays out of the message: it is a secret, or somebody took a secret for it
        logger.warning("%s (%s)", _BROKEN, type(error).__name__)
        return None
    if client.transport is None:
        logger.warning("%s (it is empty)", _BROKEN)
        return None
    return client
