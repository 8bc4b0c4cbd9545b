"""Two versions of one jobs file, and what the database says of the moment when the second came in force."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from replicas import HERE, Fleet, eventually

from scheduler.config.jobs_file import parse
from scheduler.core.model import JobSpec
from scheduler.core.schedule import next_after
from scheduler.store.replicas import SILENCE

MICROSECOND = timedelta(microseconds=1)


def tick(fleet: Fleet, word: str, every: str | None = "300ms", **fields: Any) -> dict[str, Any]:
    """A job whose effect is signed with `word`; fields that are None are left out."""
    entry = {
        "call": "effects:sign",
        "args": {"path": str(fleet.effects), "word": word},
        "every": every,
        "isolation": "thread",
        "overlap": "allow",
    }
    return {key: value for key, value in (entry | fields).items() if value is not None}


def specs(text: str) -> dict[str, JobSpec]:
    """The jobs of a file by name."""
    return {spec.name: spec for spec in parse(text.encode(), "jobs.yaml", HERE / "bodies").jobs}


def ticks(spec: JobSpec | None, after: datetime, upto: datetime) -> list[datetime]:
    """Those in (after, upto]; a job that is not in the file has none."""
    found: list[datetime] = []
    at = after
    if spec is None or spec.schedule is None:
        return found
    while (following := next_after(spec.schedule, at)) is not None and following <= upto:
        found.append(at := following)
    return found


@dataclass(frozen=True, slots=True)
class Switch:
    """When a file came in force: its transaction was at work from `begin` to `end`, by the database's clock."""

    begin: datetime
    end: datetime

    @classmethod
    def to(cls, fleet: Fleet, replica: str) -> Switch:
        """To the file of this replica, which was the first to have it."""
        ((begin, end),) = fleet.sql(
            "SELECT config.registered_at, replica.started_at FROM soloist.replica JOIN soloist.config"
            " ON config.generation = replica.generation WHERE replica.name = %s",
            replica,
        )
        return cls(begin.astimezone(UTC), end.astimezone(UTC))


def handed_over(rows: list[datetime], old: JobSpec | None, new: JobSpec | None, switch: Switch) -> bool:
    """Whether these are the ticks of the one up to some instant of the switch, and of the other from there on.

    All of them, each once, from the first of `rows` to the last. Where the instant lies between two neighbouring ticks
    makes no difference; neighbours are those of both files, for a tick without a row parts two such stretches as well.
    """
    first, (begin, end) = rows[0] - MICROSECOND, (switch.begin, switch.end)
    candidates = {begin, end, *ticks(old, begin, end), *ticks(new, begin, end)}
    return any(
        rows == ticks(old, first, at) + ticks(new, max(at, first), rows[-1])
        for edge in candidates
        for at in (edge - MICROSECOND, edge)
    )


def scheduled(fleet: Fleet, job: str) -> list[datetime]:
    """The ticks of the job that have a row, in order; a tick that had two would stand here twice."""
    rows = fleet.sql(
        "SELECT scheduled_at FROM soloist.run JOIN soloist.job ON job.id = run.job WHERE job.name = %s"
        " AND trigger IN ('schedule', 'catch_up') ORDER BY 1",
        job,
    )
    return [at.astimezone(UTC) for (at,) in rows]


def attempts(fleet: Fleet, job: str) -> list[tuple[str, int, str, datetime, str]]:
    """(run key, number, replica, begin, word that its body wrote) of the job's attempts that have ended.

    Rows first: a body writes before its attempt ends, so whoever has a row has its word by then.
    """
    rows = fleet.sql(
        "SELECT run.run_key, attempt.number, attempt.replica_name, attempt.started_at FROM soloist.attempt"
        " JOIN soloist.run ON run.id = attempt.run JOIN soloist.job ON job.id = run.job WHERE job.name = %s ORDER BY 4",
        job,
    )
    words = {(line[0], line[1], line[2]): line[3] for line in fleet.lines(job)}
    return [(key, n, who, at.astimezone(UTC), words.get((job, key, str(n)), "")) for key, n, who, at in rows]


def goes_on(fleet: Fleet, job: str, more: int = 3, by: str | None = None) -> None:
    """Wait for so many more attempts of the job (by that replica) to end."""

    def done() -> int:
        return sum(by in (None, who) for _, _, who, _, _ in attempts(fleet, job))

    before = done()
    eventually(lambda: done() >= before + more, f"{job} runs{f' at {by}' if by else ''}")


def gone_since(fleet: Fleet, replica: str) -> datetime:
    """From when on this replica no longer counts: it has said so, or has been silent for long enough."""
    ((at,),) = fleet.sql(
        "SELECT COALESCE(stopped_at, seen_at + make_interval(secs => %s)) FROM soloist.replica WHERE name = %s",
        SILENCE,
        replica,
    )
    return at.astimezone(UTC)  # type: ignore[no-any-return]


def database_now(fleet: Fleet) -> datetime:
    ((now,),) = fleet.sql("SELECT clock_timestamp()")
    return now.astimezone(UTC)  # type: ignore[no-any-return]


def passes(fleet: Fleet, instant: datetime) -> None:
    """Wait until the database's clock is past it."""
    eventually(lambda: database_now(fleet) > instant, f"it is past {instant}", 200)


def midday_zone() -> str:
    """A zone in which it is about noon: no test runs across its midnight."""
    hours = 12 - datetime.now(UTC).hour
    return "UTC" if hours == 0 else f"Etc/GMT{-hours:+d}"  # the sign is the other way round there


def in_seconds(seconds: float) -> datetime:
    """An instant on a whole second, as a file can have it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).replace(microsecond=0)


def shown_replicas(fleet: Fleet) -> dict[str, dict[str, Any]]:
    """What `soloist replicas -o json` says, by name."""
    done = subprocess.run(
        [sys.executable, "-m", "scheduler", "replicas", "-o", "json"],
        env={**os.environ, "SOLOIST_DATABASE_URL": fleet.url},
        cwd=HERE.parent,
        capture_output=True,
        check=True,
    )
    return {row["name"]: row for row in json.loads(done.stdout)}
