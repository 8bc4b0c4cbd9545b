"""Sentry: one event for each run that ended badly for good. Nothing here can delay a run or a shutdown for long."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from scheduler.core.events import AttemptEnded, Event, RunTakenOver
from scheduler.core.model import Outcome, Status
from scheduler.core.redaction import Redaction, cut, printable
from scheduler.edges.words import instant

if TYPE_CHECKING:
    from sentry_sdk import Client
    from sentry_sdk.types import Event as SentryEvent

QUEUE = 100
"""Events that wait at the most; a mass failure beyond it is counted, not kept."""

_ANSWER_WITHIN = 5  # seconds for one request
_FLUSH_WITHIN = 120  # seconds, more than the SDK's few tries of a request take
_TAIL_LINES = 40
_LONGEST_TAIL = 8000
_LONGEST_TAG = 200  # Sentry's own limit
_UNSAID = "(no error text)"
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
_BAD_ENDS = frozenset({Status.FAILED, Status.TIMED_OUT, Status.LOST})

logger = logging.getLogger("soloist.sentry")


class _Failure(NamedTuple):
    """What both kinds of bad end have in common."""

    event: AttemptEnded | RunTakenOver
    outcome: str
    error_class: str
    output_tail: str = ""


class SentryListener:
    """Reports runs that failed, timed out or were lost for good. Attempts that will be repeated are not reported.

    A call only puts the event into a bounded queue; one daemon thread makes and sends what Sentry gets. `dsn`: a
    broken one is said once in the log, and then nothing is sent. `release`: `soloist@0.1.0`. `environment`: None takes
    Sentry's own default. The values to mask are read from the process's environment, once.
    """

    def __init__(self, dsn: str, release: str, environment: str | None = None) -> None:
        self._redaction = Redaction({**os.environ, "SENTRY_DSN": dsn})
        self._waiting: deque[_Failure] = deque()
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
        """Queue the event if it is a run's bad end. Never waits for the network."""
        failure = _failure_of(event)
        if failure is None or self._client is None:
            return
        with self._changed:
            if self._closing or len(self._waiting) >= QUEUE:
                self._dropped += 1
                return
            self._waiting.append(failure)
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
        while (failure := self._next()) is not None:
            self._refused = None
            try:
                client.capture_event(self._report_of(failure))
                client.flush(timeout=_FLUSH_WITHIN)  # one at a time: the one bounded queue is ours
            except Exception as error:
                self._refused = type(error).__name__
            self._account(self._refused)
        client.close(timeout=0.1)

    def _next(self) -> _Failure | None:
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

    def _report_of(self, failure: _Failure) -> SentryEvent:
        event = self._redaction.event(failure.event)
        text = self._redaction.text(failure.error_class)
        tags: dict[str, str | None] = {
            "job": event.job,
            "run_key": event.run_key,
            "run_id": str(event.run_id) if event.run_id else None,
            "attempt": str(event.attempt),
            "replica": event.replica,
            "outcome": failure.outcome,
            "status": event.status.value,
        }
        run: dict[str, Any] = {
            "scheduled_at": instant(event.scheduled_at) if event.scheduled_at else None,
            "trace_id": event.trace_id,
        }
        if isinstance(event, AttemptEnded):
            run["duration"] = f"{event.duration:.3f} s"
        else:
            run["owner"] = event.owner
        return {
            "level": "error",
            "platform": "python",
            "logger": "soloist",
            "transaction": event.job,
            "server_name": event.replica,
            "exception": {"values": [{"type": text, "value": cut(event.error_text or _UNSAID)}]},
            "fingerprint": [event.job, text],
            "tags": {name: cut(printable(value), _LONGEST_TAG) for name, value in tags.items() if value},
            "contexts": {"run": run},
            "extra": {"output_tail": _last_lines(self._redaction.text(failure.output_tail))},
        }


def _failure_of(event: Event) -> _Failure | None:
    """The event as a bad end, or None: it is none, or none yet."""
    if not isinstance(event, AttemptEnded | RunTakenOver) or event.status not in _BAD_ENDS:
        return None
    if isinstance(event, AttemptEnded):
        return _Failure(event, event.outcome.value, event.error_class or _class_of(event.outcome), event.output_tail)
    # only a crash ends a run by a take-over: the job forbids to repeat it, or it crashed too often
    return _Failure(event, Outcome.CRASHED.value, "Lost" if event.status is Status.LOST else "Crashed")


def _class_of(outcome: Outcome) -> str:
    return outcome.value.title().replace("_", "")


def _last_lines(output: str) -> str:
    return "\n".join(output.splitlines()[-_TAIL_LINES:])[-_LONGEST_TAIL:]


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
