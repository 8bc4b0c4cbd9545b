"""The sentences of `soloist explain`: what a run's row, or the lack of one, says to a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from scheduler.cli.output import first_line, instant, second, span
from scheduler.core.model import SkipReason, Status
from scheduler.core.schedule import Schedule, latest_upto, next_after

if TYPE_CHECKING:
    from scheduler.store.jobs import FullJob

Row = Mapping[str, Any]
_STILL = {Status.RUNNING: "running", Status.QUEUED: "queued", Status.WAITING: "waiting"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a tick. `answer`: one word; `text`: sentences, a line each. `run`: the row that says so."""

    answer: str
    text: str
    run: Row | None = None

    def row(self, job: str, at: datetime, key: str | None) -> dict[str, Any]:
        """Flat, for `-o json`."""
        found = self.run or {}
        note = found.get("result") if found.get("skip_reason") else None
        counted = note if isinstance(note, dict) else {}
        return {
            "job": job,
            "at": at,
            "run_key": found.get("run_key", key),
            "answer": self.answer,
            "status": found.get("status"),
            "skip_reason": found.get("skip_reason"),
            "run": found.get("id"),
            "replica": found.get("replica"),
            "attempt": found.get("attempt"),
            "trigger": found.get("trigger"),
            "started_at": found.get("started_at"),
            "finished_at": found.get("finished_at"),
            "missed": counted.get("missed"),
            "since": counted.get("since"),
            "text": self.text,
        }


def of_run(run: Row, attempts: Sequence[Row], at: datetime, newer: Row | None = None) -> Answer:
    """A run that was not skipped. `newer`: the one that replaced it, where that is still there."""
    status = Status(run["status"])
    lines = [_how_it_stands(run, status, at), *_of_another_tick(run, at), *_replaced(run, newer)]
    if run["retry_of"] is not None:
        which = "this" if run["scheduled_at"] == at else "that"
        lines.append(f"it is a second run of {which} tick ({run['trigger']}, by {run['triggered_by']})")
    elif run["triggered_by"]:
        lines.append(f"it was asked for by {run['triggered_by']} ({run['trigger']})")
    for one in attempts if len(attempts) > 1 or status not in (Status.SUCCEEDED, Status.RUNNING) else ():
        why = f": {first_line(one['error_text'])}" if one["error_text"] else ""
        lines.append(f"attempt {one['number']} on {one['replica_name'] or 'a replica'}: {_words(one['outcome'])}{why}")
    # what gave way before it began has ended and never ran
    word = "ran" if run["started_at"] is not None else "replaced" if replaced_by(run) else str(status)
    return Answer(_STILL.get(status, word), "\n".join(lines), run)


def replaced_by(run: Row) -> str | None:
    """The id of the newer run that this one gave way to before an attempt of it (`overlap: replace`)."""
    note = run["result"] if run["status"] == Status.CANCELLED else None
    return note.get("replaced_by") if isinstance(note, dict) else None


def _replaced(run: Row, newer: Row | None) -> list[str]:
    if replaced_by(run) is None:
        return []
    never = "it never ran: " if run["started_at"] is None else ""
    other = f"the newer tick's run {_named(newer)}" if newer else "a newer tick's run, which is purged by now"
    return [f"{never}it was replaced by {other}"]


def _of_another_tick(run: Row, at: datetime) -> list[str]:
    """Of a run whose key is a period's, which holds the tick that was asked for."""
    if run["scheduled_at"] == at:
        return []
    own = second(run["scheduled_at"])
    return [f"its tick is {own}: its key {run['run_key']} holds the one asked for too, which has no run of its own"]


def _named(run: Row) -> str:
    return f"{run['run_key']} (run {run['id']}, {_words(run['status'])})"


