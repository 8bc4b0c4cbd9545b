"""A spec comes back from the JSON that it became, also from another version's."""

from __future__ import annotations

import json

from scheduler.core.model import JobSpec, Misfire, MisfirePolicy, Overlap, Period, RetryPolicy
from scheduler.core.schedule import Cron
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


def test_a_schedule_of_a_newer_version_yields_no_ticks_here() -> None:
    assert spec_from_dict({**SPEC.to_dict(), "schedule": {"moon": "full"}}).schedule is None
