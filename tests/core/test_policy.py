"""The rules, without a database: what becomes of due ticks, and of runs whose attempt has ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.core.bounds import Bounds
from scheduler.core.model import (
    AfterCrash,
    Birth,
    Claim,
    Ending,
    FirstSight,
    JobSpec,
    Misfire,
    MisfirePolicy,
    Outcome,
    Overlap,
    Period,
    RetryPolicy,
    SkipReason,
    Status,
    Trigger,
)
from scheduler.core.policy import (
    Decision,
    backoff,
    decide_outcome,
    decide_tick,
    delay_of,
    first_watermark,
    reconnect_wait,
    renew_interval,
    trust_window,
)
from scheduler.core.schedule import Cron

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
HOURLY = Cron("0 * * * *", "UTC")
DAILY = Cron("0 3 * * *", "Europe/London")
JITTER_OF_NOON = 111.89441063997748


def spec(**changes: object) -> JobSpec:
    return JobSpec(**{"name": "job", "schedule": HOURLY, "call": "a:b", **changes})  # type: ignore[arg-type]


def missed(policy: MisfirePolicy, **changes: object) -> Misfire:
    return Misfire(**{"policy": policy, "grace": 60.0, **changes})  # type: ignore[arg-type]


def running(births: tuple[Birth, ...]) -> list[datetime]:
    return [birth.scheduled_at for birth in births if birth.status is Status.RUNNING]


def skipped(births: tuple[Birth, ...]) -> list[datetime]:
    return [birth.scheduled_at for birth in births if birth.status is Status.SKIPPED]


def hours(*numbers: int) -> list[datetime]:
    return [NOON.replace(hour=number) for number in numbers]


class TestDueTicks:
    def test_nothing_is_due_before_its_time(self) -> None:
        assert decide_tick(spec(), NOON, NOON + timedelta(minutes=59)) == ()

    def test_a_tick_on_time_runs_as_scheduled(self) -> None:
        (birth,) = decide_tick(spec(), NOON - timedelta(seconds=1), NOON)
        assert (birth.status, birth.trigger, birth.if_blocked) == (Status.RUNNING, Trigger.SCHEDULE, Status.SKIPPED)
        assert birth.run_key == birth.tick_key == "2026-11-29T12:00:00[UTC]"

    def test_a_watermark_on_a_tick_does_not_yield_it_again(self) -> None:
        assert decide_tick(spec(), NOON, NOON) == ()

    def test_a_tick_exactly_at_the_grace_is_late_and_not_missed(self) -> None:
        (birth,) = decide_tick(spec(misfire=missed(MisfirePolicy.SKIP)), hours(11)[0], NOON + timedelta(seconds=60))
        assert birth.trigger is Trigger.SCHEDULE

    def test_a_job_without_schedule_has_no_ticks(self) -> None:
        assert decide_tick(spec(schedule=None), NOON - timedelta(days=9), NOON) == ()


class TestMissedTicks:
    now = NOON + timedelta(minutes=30)

    def test_latest_runs_the_newest_and_records_the_others(self) -> None:
        births = decide_tick(spec(misfire=missed(MisfirePolicy.LATEST)), hours(8)[0], self.now)
        assert running(births) == hours(12)
        assert skipped(births) == hours(9, 10, 11)
        assert {b.skip_reason for b in births if b.status is Status.SKIPPED} == {SkipReason.MISSED}
        assert births[-1].trigger is Trigger.CATCH_UP

    def test_all_runs_every_one_within(self) -> None:
        policy = missed(MisfirePolicy.ALL, within=2 * 3600.0 + 1800)
        births = decide_tick(spec(misfire=policy), hours(8)[0], self.now)
        assert running(births) == hours(10, 11, 12)
        assert skipped(births) == hours(9)

    def test_skip_runs_none(self) -> None:
        births = decide_tick(spec(misfire=missed(MisfirePolicy.SKIP)), hours(8)[0], self.now)
        assert running(births) == []
        assert skipped(births) == hours(9, 10, 11, 12)

    def test_the_latest_is_too_old_when_it_lies_beyond_within(self) -> None:
        births = decide_tick(spec(misfire=missed(MisfirePolicy.LATEST, within=600.0)), hours(8)[0], self.now)
        assert running(births) == []
        assert skipped(births) == hours(9, 10, 11, 12)

    def test_late_runs_wait_for_the_run_in_their_way(self) -> None:
        births = decide_tick(spec(misfire=missed(MisfirePolicy.ALL)), hours(8)[0], self.now)
        assert {b.if_blocked for b in births} == {Status.WAITING}

    def test_above_the_limit_one_row_stands_for_many(self) -> None:
        births = decide_tick(spec(misfire=missed(MisfirePolicy.LATEST, limit=3)), hours(2)[0], self.now)
        assert [(b.scheduled_at, b.missed) for b in births] == [
            (hours(9)[0], 7),
            (hours(10)[0], None),
            (hours(11)[0], None),
            (hours(12)[0], None),
        ]
        assert running(births) == hours(12)

    def test_ten_years_of_minutes_are_decided_at_once(self) -> None:
        minutely = spec(schedule=Cron("* * * * *", "UTC"), misfire=missed(MisfirePolicy.LATEST, limit=5))
        births = decide_tick(minutely, NOON - timedelta(days=3650), NOON + timedelta(seconds=90))
        assert len(births) == 6
        assert births[0].missed is not None
        assert births[0].missed >= 10_000

    def test_a_late_tick_does_not_stand_in_the_way_of_one_on_time(self) -> None:
        births = decide_tick(spec(misfire=missed(MisfirePolicy.LATEST)), hours(10)[0], NOON + timedelta(seconds=1))
        assert skipped(births) == hours(11)
        assert running(births) == hours(12)

    def test_missed_and_punctual_ticks_together(self) -> None:
        births = decide_tick(spec(misfire=missed(MisfirePolicy.SKIP)), hours(9)[0], NOON + timedelta(seconds=1))
        assert skipped(births) == hours(10, 11)
        assert running(births) == hours(12)


class TestTicksThatAreDueTogether:
    """Several within grace: all are merely late. Which run depends on how many of them can."""

    often = Cron("* * * * *", "UTC")
    grace = 600.0

    def births(self, policy: MisfirePolicy, overlap: Overlap, **changes: object) -> tuple[Birth, ...]:
        fields = {"schedule": self.often, "misfire": missed(policy, grace=self.grace), "overlap": overlap, **changes}
        return decide_tick(spec(**fields), NOON - timedelta(minutes=4), NOON + timedelta(seconds=5))

    def test_latest_runs_the_newest_where_one_alone_can_run(self) -> None:
        births = self.births(MisfirePolicy.LATEST, Overlap.SKIP)
        assert running(births) == [NOON]
        assert skipped(births) == [NOON - timedelta(minutes=n) for n in (3, 2, 1)]
        assert {b.skip_reason for b in births if b.status is Status.SKIPPED} == {SkipReason.OVERLAP}
        assert (births[-1].trigger, births[-1].if_blocked) == (Trigger.SCHEDULE, Status.SKIPPED)

    @pytest.mark.parametrize("overlap", [Overlap.ALLOW, Overlap.QUEUE, Overlap.QUEUE_ALL])
    def test_those_that_can_wait_or_run_side_by_side_stay(self, overlap: Overlap) -> None:
        assert len(running(self.births(MisfirePolicy.LATEST, overlap))) == 4

    @pytest.mark.parametrize("policy", [MisfirePolicy.ALL, MisfirePolicy.SKIP])
    def test_no_other_policy_chooses_among_them(self, policy: MisfirePolicy) -> None:
        assert len(running(self.births(policy, Overlap.SKIP))) == 4

    @pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.REPLACE])
    def test_what_stands_back_has_a_row_also_where_a_period_has_one_run(self, overlap: Overlap) -> None:
        """23:58 and 23:59 are the day's before: no run of theirs stands for them."""
        daily = spec(
            schedule=self.often,
            misfire=missed(MisfirePolicy.LATEST, grace=self.grace),
            overlap=overlap,
            once_per=Period.DAY,
        )
        midnight = NOON.replace(hour=0)
        births = decide_tick(daily, midnight - timedelta(minutes=3), midnight + timedelta(seconds=65))
        assert [(b.scheduled_at - midnight, b.status, b.run_key) for b in births] == [
            (timedelta(minutes=-2), Status.SKIPPED, "2026-11-28T23:58:00[UTC]"),
            (timedelta(minutes=-1), Status.SKIPPED, "2026-11-28T23:59:00[UTC]"),
            (timedelta(minutes=1), Status.RUNNING, "2026-11-29"),
        ]


