"""Decisions: what becomes of a due tick, and of a run whose attempt has ended. Pure; returns values, writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from scheduler.core.model import (
    AfterCrash,
    Birth,
    Claim,
    Ending,
    FirstSight,
    IfBlocked,
    JobSpec,
    MisfirePolicy,
    Outcome,
    Overlap,
    SkipReason,
    Status,
    Trigger,
)
from scheduler.core.schedule import Due, due, latest_upto, run_key, tick_key
from scheduler.core.spread import share

ENDED_BADLY = frozenset({Status.FAILED, Status.TIMED_OUT, Status.LOST})
"""Ends that count for `pause_after_failures`."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a run. `ready_in`: seconds, for `queued`. `spent`, `crashed`: 1 where a try or a crash counts."""

    status: Status
    ready_in: float = 0.0
    spent: int = 0
    crashed: int = 0
    skip_reason: SkipReason | None = None


def first_watermark(spec: JobSpec, now: datetime) -> datetime:
    """Up to where a job seen for the first time owes nothing.

    It starts from now; with `first_sight: run` just before its latest tick, so that this one is still due.
    """
    if spec.misfire.first_sight is FirstSight.RUN and spec.schedule is not None:
        latest = latest_upto(spec.schedule, now)
        if latest is not None:
            return latest - timedelta(microseconds=1)
    return now


def decide_tick(spec: JobSpec, watermark: datetime, now: datetime) -> tuple[Birth, ...]:
    """How every tick in (watermark, now] comes into the world, oldest first. Nothing due: ()."""
    if spec.schedule is None:
        return ()
    return decide_due(spec, due(spec.schedule, watermark, now, max(1, spec.misfire.limit)), now)


def decide_due(spec: JobSpec, found: Due, now: datetime) -> tuple[Birth, ...]:
    """The same, where the due ticks are known.

    A tick is *missed* when it is seen more than `grace` late; before that it is merely late and runs. Of the missed,
    `misfire.policy` picks those that still run, none older than `within`; the others leave a skipped row each, or one
    row with their number where they are more than `limit`. With `once_per` a period's run stands for all its ticks.
    Of several that are due together and of which one alone can run, it is the newest (see `_newest_alone`).
    """
    if len(found.ticks) == 1 and (now - found.ticks[0]).total_seconds() <= spec.misfire.grace and not found.older:
        return (_birth(spec, found.ticks[0], late=False, now=now),)  # the common case
    births = []
    if found.older and found.older_last is not None:
        births.append(_many(spec, found.older_last, found, SkipReason.MISSED))
    missed = [tick for tick in found.ticks if (now - tick).total_seconds() > spec.misfire.grace]
    # where the newest tick is on time, it is the latest: a late one beside it would only stand in its way
    punctual = spec.misfire.policy is MisfirePolicy.LATEST and len(missed) < len(found.ticks)
    runnable = set() if punctual else set(_chosen(spec, missed, now))
    born = [_birth(spec, tick, late=tick in runnable, now=now) for tick in found.ticks]
    if _newest_alone(spec):  # before the periods are looked at: what stands back has a row of its own
        born = _newest_only(born, spec)
    if spec.once_per is not None:
        born = list(_one_per_period(spec, born))
    return (*births, *born)


def _one_per_period(spec: JobSpec, born: list[Birth]) -> Iterator[Birth]:
    """Of each period that a run is born for, the first run alone: its row stands for the period's other ticks too.

    So it is when they come one by one, each finding its period's row there. Without a run, skipped rows say why.
    """
    assert spec.schedule is not None
    first: dict[str, Birth] = {}
    for birth in born:
        if birth.status is not Status.SKIPPED:
            first.setdefault(birth.run_key, birth)
    for birth in born:
        period = run_key(spec.schedule, birth.scheduled_at, spec.once_per, spec.timezone)
        if first.get(period, birth) is birth:
            yield birth


