"""What must hold of the tables after every step, whatever the step was: the promises, said as facts about rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from scene import Scene

from scheduler.core.model import TERMINAL, JobSpec
from scheduler.core.schedule import due, next_after, run_key, tick_key
from scheduler.core.spec import spec_from_dict

Row = dict[str, Any]
OF_TICKS = ("schedule", "catch_up")
STEPS = {
    "waiting": {"queued", "cancelled", "skipped"},
    "queued": {"running", "cancelled", "skipped"},
    "running": {"queued", *TERMINAL},
}
"""From state to state, in one step."""


@dataclass(slots=True)
class Owed:
    """A stretch of time in which one spec of a job was in force: each of its ticks in (start, end] needs an account.

    `checked`: up to here each has one. `end` None: it is in force still.
    """

    spec: JobSpec
    checked: datetime
    end: datetime | None = None


@dataclass(slots=True)
class Accounts:
    """All that was ever written of one job, also what was purged since."""

    keys: set[str] = field(default_factory=set)
    stretches: list[tuple[datetime, datetime]] = field(default_factory=list)
    owed: list[Owed] = field(default_factory=list)
    ticks: dict[datetime, UUID] = field(default_factory=dict)
    periods: dict[str, UUID] = field(default_factory=dict)


class Ledger:
    """`look` after each step. It remembers how things stood before, and what was purged."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.jobs: dict[int, Row] = {}
        self.runs: dict[UUID, Row] = {}
        self.attempts: dict[tuple[UUID, int], str] = {}
        self.accounts: dict[int, Accounts] = defaultdict(Accounts)
        self._looked_at: datetime | None = None  # by the database's clock: whatever changed since came later

    def look(self, *, purged: bool = False) -> None:
        """Read everything, hold it against what was there before, and take it over. Raises AssertionError."""
        jobs = {row["id"]: row for row in self._scene.sql("SELECT * FROM soloist.job")}
        runs = {row["id"]: row for row in self._scene.sql("SELECT * FROM soloist.run")}
        attempts = {(r["run"], r["number"]): r["outcome"] for r in self._scene.sql("SELECT * FROM soloist.attempt")}
        self._rows_stay(runs, attempts, purged=purged)
        self._one_active(runs)
        for id_, row in runs.items():
            self._step_is_lawful(row, self.runs.get(id_), jobs)
            self._attempts_are_whole(row, attempts)
        for id_, job in jobs.items():
            self._follow(job, self.jobs.get(id_))
        self.jobs, self.runs, self.attempts = jobs, runs, attempts
        self._looked_at = self._scene.sql("SELECT clock_timestamp() AS now")[0]["now"]

    def _rows_stay(self, runs: dict[UUID, Row], attempts: dict[tuple[UUID, int], str], *, purged: bool) -> None:
        gone = [row for id_, row in self.runs.items() if id_ not in runs]
        assert purged or not gone, f"rows are gone: {gone}"
        assert all(row["status"] in TERMINAL for row in gone), f"a live row was purged: {gone}"
        for key, outcome in self.attempts.items():
            assert key[0] not in runs or attempts.get(key) == outcome, f"the history of {key} was changed"

    @staticmethod
    def _one_active(runs: dict[UUID, Row]) -> None:
        active = Counter(r["job"] for r in runs.values() if r["exclusive"] and r["status"] in ("queued", "running"))
        assert all(number == 1 for number in active.values()), f"more than one active run: {active}"

    def _step_is_lawful(self, row: Row, before: Row | None, jobs: dict[int, Row]) -> None:
        if before is None:
            self._birth_is_lawful(row, jobs[row["job"]])
            return
        if before["status"] in TERMINAL:
            assert row == before, f"what had ended was changed: {before} -> {row}"
            return
        assert row["status"] == before["status"] or row["status"] in STEPS[before["status"]], (before, row)
        risen = row["attempt"] - before["attempt"]
        began = row["status"] == "running" and before["status"] == "queued"
        assert risen == int(began), f"the fence: {before} -> {row}"

    def _birth_is_lawful(self, row: Row, job: Row) -> None:
        accounts, known = self.accounts[job["id"]], self.jobs.get(job["id"])
        accounts.keys.add(row["run_key"])
        counts = row["result"] is not None and "missed" in row["result"]
        if counts:
            first = _oldest() if row["result"].get("or_more") else datetime.fromisoformat(row["result"]["since"])
            accounts.stretches.append((first, row["scheduled_at"]))
            _counts_its_own(row, known)
        if row["trigger"] in OF_TICKS:
            assert known is not None
            assert row["scheduled_at"] > known["watermark"], f"a tick of the past: {row}"
            assert row["spec_hash"] == known["spec_hash"], f"a stale spec's: {row}"
            assert row["status"] == "skipped" or not _rests(known, row["scheduled_at"]), (
                f"a tick of a job at rest: {row}"
            )
            other = row["id"] if counts else accounts.ticks.setdefault(row["scheduled_at"], row["id"])
            assert other == row["id"], f"one tick twice: {row}"
        if row["status"] != "skipped" and _is_period(row["run_key"]):
            other = accounts.periods.setdefault(row["run_key"], row["id"])
            assert other == row["id"], f"one period twice: {row}"

    @staticmethod
    def _attempts_are_whole(row: Row, attempts: dict[tuple[UUID, int], str]) -> None:
        ended = row["attempt"] - (row["status"] == "running")
        assert all((row["id"], number) in attempts for number in range(1, ended + 1)), (
            f"an attempt without record: {row}"
        )
        assert (row["id"], ended + 1) not in attempts, f"an attempt that never was: {row}"

    def _follow(self, job: Row, before: Row | None) -> None:
        """What the job owes, and whether all of it has been accounted for."""
        accounts, watermark = self.accounts[job["id"]], job["watermark"]
        if before is not None:
            assert watermark >= before["watermark"], f"a watermark went back: {before} -> {job}"
        same = before is not None and all(before[key] == job[key] for key in ("spec_hash", "removed_at"))
        if not same:
            since = self._looked_at or watermark
            if accounts.owed and accounts.owed[-1].end is None:
                accounts.owed[-1].end = max(watermark, since)  # all that came before the change, paused or not
            if job["removed_at"] is None:
                assert before is None or watermark >= since, f"a change counts from before it: {before} -> {job}"
                accounts.owed.append(Owed(spec_from_dict(job["spec"]), watermark))
        for owed in accounts.owed:
            _settle(accounts, owed, watermark, job["name"])
        accounts.owed = [owed for owed in accounts.owed if owed.end is None]