class TestOncePer:
    def test_the_key_is_the_period_in_the_jobs_zone(self) -> None:
        daily = spec(schedule=DAILY, timezone="Europe/London", once_per=Period.DAY)
        (birth,) = decide_tick(daily, NOON - timedelta(hours=12), NOON.replace(hour=3))
        assert (birth.run_key, birth.tick_key) == ("2026-11-29", "2026-11-29T03:00:00[Europe/London]")

    def test_two_ticks_of_one_period_make_one_row(self) -> None:
        twice = spec(schedule=Cron("0 10,11 * * *", "UTC"), once_per=Period.DAY, misfire=missed(MisfirePolicy.ALL))
        births = decide_tick(twice, hours(8)[0], NOON)
        assert [birth.run_key for birth in births] == ["2026-11-29"]

    def test_the_period_that_a_late_tick_runs_needs_no_rows_for_its_other_ticks(self) -> None:
        # as when they come one by one: the row of the period stands for them
        hourly = spec(once_per=Period.DAY, misfire=missed(MisfirePolicy.LATEST))
        births = decide_tick(hourly, hours(8)[0] - timedelta(hours=10), NOON + timedelta(minutes=30))
        assert [(b.scheduled_at, b.status, b.run_key) for b in births] == [
            (NOON.replace(day=28, hour=23), Status.SKIPPED, "2026-11-28T23:00:00[UTC]"),
            (NOON, Status.RUNNING, "2026-11-29"),
        ]

    def test_a_period_that_ran_is_not_run_again_by_a_late_tick_of_it(self) -> None:
        # 03:00 ran; 15:00 was missed: the birth has the period's key, and so finds its row there
        twice = spec(schedule=Cron("0 3,9 * * *", "UTC"), once_per=Period.DAY)
        (birth,) = decide_tick(twice, hours(3)[0], NOON)
        assert (birth.scheduled_at, birth.status, birth.run_key) == (hours(9)[0], Status.RUNNING, "2026-11-29")

    def test_the_period_is_the_local_one_over_a_clock_change(self) -> None:
        # 23:30 in summer, 22:30 UTC; the day of the change has 25 hours
        london = Cron("30 */1 * * *", "Europe/London")
        policy = missed(MisfirePolicy.ALL, within=172800.0)
        daily = spec(schedule=london, timezone="Europe/London", once_per=Period.DAY, misfire=policy)
        midnight = datetime(2026, 10, 24, 23, tzinfo=UTC)
        births = decide_tick(daily, midnight, midnight + timedelta(hours=26))
        assert [(b.scheduled_at, b.run_key) for b in births] == [
            (midnight + timedelta(minutes=30), "2026-10-25"),
            (midnight + timedelta(hours=25, minutes=30), "2026-10-26"),
        ]

    def test_a_skipped_row_keeps_the_ticks_own_key(self) -> None:
        daily = spec(schedule=HOURLY, once_per=Period.DAY, misfire=missed(MisfirePolicy.SKIP))
        births = decide_tick(daily, hours(10)[0], NOON + timedelta(minutes=30))
        assert [birth.run_key for birth in births] == ["2026-11-29T11:00:00[UTC]", "2026-11-29T12:00:00[UTC]"]


