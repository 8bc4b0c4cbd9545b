"""A paused job is edited, removed, put back: its ticks are those of the spec that was in force when they came."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from replicas import away_from_a_tick
from scene import Scene, spec
from uuid_utils.compat import uuid7

from scheduler.core.model import JobSpec, Misfire, MisfirePolicy, Overlap, Period
from scheduler.core.schedule import At, Every, parse_cron, tick_key
from scheduler.store import pauses
from scheduler.store.pauses import Resumed, Wish

HOURLY = JobSpec(name="a", schedule=Every(3600.0), call="effects:append")
DAILY = replace(HOURLY, schedule=Every(86400.0))
KEEP = spec("keep", overlap=Overlap.ALLOW)


@pytest.fixture(autouse=True)
def _one_hour() -> None:
    away_from_a_tick(3600)


def hour(n: int) -> datetime:
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=n)


def key(n: int) -> str:
    assert HOURLY.schedule is not None
    return tick_key(HOURLY.schedule, hour(n))


def _paused(scene: Scene, job: JobSpec = HOURLY, until: int | None = None) -> None:
    """Accounted for up to five hours ago, and paused since; `until`: the hour at which that was to end."""
    scene.apply(job, content="paused")
    assert pauses.pause_job(scene.mine, Wish("a", "ann", "a migration"))
    scene.sql("UPDATE soloist.job SET watermark = %s, paused_at = %s", hour(-5), hour(-5))
    scene.sql("UPDATE soloist.job SET paused_until = %s", None if until is None else hour(until))


def _resume(scene: Scene) -> Resumed:
    done = pauses.resume_job(scene.mine, "a", "bob", None, uuid7)
    assert done is not None
    return done


def _counted(scene: Scene) -> list[tuple[str, int]]:
    return [(row["run_key"], row["result"]["missed"]) for row in scene.rows("a") if (row["skip_reason"]) == "paused"]


def _watermark(scene: Scene) -> Any:
    return scene.known()["a"].watermark


@pytest.mark.parametrize("every", [86400.0, 60.0], ids=["seldom", "often"])
def test_an_edit_counts_the_ticks_so_far_by_the_schedule_that_they_had(scene: Scene, every: float) -> None:
    _paused(scene)
    before = datetime.now(UTC)
    new = replace(HOURLY, schedule=Every(every))
    assert scene.apply(new, content="2").changed == ("a",)
    (row,) = scene.rows("a")
    assert (row["status"], row["skip_reason"], row["run_key"]) == ("skipped", "paused", key(0))
    assert row["result"] == {"missed": 5, "since": hour(-4).isoformat()}
    assert row["spec_hash"] == HOURLY.hash
    assert scene.known()["a"].paused, "it goes on"
    assert _watermark(scene) >= before
    assert _resume(scene).missed <= 1, "from the edit on, by the new one"
    actions = scene.sql("SELECT action FROM soloist.audit ORDER BY id")
    assert [line["action"] for line in actions] == ["pause", "resume"]


def test_each_edit_has_a_row_of_its_own(scene: Scene) -> None:
    _paused(scene)
    scene.apply(replace(HOURLY, timeout=5.0), content="2")
    scene.sql("UPDATE soloist.job SET watermark = %s", hour(-1))
    scene.apply(replace(HOURLY, timeout=6.0), content="3")
    assert _counted(scene) == [(key(0), 5), (f"{key(0)}/{key(0)}", 1)]
    scene.apply(replace(HOURLY, timeout=7.0), content="4")
    assert len(_counted(scene)) == 2, "nothing has come since"


def test_the_row_makes_way_for_a_run_of_its_newest_tick(scene: Scene) -> None:
    _paused(scene)
    scene.sql(
        "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, ready_at)"
        " SELECT %s, id, %s, %s, 'backfill', 'queued', true, now() FROM soloist.job",
        uuid7(),
        key(0),
        hour(0),
    )
    scene.apply(DAILY, content="2")
    assert _counted(scene) == [(f"{key(-4)}/{key(0)}", 5)]


def test_prose_is_no_edit(scene: Scene) -> None:
    _paused(scene)
    scene.apply(replace(HOURLY, description="what it does"), content="2")
    assert scene.rows("a") == []
    assert _watermark(scene) == hour(-5)
    assert _resume(scene).missed == 5


def test_a_pause_by_failures_is_counted_alike(scene: Scene) -> None:
    _paused(scene)
    scene.sql("UPDATE soloist.job SET paused_by = 'soloist'")
    scene.apply(DAILY, content="2")
    assert _counted(scene) == [(key(0), 5)]
    assert scene.known()["a"].paused_by == "soloist"


def test_a_one_off_whose_instant_came_in_the_pause(scene: Scene) -> None:
    _paused(scene, replace(HOURLY, schedule=At(hour(-3))))
    scene.apply(replace(HOURLY, schedule=At(hour(30))), content="2")
    (row,) = scene.rows("a")
    assert (row["skip_reason"], row["scheduled_at"], row["result"]["missed"]) == ("paused", hour(-3), 1)


def test_a_tick_of_the_pause_takes_no_period(scene: Scene) -> None:
    nightly = replace(HOURLY, schedule=parse_cron("0 * * * *", "UTC"), once_per=Period.DAY)
    _paused(scene, nightly)
    scene.apply(replace(nightly, timeout=5.0), content="2")
    assert [key for key, _ in _counted(scene)] == [f"{hour(0):%Y-%m-%dT%H}:00:00[UTC]"]


def test_after_the_pauses_end_the_ticks_of_the_old_spec_are_due_as_ever(scene: Scene) -> None:
    """No replica has come to end it; the edit does."""
    old = replace(HOURLY, misfire=Misfire(policy=MisfirePolicy.LATEST))
    _paused(scene, old, until=-2)
    scene.apply(replace(old, schedule=Every(86400.0)), content="2")
    rows = {row["run_key"]: (row["status"], row["skip_reason"]) for row in scene.rows("a")}
    assert rows == {
        key(-2): ("skipped", "paused"),
        key(-1): ("skipped", "missed"),
        key(0): ("queued", None),
    }
    assert _counted(scene) == [(key(-2), 3)]
    assert not scene.known()["a"].paused
    (line,) = scene.sql("SELECT who, why FROM soloist.audit WHERE action = 'resume'")
    assert (line["who"], line["why"][:6]) == ("soloist", "until ")


def test_a_removal_counts_and_the_time_out_of_the_plan_has_no_ticks(scene: Scene) -> None:
    _paused(scene)
    assert scene.apply(KEEP, content="2").removed == ("a",)
    assert _counted(scene) == [(key(0), 5)]
    scene.sql("UPDATE soloist.job SET watermark = %s, removed_at = %s WHERE name = 'a'", hour(-3), hour(-3))
    before = datetime.now(UTC)
    assert scene.apply(HOURLY, KEEP, content="3").changed == ("a",)
    assert scene.known()["a"].paused, "it is as it was left"
    assert _watermark(scene) >= before
    assert _resume(scene) == Resumed("a", None)
    assert _counted(scene) == [(key(0), 5)]


def test_what_another_version_removed_is_counted_when_it_comes_back(scene: Scene) -> None:
    """It left the watermark where it stood. The ticks of the pause ended with the removal."""
    _paused(scene)
    scene.sql("UPDATE soloist.job SET removed_at = %s", hour(-3) + timedelta(minutes=30))
    scene.apply(HOURLY, content="3")
    assert _counted(scene) == [(key(-3), 2)]
    assert _resume(scene).missed == 0


def test_a_roll_back_is_an_edit(scene: Scene) -> None:
    _paused(scene)
    scene.apply(DAILY, content="2")
    scene.sql("UPDATE soloist.replica SET stopped_at = now()")
    scene.sql("UPDATE soloist.job SET watermark = %s", hour(-24))
    assert scene.apply(HOURLY, content="paused").changed == ("a",)
    assert sorted(missed for _, missed in _counted(scene)) == [1, 5], "one midnight, by the daily schedule"
    assert scene.known()["a"].paused
