"""Ticks that came while nobody was there: which run, which are recorded, and that each is accounted for."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from local import Local
from replicas import away_from_a_tick, eventually, jobs_file
from scene import Scene

from scheduler.core.events import TickSkipped

Start = Callable[..., Local]


@pytest.fixture(autouse=True)
def _no_tick_amid_the_test() -> None:
    """Those that are counted come every ten minutes, or at multiples of that."""
    away_from_a_tick(600, 30)


def _jobs(tmp_path: Path, misfire: dict[str, Any], **fields: Any) -> str:
    entry = {"call": "effects:append", "every": "10m", "isolation": "thread", "args": {"path": str(tmp_path / "seen")}}
    return jobs_file(a={**entry, "misfire": misfire, **fields})


def _absent(start: Start, facts: Scene, jobs: str, hours: float) -> Local:
    """A replica saw the job, went away for so many hours, and is back."""
    start(jobs).close()
    facts.sql("DELETE FROM soloist.run")
    facts.sql("UPDATE soloist.job SET watermark = clock_timestamp() - make_interval(secs => %s)", hours * 3600)
    return start(jobs)


def _settled(facts: Scene, ticks: int | None = None, period: float = 600) -> list[dict[str, Any]]:
    def calm() -> bool:
        rows = facts.rows()
        recent = "SELECT 1 FROM soloist.job WHERE watermark > clock_timestamp() - make_interval(secs => %s)"
        known = facts.sql(recent, period + 60)
        return bool(known) and all(row["finished_at"] for row in rows) and (ticks is None or len(rows) >= ticks)

    eventually(calm, "every tick is accounted for")
    return facts.rows()


@pytest.mark.parametrize(("policy", "ran"), [("latest", 1), ("all", 12), ("skip", 0)])
def test_the_policy_says_which_missed_ticks_run(
    start: Start, facts: Scene, tmp_path: Path, policy: str, ran: int
) -> None:
    local = _absent(start, facts, _jobs(tmp_path, {"policy": policy, "grace": "1s"}), 2)
    rows = _settled(facts, 12)
    recent = [row for row in rows if row["trigger"] == "schedule" and row["status"] == "succeeded"]
    late = [row for row in rows if row["trigger"] == "catch_up"]
    skipped = [row for row in rows if row["skip_reason"] == "missed"]
    assert len(late) == ran
    assert {row["status"] for row in late} <= {"succeeded"}
    assert len(late) + len(skipped) + len(recent) == len(rows) in (12, 13)
    if ran == 1:
        assert late[0]["scheduled_at"] == max(row["scheduled_at"] for row in late + skipped)
    steps = {(b["scheduled_at"] - a["scheduled_at"]).total_seconds() for a, b in itertools.pairwise(rows)}
    assert steps == {600.0}
    assert len(local.of(TickSkipped)) == len(skipped)


def test_catch_up_runs_of_an_exclusive_job_follow_each_other_in_order(
    start: Start, facts: Scene, tmp_path: Path
) -> None:
    _absent(start, facts, _jobs(tmp_path, {"policy": "all", "grace": "1s"}), 1)
    _settled(facts, 6)
    lines = [line.split()[1] for line in (tmp_path / "seen").read_text().splitlines()]
    assert lines == sorted(lines)
    assert len(lines) == len(set(lines)) >= 6
    overlaps = facts.sql(
        "SELECT 1 FROM soloist.run a JOIN soloist.run b ON a.id < b.id AND a.started_at < b.finished_at"
        " AND b.started_at < a.finished_at WHERE a.started_at IS NOT NULL"
    )
    assert overlaps == []


def test_nothing_older_than_within_runs(start: Start, facts: Scene, tmp_path: Path) -> None:
    _absent(start, facts, _jobs(tmp_path, {"policy": "all", "grace": "1s", "within": "35m"}), 3)
    rows = _settled(facts, 18)
    assert len([row for row in rows if row["trigger"] == "catch_up"]) in (3, 4)
    assert facts.sql("SELECT 1 FROM soloist.run WHERE started_at - scheduled_at > interval '36 min'") == []


def test_beyond_the_limit_one_row_stands_for_many(start: Start, facts: Scene, tmp_path: Path) -> None:
    _absent(start, facts, _jobs(tmp_path, {"policy": "latest", "grace": "1s", "limit": 5}), 24 * 30)
    rows = _settled(facts, 6)
    assert len(rows) == 6
    oldest = rows[0]
    assert (oldest["status"], oldest["skip_reason"]) == ("skipped", "missed")
    assert oldest["result"]["missed"] in range(6 * 24 * 30 - 6, 6 * 24 * 30 - 3)


def test_an_absence_of_25_years_is_decided_at_once(start: Start, facts: Scene, tmp_path: Path) -> None:
    _absent(start, facts, _jobs(tmp_path, {"policy": "latest", "limit": 3}, every="1m"), 24 * 365 * 25)
    assert len(_settled(facts, 4)) in (4, 5)


def test_of_several_within_grace_the_newest_runs(start: Start, facts: Scene, tmp_path: Path) -> None:
    """One alone can run (`overlap: skip`), and `misfire: latest` says which. The others' rows name it."""
    _absent(start, facts, _jobs(tmp_path, {"policy": "latest", "grace": "1h"}), 0.6)
    rows = _settled(facts, 3)
    assert [row["status"] for row in rows] == [*["skipped"] * (len(rows) - 1), "succeeded"]
    older, newest = rows[:-1], rows[-1]
    assert len(older) in (2, 3)
    assert {row["skip_reason"] for row in older} == {"overlap"}
    assert {row["result"]["blocked_by"] for row in older} == {str(newest["id"])}


