"""What Sentry is told of: runs that ended badly for good, and what keeps jobs from running until a person acts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scheduler.core.events import AttemptEnded, Event, JobPaused, JobSick, PlanRefused, RunTakenOver
from scheduler.core.model import SOLOIST, Outcome, Status
from scheduler.core.redaction import Redaction, cut, printable
from scheduler.edges.words import instant

if TYPE_CHECKING:
    from sentry_sdk.types import Event as SentryEvent

_TAIL_LINES = 40
_LONGEST_TAIL = 8000
_LONGEST_TAG = 200  # Sentry's own limit
_UNSAID = "(no error text)"
_BAD_ENDS = frozenset({Status.FAILED, Status.TIMED_OUT, Status.LOST})


class Trouble(NamedTuple):
    """What Sentry is told. `subject`: the job or the file; with `kind` it makes the issue's identity."""

    subject: str
    kind: str
    text: str
    tags: Mapping[str, str | None]
    contexts: Mapping[str, Any]
    output_tail: str | None = None
    level: Literal["error", "warning"] = "error"


def report(event: Event, redaction: Redaction) -> SentryEvent | None:
    """What is sent of a trouble: no secret in any of its texts, none longer than Sentry takes. None: it is none."""
    safe = redaction.event(event)
    trouble = trouble_of(safe)
    if trouble is None:
        return None
    tags = {name: value for name, value in trouble.tags.items() if value} | {"replica": safe.replica}
    made: SentryEvent = {
        "level": trouble.level,
        "platform": "python",
        "logger": "soloist",
        "transaction": trouble.subject,
        "server_name": safe.replica,
        "exception": {"values": [{"type": trouble.kind, "value": cut(trouble.text or _UNSAID)}]},
        "fingerprint": [trouble.subject, trouble.kind],
        "tags": {name: cut(printable(value), _LONGEST_TAG) for name, value in tags.items()},
        "contexts": dict(trouble.contexts),
    }
    if trouble.output_tail is not None:
        made["extra"] = {"output_tail": _last_lines(trouble.output_tail)}
    return made


@singledispatch
def trouble_of(_event: Event) -> Trouble | None:
    """The event as what Sentry is told of; None: it is not, or not yet."""
    return None


@trouble_of.register
def _attempt_ended(event: AttemptEnded) -> Trouble | None:
    if event.status not in _BAD_ENDS:  # it will be repeated, or it ended well
        return None
    kind = event.error_class or event.outcome.value.title().replace("_", "")
    more = {"duration": f"{event.duration:.3f} s"}
    return _bad_end(event, event.outcome, kind, more, event.output_tail)


@trouble_of.register
def _run_taken_over(event: RunTakenOver) -> Trouble | None:
    if event.status not in _BAD_ENDS:
        return None
    # only a crash ends a run by a take-over: the job forbids to repeat it, or it crashed too often
    kind = "Lost" if event.status is Status.LOST else "Crashed"
    return _bad_end(event, Outcome.CRASHED, kind, {"owner": event.owner})


def _bad_end(
    event: AttemptEnded | RunTakenOver, outcome: Outcome, kind: str, more: dict[str, Any], output_tail: str = ""
) -> Trouble:
    tags = {
        "job": event.job,
        "run_key": event.run_key,
        "run_id": str(event.run_id) if event.run_id else None,
        "attempt": str(event.attempt),
        "outcome": outcome.value,
        "status": event.status.value,
    }
    run = {
        "scheduled_at": instant(event.scheduled_at) if event.scheduled_at else None,
        "trace_id": event.trace_id,
        **more,
    }
    return Trouble(event.job, kind, event.error_text or "", tags, {"run": run}, output_tail)


@trouble_of.register
def _plan_refused(event: PlanRefused) -> Trouble | None:
    text = "\n".join(("The former plan goes on.", *event.problems))
    return Trouble(event.file, "PlanRefused", text, {"file": event.file}, {})


@trouble_of.register
def _job_sick(event: JobSick) -> Trouble | None:
    return Trouble(event.job, "JobSick", event.error, {"job": event.job}, {})


@trouble_of.register
def _job_paused(event: JobPaused) -> Trouble | None:
    """A person who pauses a job knows of it; nobody does when it was paused for its bad ends."""
    if event.by != SOLOIST:
        return None
    return Trouble(event.job, "JobPaused", event.reason, {"job": event.job}, {}, level="warning")


def _last_lines(output: str) -> str:
    return "\n".join(output.splitlines()[-_TAIL_LINES:])[-_LONGEST_TAIL:]
