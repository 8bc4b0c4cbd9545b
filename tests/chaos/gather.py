"""Gathers the evidence of a storm: from the file of effects, the journals, and the database."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from chaos.evidence import Attempt, Body, Count, Entry, History, Rules, Run
from replicas import Fleet, Replica

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ORPHANED = "the answer to the claim was lost"

Marks = dict[str, datetime]
"""Job → up to where its ticks have rows."""


def watermarks(fleet: Fleet) -> Marks:
    return dict(fleet.sql("SELECT name, watermark FROM soloist.job"))


def gather(fleet: Fleet, rules: Mapping[str, Rules], every: float, before: Marks, after: Marks) -> History:
    """Everything that is known, once nothing runs any more. `before`, `after`: between which ticks were owed."""
    return History(
        rules=rules,
        expected={job: grid(before[job], after[job], every) for job in rules},
        runs=_runs(fleet),
        attempts=[
            Attempt(*row) for row in fleet.sql("SELECT run::text, number, outcome, replica_name FROM soloist.attempt")
        ],
        bodies=bodies(fleet.lines()),
        effects=fleet.sql("SELECT run::text, attempt FROM public.effect"),
        journal=_journal(fleet),
        counts=_counts(fleet),
    )


def grid(after: datetime, upto: datetime, every: float) -> list[datetime]:
    """The instants on the grid of `every` seconds since the epoch in (after, upto]: a calendar of our own."""
    first = math.floor((after - EPOCH) / timedelta(seconds=every)) + 1
    last = math.floor((upto - EPOCH) / timedelta(seconds=every))
    return [EPOCH + timedelta(seconds=every * number) for number in range(first, last + 1)]


def bodies(lines: list[list[str]]) -> list[Body]:
    """One for each `begin`; a body is told from another of the same attempt by its process and its thread's begin."""
    found: dict[tuple[str, ...], list[Body]] = {}
    for what, job, key, attempt, pid, at in lines:
        traces = found.setdefault((job, key, attempt, pid), [])
        if what == "begin":
            traces.append(Body(job, key, int(attempt), float(at), float(at), False))
        else:
            last = traces[-1]
            traces[-1] = Body(job, key, last.attempt, last.begun, float(at), what == "end")
    return [body for traces in found.values() for body in traces]


def _runs(fleet: Fleet) -> list[Run]:
    rows = fleet.sql(
        "SELECT run.id::text, name, run_key, scheduled_at, status, attempt, crashes, skip_reason,"
        " CASE WHEN skip_reason = 'missed' THEN (result ->> 'missed')::int END"
        " FROM soloist.run JOIN soloist.job ON job.id = run.job ORDER BY run.id"
    )
    return [Run(*row[:-1], row[-1] or 1) for row in rows]


def _journal(fleet: Fleet) -> list[Entry]:
    return [
        Entry(
            replica.name, event["event"], event["run_id"], event["attempt"], event.get("outcome"), event.get("status")
        )
        for replica in fleet.replicas
        for event in replica.events()
        if event.get("run_id")
    ]


def _counts(fleet: Fleet) -> list[Count]:
    rows = fleet.sql("SELECT name, fenced_writes, leases_lost, takeovers, stopped_at IS NOT NULL FROM soloist.replica")
    orderly = {replica.name for replica in fleet.replicas if _went_in_good_order(replica)}
    return [Count(*row[:4], final=row[4] and row[0] in orderly) for row in rows if row[0] != "planner"]


def _went_in_good_order(replica: Replica) -> bool:
    """Whoever loses the database while it drains may still hear of a refusal after it has said its last word."""
    said = [event["event"] for event in replica.events("ReplicaDraining", "DatabaseLost", "ReplicaStopped")]
    return said[-2:] == ["ReplicaDraining", "ReplicaStopped"]


def seen(fleet: Fleet) -> Counter[str]:
    """What must have happened for a storm to prove anything, and what else did."""
    events: Counter[str] = Counter(event["event"] for replica in fleet.replicas for event in replica.events())
    handed_back = "SELECT count(*) FROM soloist.attempt WHERE error_text LIKE %s"
    orphans = int(fleet.sql(handed_back, ORPHANED + "%")[0][0])
    outcomes: dict[str, Any] = dict(fleet.sql("SELECT outcome, count(*) FROM soloist.attempt GROUP BY 1"))
    return Counter(
        {
            "takeovers": events["RunTakenOver"],
            "fenced writes": events["WriteFenced"],
            "unclear commits": events["AnswerRecovered"] + orphans,
            "leases lost": events["LeaseLostEvent"],
            "outages": events["DatabaseLost"],
            "runs": int(fleet.sql("SELECT count(*) FROM soloist.run")[0][0]),
            "bodies": len(fleet.lines("begin")),
            **{f"attempts {outcome}": number for outcome, number in outcomes.items()},
        }
    )