def _settle(accounts: Accounts, owed: Owed, watermark: datetime, name: str) -> None:
    upto, schedule = owed.end or watermark, owed.spec.schedule
    assert schedule is not None
    while (tick := next_after(schedule, owed.checked)) is not None and tick <= upto:
        owed.checked = max([tick, *(last for first, last in accounts.stretches if first <= tick <= last)])
        if owed.checked > tick:
            continue
        keys = {tick_key(schedule, tick), run_key(schedule, tick, owed.spec.once_per, owed.spec.timezone)}
        stands = any(first <= tick <= last for first, last in accounts.stretches)
        assert stands or keys & accounts.keys, f"{name}: the tick {tick} was lost; its job's watermark is {watermark}"
    owed.checked = max(owed.checked, upto)


def _rests(job: Row, at: datetime) -> bool:
    """Whether the job, as it was, has no tick at that instant: also a pause whose end nobody has seen is over then."""
    over = job["paused_until"] is not None and job["paused_until"] < at
    return job["removed_at"] is not None or (job["paused_at"] is not None and not over)


def _counts_its_own(row: Row, known: Row | None) -> None:
    """The row that stands for many says how many: ticks of the spec that was in force, no others."""
    assert known is not None
    note, schedule = row["result"], spec_from_dict(known["spec"]).schedule
    assert schedule is not None
    found = due(schedule, datetime.fromisoformat(note["since"]) - timedelta(microseconds=1), row["scheduled_at"], 0)
    assert note.get("or_more") or found.older == note["missed"], f"{known['name']} had {found.older} ticks: {row}"


def _is_period(key: str) -> bool:
    return "T" not in key and not key.startswith("manual") and "~" not in key


def _oldest() -> datetime:
    return datetime(1, 1, 1, tzinfo=UTC)
