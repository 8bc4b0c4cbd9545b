"""The ticker's picture of the plan: whole in each pass, and the database's where the two differ."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from scene import Scene

from scheduler.core.events import TickLost
from scheduler.core.model import JobSpec, Overlap
from scheduler.core.schedule import Every
from scheduler.runner.plan import PlanInForce
from scheduler.runner.room import Room
from scheduler.runner.seats import Seats
from scheduler.runner.ticker import Ticker


def _ticker(facts: Scene) -> tuple[Ticker, PlanInForce]:
    """Of a replica without seats; the one tick of an hour is due, a second old."""
    now = datetime.now(UTC).replace(microsecond=0)
    job = JobSpec(
        name="a", schedule=Every(3600.0, now - timedelta(seconds=1)), call="effects:append", overlap=Overlap.ALLOW
    )
    facts.apply(job)
    facts.sql("UPDATE soloist.job SET watermark = %s", now - timedelta(seconds=2))
    plan = PlanInForce([job])
    plan.swap(tuple(facts.known().values()), 1)
    room = Room(facts.owner("ticks"), facts.clock, facts.bus)
    return Ticker(facts.session("worker"), room, plan, Seats(0)), plan


def test_a_job_that_goes_in_the_middle_of_a_pass_ends_no_ticker(facts: Scene) -> None:
    """The plan is swapped by another thread, at any point; the next pass sees it."""
    ticker, plan = _ticker(facts)
    follow = ticker._follow_plan

    def follow_and_lose() -> None:
        follow()
        plan.swap((), 2)

    ticker._follow_plan = follow_and_lose  # type: ignore[method-assign]
    ticker.tick()
    assert [row["status"] for row in facts.rows("a")] == ["queued"], "it was due by the plan that the pass began with"
    ticker._follow_plan = follow  # type: ignore[method-assign]
    assert ticker.next_tick() is None


def test_what_was_read_before_the_ticker_moved_on_is_nothing_forgotten(facts: Scene) -> None:
    ticker, plan = _ticker(facts)
    stood, known = plan.watermarks(), tuple(facts.known().values())
    ticker.tick()
    (job,) = plan.jobs().values()
    plan.swap(known, 1, stood=stood)
    assert list(plan.jobs().values()) == [job], "it goes on where it stands"
    assert ticker.tick() is None
    assert not [event for event in facts.events if isinstance(event, TickLost)]


def test_where_the_database_has_forgotten_a_tick_the_ticker_goes_back(facts: Scene) -> None:
    ticker, plan = _ticker(facts)
    ticker.tick()
    (job,) = plan.jobs().values()
    there = job.watermark
    facts.sql("DELETE FROM soloist.run")
    facts.sql("UPDATE soloist.job SET watermark = watermark - interval '1 h'")
    stood = plan.watermarks()
    plan.swap(tuple(facts.known().values()), 1, stood=stood)
    ticker.tick()
    assert [row["scheduled_at"] for row in facts.rows("a")] == [there]