def _newest_alone(spec: JobSpec) -> bool:
    """Whether of several ticks that are due together the newest alone runs.

    Where it replaces what runs, those before it would be cancelled as soon as they began. Where the overlap rule skips
    all but one, that is the first one to have its row: `misfire: latest` says which.
    """
    return spec.overlap is Overlap.REPLACE or (
        spec.overlap is Overlap.SKIP and spec.misfire.policy is MisfirePolicy.LATEST
    )


def _newest_only(births: list[Birth], spec: JobSpec) -> list[Birth]:
    """The newest of those that would run does; the others are in each other's way, and say so."""
    newest = max((birth.scheduled_at for birth in births if birth.status is not Status.SKIPPED), default=None)
    return [
        _skipped(spec, birth.scheduled_at, SkipReason.OVERLAP)
        if birth.status is not Status.SKIPPED and birth.scheduled_at != newest
        else birth
        for birth in births
    ]


def _chosen(spec: JobSpec, missed: list[datetime], now: datetime) -> list[datetime]:
    """Which of the missed ticks run all the same."""
    inside = [tick for tick in missed if (now - tick).total_seconds() <= spec.misfire.within]
    match spec.misfire.policy:
        case MisfirePolicy.SKIP:
            return []
        case MisfirePolicy.LATEST:
            return inside[-1:]
        case MisfirePolicy.ALL:
            return inside
        case _ as never:
            assert_never(never)


def _birth(spec: JobSpec, tick: datetime, *, late: bool, now: datetime) -> Birth:
    assert spec.schedule is not None
    on_time = (now - tick).total_seconds() <= spec.misfire.grace
    if not (on_time or late):
        return _skipped(spec, tick)
    key = tick_key(spec.schedule, tick)
    delay = delay_of(spec, key)
    return Birth(
        scheduled_at=tick,
        run_key=key if spec.once_per is None else run_key(spec.schedule, tick, spec.once_per, spec.timezone),
        tick_key=key,
        status=Status.QUEUED if delay else Status.RUNNING,  # whoever has a seat then takes it from the queue
        trigger=Trigger.SCHEDULE if on_time else Trigger.CATCH_UP,
        # a late run of an exclusive job waits for the one in its way; a tick on time does as the job's policy says
        if_blocked=_IF_BLOCKED[spec.overlap] if on_time else IfBlocked.WAITING,
        delay=delay,
    )


_IF_BLOCKED = {
    Overlap.SKIP: IfBlocked.SKIPPED,
    Overlap.QUEUE: IfBlocked.ONE,
    Overlap.QUEUE_ALL: IfBlocked.WAITING,
    Overlap.REPLACE: IfBlocked.WAITING,  # and what it replaces is cancelled
    Overlap.ALLOW: IfBlocked.SKIPPED,  # the index refuses none of its runs
}


def delay_of(spec: JobSpec, tick_key: str) -> float:
    """Seconds in [0, jitter) by which the tick's execution is put off: the same in each replica, and at each asking."""
    return spec.jitter * share("jitter", spec.name, tick_key) if spec.jitter else 0.0


def _skipped(spec: JobSpec, tick: datetime, reason: SkipReason = SkipReason.MISSED) -> Birth:
    """A tick that does not run keeps its own key, never the period's: the period may still be run by another."""
    assert spec.schedule is not None
    key = tick_key(spec.schedule, tick)
    return Birth(tick, key, key, Status.SKIPPED, skip_reason=reason)


def _many(spec: JobSpec, tick: datetime, found: Due, reason: SkipReason) -> Birth:
    """One row, in the place of its newest `tick`, for the older ones of what was found.

    Where that tick has a row of its own already (a pod was asked for it, a person filled it in), the row has the key
    of the whole stretch: the others would else be without one.
    """
    assert spec.schedule is not None
    assert found.older_first is not None
    row = _skipped(spec, tick, reason)
    stretch = f"{tick_key(spec.schedule, found.older_first)}/{row.tick_key}"
    return replace(row, tick_key=stretch, missed=found.older, since=found.older_first, capped=found.capped)


