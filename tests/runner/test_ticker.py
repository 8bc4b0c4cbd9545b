"""The ticker's picture of the plan: whole in each pass, and the database's where the two differ."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from scene import Scene

from scheduler.core.events import TickLost
from scheduler.core.model import Birth, JobSpec, Overlap
from scheduler.core.schedule import Every
from scheduler.runner.plan import PlanInForce
from scheduler.runner.room import Room
from scheduler.runner.seats import Seats
from scheduler.runner.ticker import AFRESH, EARLY, Decided, Ticker


def _ticker(facts: Scene, age: float = 1.0) -> tuple[Ticker, PlanInForce]:
    """Of a replica without seats; the one tick of an hour was due so many seconds ago."""
    tick = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=age)
    job = JobSpec(name="a", schedule=Every(3600.0, tick), call="effects:append", overlap=Overlap.ALLOW)
    facts.apply(job)
    facts.sql("UPDATE soloist.job SET watermark = %s", tick - timedelta(seconds=3000))
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


def _put_forward(facts: Scene) -> None:
    """The clock runs 40 minutes ahead of the database's: the exchange took as long, and the database looked early."""
    facts.clock.measure(datetime.now(UTC), facts.clock.boottime() - 4800)


def test_whoever_is_too_early_learns_the_time_by_it(facts: Scene) -> None:
    ticker, _ = _ticker(facts, age=-1800)
    _put_forward(facts)
    wait = ticker.tick()
    assert not facts.rows("a"), "the database says that it is not due"
    assert wait == AFRESH
    assert facts.clock.error < 300
    assert ticker.tick() is None, "it is not due by our clock either"


def test_whoever_was_a_little_too_early_tries_again_at_once(facts: Scene) -> None:
    """Too early for the claim, and due when it is looked at: then, and not again and again."""
    ticker, _ = _ticker(facts, age=-1800)
    _put_forward(facts)
    look = ticker._look

    def look_late(left: Decided) -> float | None:
        return look({id_: (job, tuple((id_, _earlier(birth)) for id_, birth in b)) for id_, (job, b) in left.items()})

    ticker._look = look_late  # type: ignore[method-assign]
    facts.clock.measure = lambda *_: None  # type: ignore[method-assign]
    assert [ticker.tick() for _ in range(3)] == [EARLY, AFRESH / 4, AFRESH / 4]


def _earlier(birth: Birth) -> Birth:
    return replace(birth, scheduled_at=birth.scheduled_at - timedelta(seconds=2400))
