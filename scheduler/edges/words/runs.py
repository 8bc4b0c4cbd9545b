"""Sentences about replicas, jobs, ticks and runs as they go."""

from __future__ import annotations

import logging

from scheduler.core.events import (
    AttemptEnded,
    AttemptStarted,
    JobPaused,
    JobPlanned,
    JobResumed,
    ReplicaDraining,
    ReplicaStarted,
    ReplicaStopped,
    RunReplaced,
    RunTakenOver,
    TickLost,
    TickSkipped,
    TickWon,
)
from scheduler.core.model import SOLOIST, Outcome, SkipReason, Status, Trigger
from scheduler.core.redaction import cut
from scheduler.edges.words.wording import LONGEST_ERROR, Said, coming, count, instant, say, seconds, some, words

_MOST_PAIRS = 12
_LONGEST_PAIR = 80


@say.register
def _replica_started(event: ReplicaStarted) -> Said:
    what = f"{count(event.jobs, 'job')}, {count(event.seats, 'seat')}, database {event.database}"
    return Said(logging.INFO, f"started: soloist {event.version}, {what}")


@say.register
def _replica_draining(event: ReplicaDraining) -> Said:
    if not event.running:
        return Said(logging.INFO, "stopping: nothing is running here")
    has, them = ("has", "it") if event.running == 1 else ("have", "them")
    names = some(event.jobs)
    what = f"{count(event.running, 'run')}{f' ({names})' if names else ''} {has} {seconds(event.within)} to end"
    return Said(logging.INFO, f"stopping: {what}; a second Ctrl-C (or SIGTERM) hands {them} back at once")


@say.register
def _replica_stopped(event: ReplicaStopped) -> Said:
    facts = [
        (event.handed_back, f"{count(event.handed_back, 'run')} handed back, to go on elsewhere"),
        (event.takeovers, f"{count(event.takeovers, 'run')} taken over from others"),
        (event.leases_lost, f"{count(event.leases_lost, 'lease')} lost"),
        (event.fenced_writes, f"{count(event.fenced_writes, 'outcome')} refused by the fence"),
    ]
    return Said(logging.INFO, "; ".join(["stopped", *(text for number, text in facts if number)]))


@say.register
def _job_planned(event: JobPlanned) -> Said:
    following = coming(event.next_tick, event.no_tick)
    if event.due and event.next_tick is not None:
        following = f"the tick {instant(event.next_tick)} is due now"
    return Said(logging.INFO, f"{_last_run(event)}; {following}")


def _last_run(event: JobPlanned) -> str:
    if event.last_run_key is None or event.last_status is None:
        return "never ran"
    what = f"{event.last_run_key} {words(event.last_status)}"
    what += f" by {event.last_replica}" if event.last_replica else ""
    what += f" at {instant(event.last_finished_at.replace(microsecond=0))}" if event.last_finished_at else ""
    if event.last_status is Status.RUNNING:
        return f"another replica has it: {what}"
    return f"already done: {what}" if event.last_status is Status.SUCCEEDED else f"last run: {what}"


@say.register
def _job_paused(event: JobPaused) -> Said:
    """What a person did is no cause for alarm; what Soloist did by itself somebody has to look into."""
    end = f"until {instant(event.until)}" if event.until else f"until somebody resumes it (soloist resume {event.job})"
    level = logging.WARNING if event.by == SOLOIST else logging.INFO
    return Said(level, f"paused by {event.by} {end}: {cut(event.reason, LONGEST_ERROR)}")


@say.register
def _job_resumed(event: JobResumed) -> Said:
    more = " or more" if event.capped else ""
    took = f"; its pause took {count(event.missed, 'tick')}{more}" if event.missed else ""
    why = f": {cut(event.reason, LONGEST_ERROR)}" if event.reason else ""
    return Said(logging.INFO, f"resumed by {event.by}{took}{why}" if event.by else "resumed: it ticks again")


@say.register
def _tick_won(event: TickWon) -> Said:
    late = " (a late tick)" if event.trigger is Trigger.CATCH_UP else ""
    put_off = f"put off until {seconds(event.delay)} after its tick (jitter)"
    where = {
        Status.RUNNING: "it runs here",
        Status.QUEUED: put_off if event.delay else "queued until a replica has a free seat",
        Status.WAITING: "it waits until the job's active run has ended",
    }.get(event.status, words(event.status))
    return Said(logging.INFO, f"won {event.run_key}{late}: {where}")


@say.register
def _tick_lost(event: TickLost) -> Said:
    """Never more than INFO: it is the normal fate of all replicas but one."""
    winner = "this replica" if event.winner == event.replica else event.winner
    if event.status is Status.SUCCEEDED:
        return Said(logging.INFO, f"already done: {event.run_key} succeeded{f' by {winner}' if winner else ''}")
    if event.status in (None, Status.RUNNING):
        return Said(logging.INFO, f"{event.run_key}: another replica has it{f': {winner}' if winner else ''}")
    by = f" (claimed by {winner})" if winner else ""
    return Said(logging.INFO, f"{event.run_key} has its row already: {words(event.status)}{by}")