def decide_pause(spec: JobSpec, watermark: datetime, now: datetime) -> Birth | None:
    """The one skipped row for the ticks of a pause, those in (watermark, now]. None: there are none."""
    found = Due() if spec.schedule is None else due(spec.schedule, watermark, now, 0)
    return None if found.older_last is None else _many(spec, found.older_last, found, SkipReason.PAUSED)


def decide_outcome(spec: JobSpec, claim: Claim, ending: Ending, chance: float) -> Decision:
    """What becomes of the run after this attempt. `chance`: uniform in [0, 1), for the jitter."""
    match ending.outcome:
        case Outcome.SUCCEEDED:
            return Decision(Status.SUCCEEDED)
        case Outcome.CANCELLED:
            return Decision(Status.CANCELLED)
        case Outcome.SKIPPED:
            return Decision(Status.SKIPPED, skip_reason=SkipReason.JOB)
        case Outcome.FAILED | Outcome.TIMED_OUT:
            return _after_failure(spec, claim, ending, chance)
        case Outcome.CRASHED:
            return _after_crash(spec, claim, chance, begun=ending.started)
        case Outcome.HANDED_BACK | Outcome.LEASE_LOST:
            # costs nothing; but with at-most-once a body that has begun must not begin again
            at_most_once = spec.after_crash is AfterCrash.FAIL and ending.started
            return Decision(Status.LOST if at_most_once else Status.QUEUED, ready_in=ending.retry_after or 0.0)
        case _ as never:
            assert_never(never)


def _after_failure(spec: JobSpec, claim: Claim, ending: Ending, chance: float) -> Decision:
    final = Status.TIMED_OUT if ending.outcome is Outcome.TIMED_OUT else Status.FAILED
    if ending.final or claim.retries_left <= 0 or spec.after_crash is AfterCrash.FAIL:
        return Decision(final, spent=1)
    failures = spec.retry.attempts - claim.retries_left
    wait = ending.retry_after
    if wait is None:
        wait = backoff(failures, spec.retry.backoff, spec.retry.max, chance)
    return Decision(Status.QUEUED, ready_in=max(0.0, wait), spent=1)


def _after_crash(spec: JobSpec, claim: Claim, chance: float, *, begun: bool) -> Decision:
    """Crashes have a limit of their own, so that a job that kills its process ends; the first costs no wait."""
    if spec.after_crash is AfterCrash.FAIL and begun:
        return Decision(Status.LOST, crashed=1)
    crashes = claim.crashes + 1
    if crashes >= spec.crash_limit:
        return Decision(Status.FAILED, crashed=1)
    wait = 0.0 if crashes == 1 else backoff(crashes - 1, spec.retry.backoff, spec.retry.max, chance)
    return Decision(Status.QUEUED, ready_in=wait, crashed=1)


def backoff(failures: int, base: float, most: float, chance: float) -> float:
    """Seconds before the next try after so many failures (1, 2, …): doubling, capped, with ±20 % of jitter.

    The jitter keeps fifty jobs that failed together from coming back together. Safe at any number of failures.
    """
    doubled = base * 2.0 ** min(max(failures, 1) - 1, 60)
    return min(doubled, most) * (0.8 + 0.4 * chance)


def reconnect_wait(tries: int, chance: float) -> float:
    """Seconds before the next try to reach the database: full jitter under a doubling cap of 0.1 to 5 s."""
    return min(5.0, 0.1 * 2.0 ** min(tries, 10)) * (0.1 + 0.9 * chance)


def trust_window(lease: float) -> float:
    """For how long after a renewal was *sent* its owner may believe in it: the lease less 3 s (a fifth of a short one).

    The margin covers what a kill takes and what the two clocks' speeds differ by in one lease.
    """
    return lease - min(3.0, lease / 5)


def renew_interval(lease: float) -> float:
    """Seconds between two renewals: 1, and never fewer than ten to a lease."""
    return min(1.0, lease / 10)
