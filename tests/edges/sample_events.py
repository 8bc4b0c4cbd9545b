"""An event of each kind, and what a person reads of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from scheduler.core import events as ev
from scheduler.core.model import Outcome, SkipReason, Status, Trigger
from scheduler.core.words import NoTick

TICK = datetime(2026, 11, 29, 3, tzinfo=UTC)
RUN_ID = UUID("01920000-0000-7000-8000-000000000001")
RUN: dict[str, Any] = {
    "replica": "replica-1",
    "job": "daily-registry",
    "run_key": "2026-11-29",
    "run_id": RUN_ID,
    "scheduled_at": TICK,
    "trace_id": RUN_ID.hex,
}


def ended(status: Status, outcome: Outcome = Outcome.FAILED, **more: Any) -> ev.AttemptEnded:
    """An attempt's end, 0.61 s after its start."""
    return ev.AttemptEnded(**{**RUN, "duration": 0.61, "outcome": outcome, "status": status, **more})


def taken_over(status: Status, **more: Any) -> ev.RunTakenOver:
    return ev.RunTakenOver(**{**RUN, "owner": "replica-3", "status": status, **more})


def lost_tick(**more: Any) -> ev.TickLost:
    return ev.TickLost(**{**RUN, "winner": "replica-2", "status": Status.RUNNING, **more})


BOOM = {"error_class": "ValueError", "error_text": "line 1\nline 2"}
RESULT = {"file": "registry-2026-11-28.csv", "payments": 2, "totals": {"GBP": {"count": 2, "amount": "12.00"}}}
R = {"replica": "replica-1"}