class TestJitter:
    def test_a_delay_belongs_to_the_tick_and_stays_below_the_jitter(self) -> None:
        herd = [spec(name=f"job-{number}", jitter=300.0) for number in range(2000)]
        delays = [delay_of(one, "2026-11-29T12:00:00[UTC]") for one in herd]
        assert all(0 <= delay < 300 for delay in delays)
        tenths = Counter(int(delay / 30) for delay in delays)
        assert set(tenths) == set(range(10))
        assert max(tenths.values()) < 2 * min(tenths.values())
        assert delays == [delay_of(one, "2026-11-29T12:00:00[UTC]") for one in herd]
        other = [delay_of(one, "2026-11-30T12:00:00[UTC]") for one in herd]
        assert sum(one == two for one, two in zip(delays, other, strict=True)) == 0

    def test_no_delay_reaches_the_jitter(self) -> None:
        assert max(delay_of(spec(jitter=0.001), str(number)) for number in range(5000)) < 0.001

    def test_the_number_never_changes(self) -> None:
        # replicas of two versions must put a run off alike
        assert delay_of(spec(jitter=300.0), "2026-11-29T12:00:00[UTC]") == pytest.approx(JITTER_OF_NOON)

    def test_runs_are_put_off_and_skipped_rows_are_not(self) -> None:
        jittery = spec(jitter=60.0, misfire=missed(MisfirePolicy.LATEST))
        births = decide_tick(jittery, hours(9)[0], NOON + timedelta(minutes=30))
        assert [birth.delay > 0 for birth in births] == [False, False, True]
        assert births[-1].scheduled_at == NOON, "the tick itself stays where it is"
        assert births[-1].delay == delay_of(jittery, births[-1].tick_key)

    def test_without_jitter_there_is_no_delay(self) -> None:
        (birth,) = decide_tick(spec(), hours(11)[0], NOON)
        assert birth.delay == 0.0