@say.register
def _run_replaced(event: RunReplaced) -> Said:
    how = "is asked to end" if event.status is Status.RUNNING else "will not begin"
    return Said(logging.INFO, f"{event.run_key} {how}: a newer tick takes its place")


@say.register
def _tick_skipped(event: TickSkipped) -> Said:
    why = {
        SkipReason.OVERLAP: "another run of this job is in its way",
        SkipReason.MISSED: "no replica was there in time",
        SkipReason.PAUSED: "the job is paused",
        SkipReason.STALE_CONFIG: "the job was changed or removed before it could run",
        SkipReason.JOB: "the job said so itself",
    }[event.reason]
    many = event.missed is not None and event.missed > 1
    what = f"{event.missed} ticks, the last of them {event.run_key}" if many else event.run_key
    return Said(logging.INFO, f"skipped {what}: {why}")


@say.register
def _attempt_started(event: AttemptStarted) -> Said:
    delay = "" if event.start_delay is None else f", {seconds(max(0.0, event.start_delay))} after its tick"
    return Said(logging.INFO, f"started {event.run_key} (attempt {event.attempt}{delay})")


@say.register
def _attempt_ended(event: AttemptEnded) -> Said:
    took = seconds(event.duration)
    match event.status:
        case Status.SUCCEEDED:
            shown = _result(event.result)
            return Said(logging.INFO, f"succeeded {event.run_key} in {took}{f': {shown}' if shown else ''}")
        case Status.QUEUED:
            return _goes_on(event, took)
        case Status.FAILED | Status.TIMED_OUT | Status.LOST:
            limit = event.status is Status.FAILED and event.outcome is Outcome.CRASHED
            why = _for_good(event.status, crash_limit=limit)
            return Said(logging.ERROR, f"{_tried(event)} after {took}, {why}{_error(event)}")
        case _:
            why = f": {cut(event.error_text, LONGEST_ERROR)}" if event.error_text else ""
            return Said(logging.INFO, f"{words(event.status)} {event.run_key} after {took}{why}")


def _goes_on(event: AttemptEnded, took: str) -> Said:
    """The run will have another attempt: worth a look, unless a replica that stops has handed it back."""
    if event.outcome is Outcome.HANDED_BACK:
        return Said(logging.INFO, f"handed back {event.run_key} after {took}: it goes on elsewhere")
    again = "next try at once" if not event.ready_in else f"next try in {seconds(event.ready_in)}"
    return Said(logging.WARNING, f"{_tried(event)} after {took}, {again}{_error(event)}")


def _tried(event: AttemptEnded) -> str:
    return f"{words(event.outcome)} {event.run_key} (attempt {event.attempt})"


def _for_good(status: Status, *, crash_limit: bool) -> str:
    """Why there will be no further attempt. `crash_limit`: only that can have ended it."""
    if status is Status.LOST:
        return "its outcome is unknown and a person has to decide"
    return "no further try, the job's crash limit is reached" if crash_limit else "no further try"


def _error(event: AttemptEnded) -> str:
    """`: ValueError: no paper`; an exception without a text of its own is named once."""
    kind, text = event.error_class or "", event.error_text or ""
    named_twice = text == kind.rpartition(".")[2]
    return "".join(f": {cut(part, LONGEST_ERROR)}" for part in (kind, "" if named_twice else text) if part)


@say.register
def _run_taken_over(event: RunTakenOver) -> Said:
    what = f"{event.run_key} from {event.owner or 'its owner'}"
    why = cut(event.error_text or f"the lease of attempt {event.attempt} was over", LONGEST_ERROR)
    match event.status:
        case Status.QUEUED:
            return Said(logging.WARNING, f"took over {what}, it runs again: {why}")
        case Status.CANCELLED:
            return Said(logging.WARNING, f"took over {what} and cancelled it, as somebody had asked: {why}")
        case _:
            end = "has failed" if event.status is Status.FAILED else f"is {words(event.status)}"
            end += f", {_for_good(event.status, crash_limit=event.status is Status.FAILED)}"
            return Said(logging.ERROR, f"took over {what}, it {end}: {why}")


def _result(result: object) -> str:
    """A small result as `key=value`, inner objects dotted; of a large one, its beginning."""
    if result is None or result in ({}, []):
        return ""
    pairs = list(_pairs("", result))
    shown = " ".join(pairs[:_MOST_PAIRS])
    return shown if len(pairs) <= _MOST_PAIRS else f"{shown} … ({len(pairs)} values)"


def _pairs(name: str, value: object) -> list[str]:
    if isinstance(value, dict) and value:
        return [pair for key, inner in value.items() for pair in _pairs(f"{name}.{key}" if name else str(key), inner)]
    text = cut(str(value), _LONGEST_PAIR)
    return [f"{name}={text}" if name else text]
