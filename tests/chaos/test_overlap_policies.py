"""What ticks do beside a run that takes longer than their period, with real replicas and real bodies."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from replicas import Fleet, eventually, jobs_file

JOB = "long"


def _job(fleet: Fleet, overlap: str, **fields: Any) -> str:
    hold = {"path": str(fleet.effects), "gate": str(fleet.gate)}
    return jobs_file(long={"call": "effects:hold", "every": "500ms", "args": hold, "overlap": overlap, **fields})


def _counts(fleet: Fleet) -> dict[str, int]:
    return dict(fleet.sql("SELECT status, count(*) FROM soloist.run GROUP BY status"))


def _bodies(fleet: Fleet) -> list[tuple[str, float, float]]:
    """(run key, begin, end) of each body that has ended, by what it wrote itself; in the order they began."""
    spans: dict[tuple[str, str], list[float]] = {}
    for line in fleet.lines():
        spans.setdefault((line[2], line[3]), []).append(float(line[-1]))
    return sorted(((key, min(times), max(times)) for (key, _), times in spans.items()), key=lambda one: one[1])


def _never_two_at_once(fleet: Fleet) -> bool:
    return all(earlier[2] <= later[1] for earlier, later in pairwise(_bodies(fleet)))


@pytest.mark.case("C067")
def test_queue_lets_one_tick_wait_and_start_when_the_run_ends(fleet: Fleet) -> None:
    fleet.start(_job(fleet, "queue")).ready()
    fleet.start(_job(fleet, "queue")).ready()
    eventually(lambda: _counts(fleet).get("skipped", 0) >= 3, "three ticks were skipped")
    counts = _counts(fleet)
    assert (counts["running"], counts["waiting"]) == (1, 1)
    rows = fleet.sql("SELECT run_key, status FROM soloist.run ORDER BY scheduled_at")
    assert [status for _, status in rows[:2]] == ["running", "waiting"], "the first one waits, not the newest"
    fleet.gate.touch()
    eventually(lambda: len(_bodies(fleet)) >= 2, "the one that waited has run")
    assert [key for key, _, _ in _bodies(fleet)[:2]] == [key for key, _ in rows[:2]]
    assert _never_two_at_once(fleet)


def test_queue_all_lets_each_tick_wait_its_turn(fleet: Fleet) -> None:
    fleet.start(_job(fleet, "queue_all")).ready()
    fleet.start(_job(fleet, "queue_all")).ready()
    eventually(lambda: _counts(fleet).get("waiting", 0) >= 4, "four ticks wait")
    keys = [key for (key,) in fleet.sql("SELECT run_key FROM soloist.run ORDER BY scheduled_at LIMIT 5")]
    fleet.gate.touch()
    eventually(lambda: len(_bodies(fleet)) >= 5, "all of them have run")
    assert [key for key, _, _ in _bodies(fleet)[:5]] == keys, "in the order of their ticks"
    assert _never_two_at_once(fleet)
    assert "skipped" not in _counts(fleet)


def test_replace_cancels_what_runs_for_the_newest_tick(fleet: Fleet) -> None:
    """The owner hears of it at its next renewal; the newest tick begins once the old body is gone."""
    fleet.start(_job(fleet, "replace")).ready()
    fleet.start(_job(fleet, "replace")).ready()
    eventually(lambda: _counts(fleet).get("cancelled", 0) >= 4, "four runs gave way")
    fleet.gate.touch()
    eventually(lambda: _counts(fleet).get("succeeded", 0) >= 1, "the newest one is not replaced any more")
    assert _never_two_at_once(fleet)
    first = fleet.sql(
        "SELECT status, trigger FROM soloist.run WHERE skip_reason IS DISTINCT FROM 'overlap'"
        " ORDER BY scheduled_at LIMIT 1"
    )  # of two that were due at once the older is skipped
    assert first == [("cancelled", "schedule")]
    silent = fleet.sql(
        "SELECT run_key FROM soloist.run WHERE status = 'cancelled' AND NOT coalesce(result ? 'replaced_by', false)"
        " AND NOT EXISTS (SELECT FROM soloist.attempt WHERE attempt.run = run.id)"
    )
    assert silent == [], "each says how it ended: by its body, or before it began"


@pytest.mark.parametrize("overlap", ["queue", "queue_all", "replace"])
def test_a_kill_leaves_no_tick_waiting_for_ever(fleet: Fleet, overlap: str) -> None:
    """The owner dies while others wait for it: whoever takes over goes on with them."""
    first = fleet.start(_job(fleet, overlap)).ready()
    eventually(lambda: fleet.lines("begin"), "it runs")
    second = fleet.start(_job(fleet, overlap)).ready()
    eventually(lambda: len(fleet.sql("SELECT 1 FROM soloist.run")) >= 3, "others have come")
    owner = fleet.owner_of(JOB) if overlap != "replace" else first
    owner.signal(9)
    fleet.gate.touch()
    survivor = second if owner is first else first
    eventually(lambda: _counts(fleet).get("succeeded", 0) >= 3, "they go on")
    assert survivor.exit_code is None
    assert _never_two_at_once(fleet)
