"""A spec comes back from the JSON that it became, also from another version's."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from scheduler.core.bounds import Bounds
from scheduler.core.dst import Dst, DstGap, DstOverlap
from scheduler.core.model import JobSpec, Misfire, MisfirePolicy, Overlap, Period, RetryPolicy
from scheduler.core.schedule import Cron, Every, parse_cron
from scheduler.core.spec import spec_from_dict

SPEC = JobSpec(
    "nightly",
    Cron("0 3 * * *", "Europe/London"),
    "jobs.x:y",
    args={"a": [1, {"env": "B"}]},
    timezone="Europe/London",
    once_per=Period.DAY,
    retry=RetryPolicy(3, 1.5, 60.0),
    overlap=Overlap.ALLOW,
    misfire=Misfire(policy=MisfirePolicy.ALL, grace=5.0),
)


def test_there_and_back() -> None:
    again = spec_from_dict(json.loads(json.dumps(SPEC.to_dict())))
    assert again == SPEC
    assert again.hash == SPEC.hash


def test_prose_is_not_in_the_hash() -> None:
    plain = {**SPEC.to_dict(), "description": "other", "owner": "o", "runbook": "r"}
    assert spec_from_dict(plain).hash == SPEC.hash


def test_words_of_a_newer_version_do_not_keep_an_older_one_from_starting() -> None:
    plain = SPEC.to_dict()
    plain |= {"overlap": "share", "dst": {"gap": "skip"}, "guard": "advisory_lock", "once_per": "hour"}
    plain["retry"] = {**plain["retry"], "jitter": 0.5}
    plain["misfire"] = {**plain["misfire"], "policy": "newest", "why": 1}
    read = spec_from_dict(json.loads(json.dumps(plain)))
    assert read.schedule == SPEC.schedule
    assert (read.overlap, read.retry, read.misfire.grace) == (Overlap.SKIP, SPEC.retry, 5.0)


BOUNDS = Bounds(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), ("12-25",))


@pytest.mark.parametrize(
    "schedule",
    [
        Cron("0 3 * * *", "Europe/London", Dst(DstGap.SKIP, DstOverlap.BOTH), BOUNDS),
        Cron("0 3 * * *", "Europe/London", Dst(overlap=DstOverlap.BOTH), Bounds(until=BOUNDS.until)),
        parse_cron("H H(0-7) * * *", "Europe/London", name="nightly"),
        Every(90.0, datetime(2026, 1, 1, 7, tzinfo=UTC), BOUNDS, "Asia/Tokyo"),
        Every(90.0, bounds=Bounds(from_=BOUNDS.from_)),
    ],
)
def test_schedules_with_bounds_and_words_come_back(schedule: Cron | Every) -> None:
    spec = replace(SPEC, schedule=schedule, jitter=5.0)
    again = spec_from_dict(json.loads(json.dumps(spec.to_dict())))
    assert again == spec
    assert again.hash == spec.hash != replace(SPEC, jitter=5.0).hash


def test_a_job_without_the_new_keys_has_the_hash_it_had() -> None:
    # in the database since the first version: a replica of the new one must find its job unchanged
    assert JobSpec("a", Cron("0 3 * * *", "Europe/London"), "m:f").hash == "b07d5045d596b4c5"
    assert JobSpec("a", Every(900.0, timezone="Asia/Tokyo"), "m:f").hash == "cb75c903ededd290"
    assert set(SPEC.to_dict()["schedule"]) == {"cron", "timezone"}


def test_bounds_that_cannot_be_read_yield_no_ticks() -> None:
    for damage in ({"from": "soon"}, {"until": "2026-01-01"}, {"except": ["christmas"]}, {"except": 5}):
        plain = {**SPEC.to_dict(), "schedule": {"cron": "0 3 * * *", "timezone": "UTC", **damage}}
        assert spec_from_dict(plain).schedule is None, "rather none than those that were taken out"


def test_a_schedule_of_a_newer_version_yields_no_ticks_here() -> None:
    assert spec_from_dict({**SPEC.to_dict(), "schedule": {"moon": "full"}}).schedule is None