class TestFirstSight:
    def test_a_new_job_owes_nothing(self) -> None:
        assert first_watermark(spec(), NOON) == NOON
        assert decide_tick(spec(), first_watermark(spec(), NOON), NOON) == ()

    def test_unless_it_says_run(self) -> None:
        eager = spec(schedule=DAILY, misfire=Misfire(first_sight=FirstSight.RUN, within=26 * 3600.0))
        births = decide_tick(eager, first_watermark(eager, NOON), NOON)
        assert running(births) == [NOON.replace(hour=3)]

    def test_and_a_schedule_that_never_ticked_owes_nothing_either(self) -> None:
        eager = spec(schedule=None, misfire=Misfire(first_sight=FirstSight.RUN))
        assert first_watermark(eager, NOON) == NOON
        to_come = Cron("0 * * * *", "UTC", bounds=Bounds(from_=NOON + timedelta(days=1)))
        assert first_watermark(replace(eager, schedule=to_come), NOON) == NOON

    def test_a_schedule_that_is_over_owes_only_what_is_within(self) -> None:
        over = Cron("0 * * * *", "UTC", bounds=Bounds(until=hours(10)[0]))
        eager = spec(schedule=over, misfire=Misfire(first_sight=FirstSight.RUN, within=3 * 3600.0))
        assert running(decide_tick(eager, first_watermark(eager, NOON), NOON)) == hours(10)
        late = replace(eager, misfire=Misfire(first_sight=FirstSight.RUN, within=3600.0))
        assert skipped(decide_tick(late, first_watermark(late, NOON), NOON)) == hours(10)


def claim(retries_left: int = 0, crashes: int = 0) -> Claim:
    return Claim(UUID(int=1), "job", "k", NOON, 1, retries_left, crashes, Trigger.SCHEDULE)


