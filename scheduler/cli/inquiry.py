"""Finds out what became of one tick: the job's rows first, then the plan of that time, then who was to claim it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from scheduler.cli import answers
from scheduler.cli.answers import Answer, Row
from scheduler.cli.output import second, span
from scheduler.config.jobs_file import parse
from scheduler.core.errors import ConfigInvalid
from scheduler.core.model import JobSpec, SkipReason, Status
from scheduler.core.schedule import latest_upto, run_key, tick_key
from scheduler.store import evidence
from scheduler.store.audit import read_last

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scheduler.store.jobs import FullJob

RETRIES = 9  # `<key>~2` … as many are looked for


@dataclass(frozen=True, slots=True)
class Then:
    """The jobs file that was the newest at the time. `spec`: the job's in it; None: it had not the job, or (`readable`
    False) this version cannot read the file.
    """

    generation: int
    spec: JobSpec | None
    readable: bool = True


class Inquiry:
    """One question: `job` at `at`."""

    def __init__(self, connection: Connection, job: FullJob, at: datetime) -> None:
        self._connection, self._job, self._at = connection, job, at
        found = evidence.file_at(connection, at)
        self._then = None if found is None else _read(found, job.name)
        spec = self._then.spec if self._then is not None else None
        self._spec = job.spec if spec is None or at > job.database_now else spec
        self._near = evidence.rows_of_ticks_from(connection, job.id, at)

    @property
    def key(self) -> str | None:
        """The run key that the tick has, if it is one."""
        return _keys(self._spec, self._at, of_tick=True)[0] if self._is_tick(self._spec) else None

    def answer(self) -> Answer:
        """The first of the ways to look that finds something."""
        ways: tuple[Callable[[], Answer | None], ...] = (
            self._by_its_row,
            self._by_a_row_for_many,
            self._removed,
            self._unknown,
            self._no_tick,
            self._to_come,
            self._by_a_pause,
            self._purged,
        )
        for way in ways:
            if (found := way()) is not None:
                return found
        return self._unclaimed()

    def _by_its_row(self) -> Answer | None:
        specs = (self._spec, self._job.spec)
        base = {key for spec in specs for key in _keys(spec, self._at, of_tick=self._is_tick(spec))}
        keys = base | {f"{key}~{number}" for key in base for number in range(2, RETRIES + 1)}
        rows = {row["id"]: row for row in evidence.runs_by_key(self._connection, self._job.id, keys)}
        rows |= {row["id"]: row for row in self._near if row["scheduled_at"] == self._at}
        if not rows:
            return None
        # of a tick that was skipped and then run by hand, the run is what one wants to know of
        run = max(rows.values(), key=lambda row: (row["status"] != Status.SKIPPED, row["id"]))
        if run["status"] == Status.SKIPPED:
            return answers.of_skipped(run, self._behind(run), self._job, self._at)
        attempts = evidence.read_attempts_of(self._connection, run["id"])
        return answers.of_run(run, attempts, self._at, self._behind(run))

    def _by_a_row_for_many(self) -> Answer | None:
        for row in self._near if self._is_tick(self._spec) else ():
            note = row["result"] if row["skip_reason"] in (SkipReason.MISSED, SkipReason.PAUSED) else None
            since = note.get("since") if isinstance(note, dict) else None
            if since is not None and datetime.fromisoformat(since) <= self._at < row["scheduled_at"]:
                return answers.of_counted(row, self._behind(row), self._job, self._at)
        return None

    def _behind(self, run: Row) -> Row | None:
        """What else a row's end rests on: the run that was in its way or took its place, or who had paused the job."""
        if run["skip_reason"] == SkipReason.PAUSED:
            return read_last(self._connection, self._job.name, "pause", run["created_at"])
        other = answers.replaced_by(run)
        if run["skip_reason"] == SkipReason.OVERLAP and isinstance(run["result"], dict):
            other = run["result"].get("blocked_by")
        return evidence.read_blocker(self._connection, UUID(other)) if other else None

    def _removed(self) -> Answer | None:
        gone = self._job.removed_at
        if gone is None or gone > self._at:
            return None
        return Answer("unknown", f"the job was removed from the plan at {second(gone)}, and has no ticks since")

    def _unknown(self) -> Answer | None:
        if self._at > self._job.database_now or (self._then and (self._then.spec or not self._then.readable)):
            return None
        which = (
            "there was no jobs file yet"
            if self._then is None
            else f"the file of then {_file(self._then)} had no such job"
        )
        for found in evidence.files_after(self._connection, self._at, self._job.name):
            then = _read(found, self._job.name)
            if then.spec is not None:
                first = f"the first one with it came at {second(found['registered_at'])}, generation {then.generation}"
                return Answer("unknown", f"{which}; {first}, and a new job's ticks count from its first sight on")
        return None if self._then is None else Answer("unknown", which)

    def _no_tick(self) -> Answer | None:
        if self._is_tick(self._spec):
            return None
        lines = [f"no tick of its schedule; {answers.neighbours(self._spec.schedule, self._at)}"]
        if self._spec.schedule != self._job.spec.schedule:
            assert self._then is not None
            what = "it would be one" if self._is_tick(self._job.spec) else "it is none either"
            lines.append(f"that is by the file of then {_file(self._then)}; by the schedule in force now {what}")
        return Answer("not_a_tick", "\n".join(lines))

    def _to_come(self) -> Answer | None:
        left = (self._at - self._job.database_now).total_seconds()
        if left <= 0:
            return None
        lines = [f"still to come, in {span(left)}"]
        if self._job.paused_at is not None:
            over = self._job.paused_until is not None and self._job.paused_until < self._at
            then = (
                "that is over by then"
                if over
                else f"it will not run unless it is resumed: soloist resume {self._job.name}"
            )
            lines.append(f"{answers.paused_now(self._job)}; {then}")
        misfire = self._job.spec.misfire
        lines.append(
            f"where no replica is there within {span(misfire.grace)} of it, misfire.policy {misfire.policy} decides "
            f"(within {span(misfire.within)})"
        )
        lines += _nobody(self._live())
        return Answer("future", "\n".join(lines))

    def _by_a_pause(self) -> Answer | None:
        job = self._job
        if job.paused_at is not None and self._at > job.watermark:
            return Answer(
                "paused", f"{answers.paused_now(job)}\nits ticks leave one row, with their number, when it is resumed"
            )
        last = read_last(self._connection, job.name, "pause", self._at)
        ended = read_last(self._connection, job.name, "resume", self._at)
        if last is None or (ended is not None and ended["at"] > last["at"]):
            return None
        return Answer("paused", f"the job was paused{answers.pause_of(last)}\nno row counts its ticks (any more)")

    def _purged(self) -> Answer | None:
        kept = evidence.shortest_retention(self._connection)
        if kept is None or self._at > self._job.watermark or self._age() < kept:
            return None
        return Answer(
            "purged", f"there is no row: it is {span(self._age())} ago, and finished runs are kept from {span(kept)} on"
        )

    def _unclaimed(self) -> Answer:
        if self._at <= self._job.watermark:
            why = "its schedule was put in force after it, or its row was deleted"
            return Answer(
                "unclaimed",
                f"there is no row, though the job is accounted for up to {second(self._job.watermark)}: {why}",
            )
        live = self._live()
        lines = [f"it was due {span(self._age())} ago, and nobody has claimed it"]
        lines += [
            f"{one['name']} is live: generation {one['generation']}, holds {one['holds']}, "
            f"clock {one['clock_offset']:+.3f}s"
            for one in live
        ]
        return Answer("unclaimed", "\n".join([*lines, *_nobody(live)]))

    def _live(self) -> list[Row]:
        return [*evidence.who_may_claim(self._connection, self._job.id, self._job.spec_hash)]

    def _age(self) -> float:
        return (self._job.database_now - self._at).total_seconds()

    def _is_tick(self, spec: JobSpec) -> bool:
        return spec.schedule is not None and latest_upto(spec.schedule, self._at) == self._at


def _nobody(live: list[Row]) -> list[str]:
    """Where none of the live replicas would claim it."""
    if any(one["holds"] == "this spec" for one in live):
        return []
    return [f"no replica is live{' that holds the spec in force' if live else ''}: start one (soloist serve)"]


def _keys(spec: JobSpec, at: datetime, *, of_tick: bool) -> tuple[str, ...]:
    """The run key and the tick's own. An instant that is no tick has not its period's: that run is none of its own."""
    if spec.schedule is None:
        return ()
    own = tick_key(spec.schedule, at)
    return (run_key(spec.schedule, at, spec.once_per, spec.timezone), own) if of_tick else (own,)


def _read(found: dict[str, Any], name: str) -> Then:
    try:
        plan = parse(found["content"].encode(), "jobs.yaml", Path())
    except ConfigInvalid:
        return Then(found["generation"], None, readable=False)
    return Then(found["generation"], next((spec for spec in plan.jobs if spec.name == name), None))


def _file(then: Then) -> str:
    return f"(generation {then.generation})"