def _how_it_stands(run: Row, status: Status, at: datetime) -> str:
    who = run["replica"] or "a replica"
    match status:
        case Status.RUNNING:
            return f"running on {who} since {second(run['started_at'])}, attempt {run['attempt']}"
        case Status.QUEUED:
            ready = f"ready at {second(run['ready_at'])}"
            return f"queued, {ready}: it begins when a replica that holds the job's spec has a free seat"
        case Status.WAITING:
            return "waiting: it may not run beside its job's active run, and begins when that has ended"
        case _:
            ended = f"{_words(status)} at {second(run['finished_at'])}"
            if run["started_at"] is None:
                return f"{ended}, before it began"
            own = run["scheduled_at"]  # of several ticks that the run's key holds, the one that it began for
            which = "its tick" if own == at else f"its tick {second(own)}"
            late = span(max(0.0, (run["started_at"] - own).total_seconds()))
            return f"{ended} on {who}, attempt {run['attempt']}, begun {late} after {which}"


def of_skipped(run: Row, more: Row | None, job: FullJob, at: datetime) -> Answer:
    """A row that says why its tick did not run. `more`: the run in its way, or the pause's line in the audit."""
    lines = [_skipped(run, more, job, run["scheduled_at"]), *_of_another_tick(run, at), *_stands_for_many(run)]
    return Answer("skipped", "\n".join(lines), run)


def _skipped(run: Row, more: Row | None, job: FullJob, tick: datetime) -> str:
    match SkipReason(run["skip_reason"]):
        case SkipReason.OVERLAP:
            other = _named(more) if more else "it is purged by now"
            return f"skipped: another run of the job was in its way: {other}"
        case SkipReason.MISSED:
            late = span((run["created_at"] - tick).total_seconds())
            rule = f"misfire.policy {job.spec.misfire.policy}, grace {span(job.spec.misfire.grace)}"
            return f"missed: a replica came to it {late} late, at {second(run['created_at'])} ({rule})"
        case SkipReason.PAUSED:
            return f"the job was paused{pause_of(more)}"
        case SkipReason.STALE_CONFIG:
            return f"skipped: the job was removed or changed before it could run, at {second(run['finished_at'])}"
        case SkipReason.JOB:
            why = first_line(run["last_error"] or "")
            return f"its own function skipped it, on {run['replica'] or 'a replica'}: {why}"


def of_counted(run: Row, more: Row | None, job: FullJob, at: datetime) -> Answer:
    """A tick among those that one row stands for: how late it was seen is its own, not the newest one's."""
    return Answer("counted", "\n".join(["it did not run", _skipped(run, more, job, at), *_stands_for_many(run)]), run)


def _stands_for_many(run: Row) -> list[str]:
    note = run["result"] if isinstance(run["result"], dict) else {}
    if "since" not in note or (note.get("missed") or 0) < 2:
        return []
    first = second(datetime.fromisoformat(note["since"]))
    more = " or more" if note.get("or_more") else ""
    return [f"its row stands for {note['missed']}{more} ticks, from {first} to {second(run['scheduled_at'])}"]


def pause_of(line: Row | None) -> str:
    """` by ann at …: a migration`, of a line of the audit; nothing where there is none."""
    if line is None:
        return ""
    end = f" until {second(line['until'])}" if line["until"] else ""
    return f" by {line['who']} at {second(line['at'])}{end}: {line['why']}"


def paused_now(job: FullJob) -> str:
    """Who has paused the job, since when and why."""
    assert job.paused_at is not None
    end = f" until {second(job.paused_until)}" if job.paused_until else ""
    return f"the job is paused since {second(job.paused_at)}{end} by {job.paused_by}: {job.paused_reason}"


def neighbours(schedule: Schedule | None, at: datetime) -> str:
    """The ticks before and after an instant that is none."""
    if schedule is None:
        return "the job has no schedule: it runs when it is triggered"
    before, after = latest_upto(schedule, at), next_after(schedule, at)
    near = [f"the one {side} is {instant(tick)}" for side, tick in (("before", before), ("after", after)) if tick]
    return ", ".join(near) or "it has none at all"


def _words(word: str) -> str:
    return str(word).replace("_", " ")
