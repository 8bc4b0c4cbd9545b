"""Sentences about what goes wrong around the runs: the database, poolers, clocks, lost answers."""

from __future__ import annotations

import logging

from scheduler.core.events import (
    AnswerRecovered,
    ClockAway,
    ClockRight,
    CommitForgotten,
    DatabaseLost,
    DatabaseRegained,
    EngineFailed,
    GuardBusy,
    LeaseLostEvent,
    OutcomeUnwritten,
    PoolerFound,
    PresenceLost,
    PresenceRegained,
    WriteFenced,
)
from scheduler.core.redaction import cut
from scheduler.edges.words.wording import LONGEST_ERROR, Said, say, seconds, words


@say.register
def _lease_lost(event: LeaseLostEvent) -> Said:
    run = f"{event.run_key} (attempt {event.attempt})"
    return Said(logging.WARNING, f"lost the lease of {run}, its body is stopped: {event.reason}")


@say.register
def _write_fenced(event: WriteFenced) -> Said:
    run = f"{event.run_key} (attempt {event.attempt})"
    return Said(logging.WARNING, f"{run} {words(event.outcome)}, but had been taken over: this outcome is discarded")


@say.register
def _outcome_unwritten(event: OutcomeUnwritten) -> Said:
    run = f"{event.run_key} (attempt {event.attempt})"
    what = "but the database stayed away: that is not written, and the run ends as its lease does"
    return Said(logging.ERROR, f"{run} {words(event.outcome)}, {what}")


@say.register
def _database_lost(event: DatabaseLost) -> Said:
    return Said(logging.ERROR, f"lost the database ({event.room}), trying again: {cut(event.error, LONGEST_ERROR)}")


@say.register
def _database_regained(event: DatabaseRegained) -> Said:
    tries = "1 try" if event.tries == 1 else f"{event.tries} tries"
    return Said(logging.INFO, f"the database is back after {seconds(event.after)} and {tries}")


@say.register
def _engine_failed(event: EngineFailed) -> Said:
    error = cut(event.error, LONGEST_ERROR)
    return Said(logging.CRITICAL, f"the engine's {event.room} died, so this replica stops: {error}")


@say.register
def _answer_recovered(event: AnswerRecovered) -> Said:
    what = "the claim of" if event.what == "claim" else "the outcome of"
    return Said(logging.INFO, f"the answer was lost, but {what} {event.run_key} (attempt {event.attempt}) is ours")


@say.register
def _commit_forgotten(event: CommitForgotten) -> Said:
    what = f"the database no longer knows {event.run_key} (attempt {event.attempt}) as {words(event.status)}"
    why = "a failover to a server that lacked the last commits? Its tick may run twice"
    return Said(logging.ERROR, f"{what}: {why}")


@say.register
def _guard_busy(event: GuardBusy) -> Said:
    by = f" ({event.holder})" if event.holder else ""
    return Said(logging.INFO, f"skipped for now: another replica runs it{by}: {event.job} {event.run_key}")


@say.register
def _presence_lost(event: PresenceLost) -> Said:
    what = "the session that guards what runs here has ended"
    then = f"without a new one in {seconds(event.within)} it is stopped"
    return Said(logging.WARNING, f"{what}; {then}: {cut(event.error, LONGEST_ERROR)}")


@say.register
def _presence_regained(event: PresenceRegained) -> Said:
    return Said(logging.INFO, f"a new session guards what runs here, after {seconds(event.after)}")


@say.register
def _pooler_found(event: PoolerFound) -> Said:
    way = "SOLOIST_DIRECT_DATABASE_URL leads past it"
    return Said(logging.WARNING, f"{event.variable} leads through a pooler: {event.consequence} ({way})")


@say.register
def _clock_away(event: ClockAway) -> Said:
    side = "ahead of" if event.offset > 0 else "behind"
    what = f"this machine's clock is {seconds(abs(event.offset))} {side} the database's"
    if event.claims:
        return Said(logging.WARNING, f"{what}: ticks are not affected, but jobs that ask for the time are")
    return Said(logging.ERROR, f"{what}: this replica claims nothing until it is set right")


@say.register
def _clock_right(event: ClockRight) -> Said:
    return Said(logging.INFO, f"this machine's clock is right again ({event.offset:+.3f} s)")