SAMPLES: list[tuple[ev.Event, str, str]] = [
    (
        ev.ReplicaStarted(**R, version="0.1.0", jobs=3, seats=16, database="u:***@db/app"),
        "info",
        "started: soloist 0.1.0, 3 jobs, 16 seats, database u:***@db/app",
    ),
    (
        ev.JobPaused(**R, job="daily-registry", by="ann", reason="a migration", until=TICK),
        "info",
        "paused by ann until 2026-11-29T03:00:00Z: a migration",
    ),
    (
        ev.JobPaused(**R, job="daily-registry", by="soloist", reason="3 runs in a row failed, the last: boom"),
        "warning",
        "warning: paused by soloist until somebody resumes it (soloist resume daily-registry): "
        "3 runs in a row failed, the last: boom",
    ),
    (
        ev.JobResumed(**R, job="daily-registry", by="soloist", reason="until 2026-11-29T03:00:00Z", missed=3),
        "info",
        "resumed by soloist; its pause took 3 ticks: until 2026-11-29T03:00:00Z",
    ),
    (
        ev.JobResumed(**R, job="daily-registry"),
        "info",
        "resumed: it ticks again",
    ),
    (
        ev.JobResumed(**R, job="daily-registry", by="ann", reason="", missed=10_000, capped=True),
        "info",
        "resumed by ann; its pause took 10000 ticks or more",
    ),
    (ev.ReplicaDraining(**R, running=0, within=25.0), "info", "stopping: nothing is running here"),
    (
        ev.ReplicaDraining(**R, running=1, within=25.0),
        "info",
        "stopping: 1 run has 25 s to end; a second Ctrl-C (or SIGTERM) hands it back at once",
    ),
    (
        ev.ReplicaDraining(**R, running=3, within=180.0, jobs=("registry", "registry", "cleanup")),
        "info",
        "stopping: 3 runs (registry, cleanup) have 3 min to end; a second Ctrl-C (or SIGTERM) hands them back at once",
    ),
    (
        ev.ReplicaDraining(**R, running=5, within=25.0, jobs=("a", "b", "c", "d", "e")),
        "info",
        "stopping: 5 runs (a, b, c and 2 more) have 25 s to end; a second Ctrl-C (or SIGTERM) hands them back at once",
    ),
    (ev.ReplicaStopped(**R, handed_back=0), "info", "stopped"),
    (ev.ReplicaStopped(**R, handed_back=2), "info", "stopped; 2 runs handed back, to go on elsewhere"),
    (
        ev.ReplicaStopped(**R, handed_back=1, fenced_writes=1, leases_lost=2, takeovers=1),
        "info",
        "stopped; 1 run handed back, to go on elsewhere; 1 run taken over from others; 2 leases lost;"
        " 1 outcome refused by the fence",
    ),
    (ev.ReplicaStopped(**R, handed_back=0, takeovers=3), "info", "stopped; 3 runs taken over from others"),
    (
        ev.JobPlanned(**R, job="daily-registry", next_tick=TICK),
        "info",
        "never ran; next tick 2026-11-29T03:00:00Z",
    ),
    (
        ev.JobPlanned(**R, job="once", next_tick=None, no_tick=NoTick.BY_HAND),
        "info",
        "never ran; it has no schedule",
    ),
    (ev.JobPlanned(**R, job="once", next_tick=None, no_tick=NoTick.OVER), "info", "never ran; its schedule is over"),
    (ev.JobPlanned(**R, job="once", next_tick=None, no_tick=NoTick.PAUSED), "info", "never ran; it is paused"),
    (
        ev.JobPlanned(**R, job="once", next_tick=None, no_tick=NoTick.SUPERSEDED),
        "info",
        "never ran; the jobs file in force has another spec of it, so it stands still here",
    ),
    (
        ev.JobPlanned(**R, job="once", next_tick=None, no_tick=NoTick.ABSENT),
        "info",
        "never ran; the jobs file in force does not have it, so it stands still here",
    ),
    (
        ev.JobPlanned(**R, job="once", next_tick=None, no_tick=NoTick.SICK),
        "info",
        "never ran; nobody can say when it ticks, so it stands still here",
    ),
    (
        ev.JobPlanned(**R, job="once", next_tick=None, no_tick=NoTick.AT_REST),
        "info",
        "never ran; it stands still here",
    ),
    (
        ev.JobPlanned(**R, job="daily-registry", next_tick=TICK, due=True),
        "info",
        "never ran; the tick 2026-11-29T03:00:00Z is due now",
    ),
    (
        ev.JobPlanned(
            **R,
            job="daily-registry",
            next_tick=TICK.replace(day=30),
            last_run_key="2026-11-29",
            last_status=Status.SUCCEEDED,
            last_replica="replica-2",
            last_finished_at=TICK.replace(second=4, microsecond=5),
        ),
        "info",
        "already done: 2026-11-29 succeeded by replica-2 at 2026-11-29T03:00:04Z; next tick 2026-11-30T03:00:00Z",
    ),
    (
        ev.JobPlanned(
            **R, job="daily-registry", next_tick=TICK, last_run_key="2026-11-28", last_status=Status.TIMED_OUT
        ),
        "info",
        "last run: 2026-11-28 timed out; next tick 2026-11-29T03:00:00Z",
    ),
    (
        ev.JobPlanned(
            **R,
            job="daily-registry",
            next_tick=TICK.replace(day=30),
            last_run_key="2026-11-29",
            last_status=Status.RUNNING,
            last_replica="replica-2",
        ),
        "info",
        "another replica has it: 2026-11-29 running by replica-2; next tick 2026-11-30T03:00:00Z",
    ),
    (ev.PlanChanged(**R, added=("a", "b"), removed=("c",)), "info", "jobs added a, b; removed c"),
    (
        ev.PlanReloaded(**R, file="jobs.yaml", config_hash="ab", generation=4, in_force=True, differing=1),
        "info",
        "jobs.yaml was edited: 1 job concerned; generation 4 is in force",
    ),
    (
        ev.PlanReloaded(**R, file="jobs.yaml", config_hash="ab", generation=4, in_force=False, differing=0),
        "warning",
        "warning: jobs.yaml was edited: no job differs; generation 4 is not the newest one: this replica stands back "
        "where the two differ",
    ),
    (
        ev.JobEdited(**R, job="a", change="changed", what=("timeout: 60.0 → 90.0",), next_tick=TICK),
        "info",
        "changed: timeout: 60.0 → 90.0; next tick 2026-11-29T03:00:00Z",
    ),
    (
        ev.JobSick(**R, job="a", error="ValueError: unknown timezone"),
        "error",
        "error: nobody can say when it ticks (ValueError: unknown timezone): it stands still here, the others tick on",
    ),
    (ev.JobEdited(**R, job="a", change="added"), "info", "added; no tick to come"),
    (
        ev.JobEdited(**R, job="a", change="changed", what=("every: 5s → 10s",), no_tick=NoTick.PAUSED),
        "info",
        "changed: every: 5s → 10s; it is paused",
    ),
    (
        ev.FileSuperseded(**R, generation=4, newest=6),
        "info",
        "a newer jobs file is in force, generation 6; this replica's is generation 4:"
        " it runs only the jobs that both files have alike",
    ),
    (ev.FileInForce(**R, generation=4), "info", "this replica's jobs file is in force again, generation 4"),
    (
        ev.PlanReloaded(
            **R,
            file="jobs.yaml",
            config_hash="ab",
            generation=4,
            in_force=True,
            differing=0,
            what=("retention.skipped: 7d → 1d, and what is older goes with the next purge",),
        ),
        "info",
        "jobs.yaml was edited: retention.skipped: 7d → 1d, and what is older goes with the next purge;"
        " no job differs; generation 4 is in force",
    ),
    (
        ev.JobEdited(**R, job="a", change="removed"),
        "info",
        "removed; it ticks no more, a run that is active goes on",
    ),
    (
        ev.PlanRefused(**R, file="jobs.yaml", problems=("jobs.yaml:3:5: jobs.a.call: is missing",)),
        "error",
        "error: jobs.yaml was edited and is not taken, the former plan goes on: 1 problem: "
        "jobs.yaml:3:5: jobs.a.call: is missing",
    ),
    (
        ev.PlanUnread(**R, file="jobs.yaml", after=21.5),
        "warning",
        "warning: jobs.yaml: a look at it has lasted 22 s so far: its disk does not answer, or a module that it names "
        "does not finish its import; the former plan goes on, and no edit is seen until the look ends",
    ),
    (
        ev.PlanDelayed(**R, file="jobs.yaml", error="somebody holds a lock"),
        "warning",
        "warning: jobs.yaml was edited and is in order, but cannot be put in force yet (somebody holds a lock): "
        "it is tried on and on",
    ),
    (ev.PlanRestored(**R, file="jobs.yaml"), "info", "jobs.yaml is again what this replica works by"),
    (
        ev.ZoneDataDiffers(**R, mine="2026.2", others=("2026.1",)),
        "warning",
        "warning: zone data 2026.2 here, 2026.1 elsewhere: where they differ, a tick runs when the first sees it",
    ),
    (ev.TickWon(**RUN, status=Status.RUNNING, trigger=Trigger.SCHEDULE), "info", "won 2026-11-29: it runs here"),
    (
        ev.TickWon(**RUN, status=Status.QUEUED, trigger=Trigger.CATCH_UP),
        "info",
        "won 2026-11-29 (a late tick): queued until a replica has a free seat",
    ),
    (
        ev.TickWon(**RUN, status=Status.WAITING, trigger=Trigger.SCHEDULE),
        "info",
        "won 2026-11-29: it waits until the job's active run has ended",
    ),
    (
        ev.TickWon(**RUN, status=Status.QUEUED, trigger=Trigger.SCHEDULE, delay=37.0),
        "info",
        "won 2026-11-29: put off until 37 s after its tick (jitter)",
    ),
    (
        ev.RunReplaced(**RUN, status=Status.RUNNING),
        "info",
        "2026-11-29 is asked to end: a newer tick takes its place",
    ),
    (
        ev.RunReplaced(**RUN, status=Status.CANCELLED),
        "info",
        "2026-11-29 will not begin: a newer tick takes its place",
    ),
    (lost_tick(), "info", "2026-11-29: another replica has it: replica-2"),
    (lost_tick(winner=None, status=None), "info", "2026-11-29: another replica has it"),
    (lost_tick(status=Status.SUCCEEDED), "info", "already done: 2026-11-29 succeeded by replica-2"),
    (
        lost_tick(status=Status.SUCCEEDED, winner="replica-1"),
        "info",
        "already done: 2026-11-29 succeeded by this replica",
    ),
    (lost_tick(status=Status.LOST), "info", "2026-11-29 has its row already: lost (claimed by replica-2)"),
    (
        ev.TickSkipped(**RUN, reason=SkipReason.OVERLAP),
        "info",
        "skipped 2026-11-29: another run of this job is in its way",
    ),
    (
        ev.TickSkipped(**RUN, reason=SkipReason.MISSED, missed=41),
        "info",
        "skipped 41 ticks, the last of them 2026-11-29: no replica was there in time",
    ),
    (ev.AttemptStarted(**RUN, start_delay=0.0123), "info", "started 2026-11-29 (attempt 1, 0.0123 s after its tick)"),
    (ev.AttemptStarted(**{**RUN, "attempt": 2}), "info", "started 2026-11-29 (attempt 2)"),
    (
        ended(Status.SUCCEEDED, Outcome.SUCCEEDED, result=RESULT),
        "info",
        "succeeded 2026-11-29 in 0.61 s: file=registry-2026-11-28.csv payments=2"
        " totals.GBP.count=2 totals.GBP.amount=12.00",
    ),
    (ended(Status.SUCCEEDED, Outcome.SUCCEEDED), "info", "succeeded 2026-11-29 in 0.61 s"),
    (
        ended(Status.QUEUED, ready_in=60.0, **BOOM),
        "warning",
        r"warning: failed 2026-11-29 (attempt 1) after 0.61 s, next try in 60 s: ValueError: line 1\nline 2",
    ),
    (
        ended(Status.QUEUED, Outcome.CRASHED, ready_in=0.0, error_text="killed by signal 9"),
        "warning",
        "warning: crashed 2026-11-29 (attempt 1) after 0.61 s, next try at once: killed by signal 9",
    ),
    (
        ended(Status.QUEUED, Outcome.HANDED_BACK),
        "info",
        "handed back 2026-11-29 after 0.61 s: it goes on elsewhere",
    ),
    (
        ended(Status.FAILED, **BOOM),
        "error",
        r"error: failed 2026-11-29 (attempt 1) after 0.61 s, no further try: ValueError: line 1\nline 2",
    ),
    (
        ended(Status.FAILED, error_class="jobs.pay.NoPaper", error_text="NoPaper"),
        "error",
        "error: failed 2026-11-29 (attempt 1) after 0.61 s, no further try: jobs.pay.NoPaper",
    ),
    (
        ended(Status.FAILED, Outcome.CRASHED, attempt=3, error_text="killed by signal 11 (SIGSEGV)"),
        "error",
        "error: crashed 2026-11-29 (attempt 3) after 0.61 s, no further try, the job's crash limit is reached:"
        " killed by signal 11 (SIGSEGV)",
    ),
    (
        ended(Status.TIMED_OUT, Outcome.TIMED_OUT, error_text="ran longer than 1 h"),
        "error",
        "error: timed out 2026-11-29 (attempt 1) after 0.61 s, no further try: ran longer than 1 h",
    ),
    (
        ended(Status.LOST, Outcome.CRASHED),
        "error",
        "error: crashed 2026-11-29 (attempt 1) after 0.61 s, its outcome is unknown and a person has to decide",
    ),
    (ended(Status.CANCELLED, Outcome.CANCELLED), "info", "cancelled 2026-11-29 after 0.61 s"),
    (
        ended(Status.SKIPPED, Outcome.SKIPPED, error_text="bank holiday"),
        "info",
        "skipped 2026-11-29 after 0.61 s: bank holiday",
    ),
    (
        taken_over(Status.QUEUED),
        "warning",
        "warning: took over 2026-11-29 from replica-3, it runs again: the lease of attempt 1 was over",
    ),
    (
        taken_over(Status.QUEUED, error_text="the lease of attempt 1 was over: its replica died"),
        "warning",
        "warning: took over 2026-11-29 from replica-3, it runs again:"
        " the lease of attempt 1 was over: its replica died",
    ),
    (
        taken_over(Status.CANCELLED),
        "warning",
        "warning: took over 2026-11-29 from replica-3 and cancelled it, as somebody had asked:"
        " the lease of attempt 1 was over",
    ),
    (
        taken_over(Status.LOST),
        "error",
        "error: took over 2026-11-29 from replica-3, it is lost,"
        " its outcome is unknown and a person has to decide: the lease of attempt 1 was over",
    ),
    (
        taken_over(Status.FAILED, owner=None, attempt=3, error_text="the lease of attempt 3 was over"),
        "error",
        "error: took over 2026-11-29 from its owner, it has failed, no further try, the job's crash limit is reached:"
        " the lease of attempt 3 was over",
    ),
    (
        ev.LeaseLostEvent(**RUN, reason="the run was taken over"),
        "warning",
        "warning: lost the lease of 2026-11-29 (attempt 1), its body is stopped: the run was taken over",
    ),
    (
        ev.WriteFenced(**RUN, outcome=Outcome.SUCCEEDED),
        "warning",
        "warning: 2026-11-29 (attempt 1) succeeded, but had been taken over: this outcome is discarded",
    ),
    (
        ev.OutcomeUnwritten(**RUN, outcome=Outcome.TIMED_OUT),
        "error",
        "error: 2026-11-29 (attempt 1) timed out, but the database stayed away:"
        " that is not written, and the run ends as its lease does",
    ),
    (
        ev.DatabaseLost(**R, room="keeper", error="connection refused"),
        "error",
        "error: lost the database (keeper), trying again: connection refused",
    ),
    (
        ev.DatabaseRegained(**R, room="keeper", after=3.25, tries=4),
        "info",
        "the database is back after 3.25 s and 4 tries",
    ),
    (
        ev.AnswerRecovered(**RUN, what="outcome"),
        "info",
        "the answer was lost, but the outcome of 2026-11-29 (attempt 1) is ours",
    ),
    (
        ev.CommitForgotten(**RUN, status=Status.SUCCEEDED),
        "error",
        "error: the database no longer knows 2026-11-29 (attempt 1) as succeeded:"
        " a failover to a server that lacked the last commits? Its tick may run twice",
    ),
    (
        ev.GuardBusy(**RUN, holder="replica-3"),
        "info",
        "skipped for now: another replica runs it (replica-3): daily-registry 2026-11-29",
    ),
    (
        ev.PresenceLost(**R, error="the connection was closed", within=1.0),
        "warning",
        "warning: the session that guards what runs here has ended; without a new one in 1 s it is stopped:"
        " the connection was closed",
    ),
    (
        ev.PresenceRegained(**R, after=0.05),
        "info",
        "a new session guards what runs here, after 0.05 s",
    ),
    (
        ev.PoolerFound(**R, variable="SOLOIST_DATABASE_URL", consequence="no notifications"),
        "warning",
        "warning: SOLOIST_DATABASE_URL leads through a pooler: no notifications"
        " (SOLOIST_DIRECT_DATABASE_URL leads past it)",
    ),
    (
        ev.ClockAway(**R, offset=-5.0, claims=True),
        "warning",
        "warning: this machine's clock is 5 s behind the database's:"
        " ticks are not affected, but jobs that ask for the time are",
    ),
    (
        ev.ClockAway(**R, offset=300.0, claims=False),
        "error",
        "error: this machine's clock is 5 min ahead of the database's:"
        " this replica claims nothing until it is set right",
    ),
    (
        ev.ClockRight(**R, offset=0.01),
        "info",
        "this machine's clock is right again (+0.010 s)",
    ),
    (
        ev.EngineFailed(**R, room="ticker", error="ValueError: x"),
        "critical",
        "critical: the engine's ticker died, so this replica stops: ValueError: x",
    ),
]