def test_late_but_within_grace_is_no_misfire(start: Start, facts: Scene, tmp_path: Path) -> None:
    _absent(start, facts, _jobs(tmp_path, {"policy": "skip", "grace": "20m"}), 0.25)
    rows = _settled(facts, 1)
    assert "succeeded" in {row["status"] for row in rows}
    assert {row["trigger"] for row in rows} == {"schedule"}


def test_first_sight_waits_by_default(start: Start, facts: Scene, tmp_path: Path) -> None:
    local = start(_jobs(tmp_path, {}, every="24h"))
    assert facts.rows() == []
    assert [job.next for job in local.parts.plan.jobs().values()] != [None]


@pytest.mark.parametrize("schedule", [{"every": "24h"}, {"every": None, "schedule": "0 3 * * *"}])
def test_first_sight_run_does_the_tick_before(
    start: Start, facts: Scene, tmp_path: Path, schedule: dict[str, Any]
) -> None:
    fields = {name: value for name, value in schedule.items() if value}
    entry = {"call": "effects:append", "isolation": "thread", "args": {"path": str(tmp_path / "seen")}}
    jobs = jobs_file(a={**entry, **fields, "misfire": {"first_sight": "run", "within": "25h"}})
    start(jobs)
    eventually(lambda: [row["status"] for row in facts.rows()] == ["succeeded"], "the latest tick runs")
    start(jobs, name="second")
    eventually(lambda: facts.sql("SELECT count(*) AS n FROM soloist.replica")[0]["n"] == 2, "another has started")
    assert len(facts.rows()) == 1


def test_once_per_day_runs_one_of_two_ticks(start: Start, facts: Scene, tmp_path: Path) -> None:
    """Both ticks of a day have the day as their key; the second is accounted for by the first one's row."""
    jobs = _jobs(tmp_path, {"policy": "all", "grace": "1s", "within": "72h"}, every="12h", once_per="day")
    _absent(start, facts, jobs, 48)
    rows = _settled(facts, 2, 12 * 3600)
    ran = [row for row in rows if row["status"] == "succeeded"]
    assert len(ran) in (2, 3)
    assert all(len(row["run_key"]) == len("2026-11-29") for row in ran)
    assert max(Counter(row["run_key"] for row in rows).values()) == 1


@pytest.mark.case("C038")
def test_run_keys_are_whole_planned_instants(start: Start, facts: Scene, tmp_path: Path) -> None:
    entry = {"call": "effects:append", "isolation": "thread", "args": {"path": str(tmp_path / "seen")}}
    misfire = {"first_sight": "run", "within": "25h"}
    london = {"schedule": "0 3 * * *", "timezone": "Europe/London", "misfire": misfire}
    start(jobs_file(daily={**entry, **london}, tick={**entry, "every": "1h", "misfire": misfire}))
    eventually(lambda: len(facts.rows("daily")) == 1 and facts.rows("tick"), "both ran")
    assert facts.rows("daily")[0]["run_key"].endswith("T03:00:00[Europe/London]")
    assert facts.rows("tick")[0]["run_key"].endswith(":00:00Z")
    assert facts.sql("SELECT 1 FROM soloist.run WHERE extract(microseconds FROM scheduled_at) <> 0") == []