class TestOutcomes:
    @pytest.mark.parametrize(
        ("outcome", "status"),
        [
            (Outcome.SUCCEEDED, Status.SUCCEEDED),
            (Outcome.CANCELLED, Status.CANCELLED),
            (Outcome.FAILED, Status.FAILED),
            (Outcome.TIMED_OUT, Status.TIMED_OUT),
            (Outcome.HANDED_BACK, Status.QUEUED),
            (Outcome.LEASE_LOST, Status.QUEUED),
            (Outcome.CRASHED, Status.QUEUED),
        ],
    )
    def test_without_retries(self, outcome: Outcome, status: Status) -> None:
        assert decide_outcome(spec(), claim(), Ending(outcome), 0.5).status is status

    def test_skip_says_why(self) -> None:
        decision = decide_outcome(spec(), claim(), Ending(Outcome.SKIPPED), 0.5)
        assert decision == Decision(Status.SKIPPED, skip_reason=SkipReason.JOB)

    def test_a_failure_with_tries_left_comes_back_later(self) -> None:
        policy = RetryPolicy(attempts=4, backoff=10.0, max=60.0)
        waits = [
            decide_outcome(spec(retry=policy), claim(retries_left=left), Ending(Outcome.FAILED), 0.5).ready_in
            for left in (3, 2, 1)
        ]
        assert waits == [10.0, 20.0, 40.0]

    def test_the_last_try_ends_it(self) -> None:
        policy = RetryPolicy(attempts=4)
        assert decide_outcome(spec(retry=policy), claim(0), Ending(Outcome.TIMED_OUT), 0.5).status is Status.TIMED_OUT

    def test_fatal_ends_it_at_once(self) -> None:
        decision = decide_outcome(spec(), claim(5), Ending(Outcome.FAILED, final=True), 0.5)
        assert decision.status is Status.FAILED

    def test_retry_after_is_kept_to(self) -> None:
        decision = decide_outcome(spec(), claim(5), Ending(Outcome.FAILED, retry_after=7.0), 0.9)
        assert decision == Decision(Status.QUEUED, ready_in=7.0, spent=1)

    def test_crashes_count_by_themselves(self) -> None:
        crash = Ending(Outcome.CRASHED)
        first, second, third = (decide_outcome(spec(), claim(crashes=n), crash, 0.5) for n in range(3))
        assert first == Decision(Status.QUEUED, ready_in=0.0, crashed=1)
        assert second.status is Status.QUEUED
        assert second.ready_in > 0
        assert third == Decision(Status.FAILED, crashed=1)

    @pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.HANDED_BACK, Outcome.LEASE_LOST])
    def test_at_most_once_never_begins_again(self, outcome: Outcome) -> None:
        careful = spec(after_crash=AfterCrash.FAIL)
        assert decide_outcome(careful, claim(), Ending(outcome), 0.5).status is Status.LOST

    def test_at_most_once_may_go_on_when_it_never_began(self) -> None:
        careful = spec(after_crash=AfterCrash.FAIL)
        ending = Ending(Outcome.HANDED_BACK, started=False)
        assert decide_outcome(careful, claim(), ending, 0.5).status is Status.QUEUED

    def test_a_child_that_could_not_be_had_is_no_lost_run(self) -> None:
        careful = spec(after_crash=AfterCrash.FAIL)
        ending = Ending(Outcome.CRASHED, started=False)
        assert decide_outcome(careful, claim(), ending, 0.5) == Decision(Status.QUEUED, crashed=1)
        assert decide_outcome(careful, claim(crashes=2), ending, 0.5) == Decision(Status.FAILED, crashed=1)

    @pytest.mark.parametrize(("outcome", "status"), [(Outcome.FAILED, "failed"), (Outcome.TIMED_OUT, "timed_out")])
    def test_at_most_once_does_not_retry_failures(self, outcome: Outcome, status: str) -> None:
        assert decide_outcome(spec(after_crash=AfterCrash.FAIL), claim(3), Ending(outcome), 0.5).status == status


class TestWaits:
    @settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.integers(0, 10_000), st.floats(0.001, 1e6), st.floats(0.001, 1e6), st.floats(0, 1, exclude_max=True))
    def test_backoff_never_leaves_its_bounds(self, failures: int, base: float, most: float, chance: float) -> None:
        wait = backoff(failures, base, most, chance)
        assert 0 < wait <= most * 1.2

    def test_backoff_spreads(self) -> None:
        assert backoff(1, 10, 60, 0.0) == pytest.approx(8)
        assert backoff(1, 10, 60, 0.999) == pytest.approx(12, rel=0.01)

    @settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
    def test_reconnecting_waits_at_most_five_seconds(self, tries: int, chance: float) -> None:
        assert 0 < reconnect_wait(tries, chance) <= 5

    @settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.floats(1, 3600))
    def test_trust_ends_before_the_lease_and_outlives_two_renewals(self, lease: float) -> None:
        assert 2 * renew_interval(lease) < trust_window(lease) < lease
