"""jobs.yaml to a plan: defaults filled in, and every mistake at its line."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from scheduler.config.jobs_file import load, parse
from scheduler.core.dst import Dst, DstGap, DstOverlap
from scheduler.core.errors import ConfigInvalid
from scheduler.core.model import (
    AfterCrash,
    FirstSight,
    Isolation,
    JobSpec,
    Misfire,
    MisfirePolicy,
    Overlap,
    Period,
    RetryPolicy,
)
from scheduler.core.retention import Retention
from scheduler.core.schedule import Cron, Every, parse_cron

FULL = """\
version: 1
timezone: Europe/London
defaults:
  timeout: 10m
  retry: {attempts: 3, backoff: 1m, max: 1h}
  misfire: {grace: 30s}
  owner: platform
retention: {succeeded: 10d, skipped: 1d}
jobs:
  daily-registry:
    description: Registry of yesterday's payments
    schedule: "0 3 * * *"
    timezone: Asia/Tokyo
    once_per: day
    call: jobs.registry:build
    args: {directory: var/registry, day: 2026-11-29, password: {env: REGISTRY_PASSWORD}}
    misfire: {policy: all, within: 26h, limit: 5, first_sight: run}
    retry: {attempts: 5}
    timeout: none
    overlap: allow
    crash_limit: 7
    isolation: thread
    guard: run_row
    owner: billing
    runbook: https://example.com/runbooks/registry
  sweep:
    every: 90s
    after_crash: rerun
    call: jobs.cleanup:sweep
  by-hand:
    call: jobs.cleanup:all
"""


Messages = Callable[[str], list[str]]
Job = Callable[[str], str]


def test_a_full_file() -> None:
    plan = parse(FULL.encode())
    registry, sweep, by_hand = plan.jobs
    assert plan.version == 1
    assert plan.timezone == "Europe/London"
    assert plan.retention == Retention(succeeded=864000.0, failed=15552000.0, skipped=86400.0)
    assert registry == JobSpec(
        name="daily-registry",
        schedule=Cron("0 3 * * *", "Asia/Tokyo"),
        call="jobs.registry:build",
        args={"directory": "var/registry", "day": "2026-11-29", "password": {"env": "REGISTRY_PASSWORD"}},
        timezone="Asia/Tokyo",
        once_per=Period.DAY,
        timeout=None,
        retry=RetryPolicy(attempts=5, backoff=60.0, max=3600.0),
        overlap=Overlap.ALLOW,
        crash_limit=7,
        misfire=Misfire(MisfirePolicy.ALL, grace=30.0, within=93600.0, limit=5, first_sight=FirstSight.RUN),
        isolation=Isolation.THREAD,
        description="Registry of yesterday's payments",
        owner="billing",
        runbook="https://example.com/runbooks/registry",
    )
    assert sweep.schedule == Every(90.0)
    assert sweep.timezone == "Europe/London"
    assert (sweep.timeout, sweep.owner, sweep.misfire.grace) == (600.0, "platform", 30.0)
    assert by_hand.schedule is None


def test_the_least_file() -> None:
    (only,) = parse(b"version: 1\njobs: {a: {call: 'm:f'}}\n").jobs
    assert only == JobSpec(name="a", schedule=None, call="m:f")
    assert parse(b"version: 1\njobs: {}\n").jobs == ()


def test_the_hash_is_of_the_bytes() -> None:
    text = FULL.encode()
    assert parse(text).content_hash == hashlib.sha256(text).hexdigest()[:16]
    assert parse(text + b"# more\n").content_hash != parse(text).content_hash
    assert [one.hash for one in parse(text + b"# more\n").jobs] == [one.hash for one in parse(text).jobs]


def test_places_of_entries() -> None:
    plan = parse(FULL.encode())
    assert plan.places["jobs.daily-registry.call"] == (15, 5)
    assert plan.places["jobs.daily-registry.args.day"] == (16, 37)
    assert str(plan.problem("jobs.daily-registry.nowhere", "is odd")) == (
        "jobs.yaml:10:3: jobs.daily-registry.nowhere: is odd"
    )


def test_load_names_the_file_and_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "my jobs.yaml"
    path.write_text(FULL, encoding="utf-8")
    plan = load(path)
    assert plan.root == tmp_path
    assert plan.name == str(path)
    assert plan.content == FULL


def test_a_swapped_symlink_keeps_the_folder_of_the_name(tmp_path: Path) -> None:
    # As Kubernetes mounts a ConfigMap; the packages lie beside the link, not beside its target.
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "jobs.yaml").write_text(FULL, encoding="utf-8")
    (tmp_path / "jobs.yaml").symlink_to("..data/jobs.yaml")
    assert load(tmp_path / "jobs.yaml").root == tmp_path


@pytest.mark.parametrize("kind", ["absent", "folder"])
def test_a_file_that_cannot_be_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "jobs.yaml"
    if kind == "folder":
        path.mkdir()
    with pytest.raises(ConfigInvalid, match=r"jobs\.yaml: cannot be read: ") as caught:
        load(path)
    assert ("`soloist init` writes a first one" in str(caught.value)) is (kind == "absent")


WHOLE = [
    ("- a\n", "jobs.yaml:1:1: the file must be a mapping"),
    ("hello\n", "jobs.yaml:1:1: the file must be a mapping"),
    ("version: 1\n", "jobs.yaml:1:1: jobs: is missing: write jobs: {} for none"),
    ("jobs: {}\n", "jobs.yaml:1:1: version: is missing: write version: 1"),
    ("version: 1\njobs:\n", "jobs.yaml:2:1: jobs: must be a mapping, {key: value} (it is empty)"),
    ("version: 1\njobs: [{name: a}]\n", "jobs.yaml:2:1: jobs: must be a mapping, {key: value}, not a list"),
    ("version: 2\njobs: {}\n", "jobs.yaml:1:1: version: must be 1"),
    ("version: '1'\njobs: {}\n", "jobs.yaml:1:1: version: must be 1"),
    ("version: true\njobs: {}\n", "jobs.yaml:1:1: version: must be 1"),
    ("version: 1.0\njobs: {}\n", "jobs.yaml:1:1: version: must be 1"),
    ("version: 1\njobs: {}\ntimezone: Mars\n", "jobs.yaml:3:1: timezone: unknown timezone 'Mars'"),
    ("version: 1\njobs: {}\ndefualts: {}\n", 'jobs.yaml:3:1: defualts: unknown key (did you mean "defaults"?)'),
    ("version: 1\njobs: {}\ndefaults: {call: x}\n", "jobs.yaml:3:12: defaults.call: unknown key"),
    ("version: 1\njobs: {}\nretention: {failed: 0s}\n", "jobs.yaml:3:13: retention.failed: must be longer"),
    ("version: 1\njobs: {}\nretention: {lost: 3d}\n", "jobs.yaml:3:13: retention.lost: unknown key"),
    ("version: 1\njobs: {a: 5}\n", "jobs.yaml:2:8: jobs.a: a job must be a mapping"),
    ("version: 1\njobs: {a: }\n", "jobs.yaml:2:8: jobs.a: a job must be a mapping"),
    ("version: 1\njobs: {a: {}}\n", "jobs.yaml:2:8: jobs.a.call: is missing: write call: package.module:function"),
]


@pytest.mark.parametrize(("text", "said"), WHOLE)
def test_the_whole_file(text: str, said: str, messages: Messages) -> None:
    (message,) = messages(text)
    assert message.startswith(said)


@pytest.mark.parametrize("name", ["Nightly", "nightly_report", "-a", "a-", "a.b", "a b", "é", "x" * 53, "''"])
def test_names_that_are_no_dns_label(name: str, messages: Messages) -> None:
    (message,) = messages(f"version: 1\njobs:\n  {name}: {{call: 'a:b'}}\n")
    assert message.startswith("jobs.yaml:3:3: jobs.")
    assert "1 to 52 of a-z, 0-9 and -" in message


@pytest.mark.parametrize("name", ["a", "7-eleven", "no", "off", "x" * 52, "'007'"])
def test_names_that_are(name: str) -> None:
    assert parse(f"version: 1\njobs:\n  {name}: {{call: 'a:b'}}\n".encode()).jobs[0].name == name.strip("'")


CONTRADICTIONS = [
    ("schedule: '@daily'\nevery: 5m", "jobs.yaml:6:5: jobs.j.every: schedule is given already"),
    ("at: 2026-11-29T03:00:00Z\nschedule: '@daily'", "jobs.yaml:5:5: jobs.j.at: schedule is given already"),
    ("once_per: day", "jobs.yaml:5:5: jobs.j.once_per: once_per needs a schedule"),
    ("once_per: day\nat: 2026-11-29T03:00:00Z", "jobs.yaml:5:5: jobs.j.once_per: once_per needs a schedule"),
    ("after_crash: fail\nretry: {attempts: 2}", "jobs.yaml:5:5: jobs.j.after_crash: after_crash: fail never starts"),
    (
        "retry: {backoff: 2h, max: 1h}",
        "jobs.yaml:5:13: jobs.j.retry.backoff: backoff is 2h and max 1h, so no wait would",
    ),
    ("retry: {backoff: 2h}", "jobs.yaml:5:13: jobs.j.retry.backoff: backoff is 2h and max 1h, so no wait would"),
    ("retry: {max: 30s}", "jobs.yaml:5:13: jobs.j.retry.max: backoff is 1m and max 30s, so no wait would"),
    ("misfire: {grace: 2d, within: 1h}", "jobs.yaml:5:15: jobs.j.misfire.grace: grace is 2d and within 1h, but a tick"),
    ("misfire: {within: 30s}", "jobs.yaml:5:15: jobs.j.misfire.within: grace is 1m and within 30s, but a tick"),
    ("at: 2026-03-29T01:30\ntimezone: Europe/London", "jobs.yaml:5:5: jobs.j.at: 2026-03-29T01:30 does not exist"),
    ("at: 2026-10-25T01:30\ntimezone: Europe/London", "jobs.yaml:5:5: jobs.j.at: 2026-10-25T01:30 happens twice"),
]


@pytest.mark.parametrize(("lines", "said"), CONTRADICTIONS)
def test_contradictions(lines: str, said: str, messages: Messages, job: Job) -> None:
    (message,) = messages(job(lines))
    assert message.startswith(said)


def test_a_contradiction_made_by_the_defaults_is_seen(messages: Messages) -> None:
    text = "version: 1\ndefaults: {retry: {attempts: 3}}\njobs: {a: {call: 'm:f', after_crash: fail}}\n"
    (message,) = messages(text)
    assert message.startswith("jobs.yaml:3:25: jobs.a.after_crash: ")
    one = parse(text.replace("fail}", "fail, retry: {attempts: 1}}").encode()).jobs[0]
    assert one.after_crash is AfterCrash.FAIL


def test_lengths_that_contradict_each_other_are_told_where_one_is_written(messages: Messages) -> None:
    text = "version: 1\ndefaults: {retry: {backoff: 2h}}\njobs: {a: {call: 'm:f'}, b: {call: 'm:f'}}\n"
    (message,) = messages(text)
    assert message.startswith("jobs.yaml:2:20: defaults.retry.backoff: ")
    assert "write max: 2h or more, or a shorter backoff" in message
    (message,) = messages(text.replace("backoff: 2h", "max: 2h").replace("'m:f'}", "'m:f', retry: {backoff: 3h}}", 1))
    assert message.startswith("jobs.yaml:3:33: jobs.a.retry.backoff: ")
    assert parse(b"version: 1\njobs: {a: {call: 'm:f', misfire: {grace: 1d}, retry: {backoff: 1h}}}\n").jobs, "as long"


def test_a_time_without_offset_is_in_the_jobs_zone(job: Job) -> None:
    with_own = parse(job("at: 2026-11-29T03:00\ntimezone: Asia/Tokyo").encode()).jobs[0]
    with_files = parse((job("at: 2026-11-29T03:00") + "timezone: Asia/Tokyo\n").encode()).jobs[0]
    assert with_own.schedule == with_files.schedule
    assert with_own.schedule is not None
    assert with_own.schedule.to_dict() == {"at": "2026-11-28T18:00:00+00:00"}


def test_every_problem_at_once_in_file_order(messages: Messages) -> None:
    text = """\
version: 3
timezone: Europe/Berlln
defaults: {timeout: 10}
jobs:
  One:
    schedule: 0 3 * * 8
    call: nothing
    args: {password: hunter2}
  007:
    call: a:b
  two:
    timeout: &t 5m
    retry: {attempts: "3"}
  two:
    call: a:b
  three:
    call: a:b
    timeout: *t
    overlap: skp
"""
    found = messages(text)
    places = [tuple(int(part) for part in line.split(":")[1:3]) for line in found]
    assert places == sorted(places)
    assert [line for line, _ in places] == [1, 2, 3, 5, 6, 7, 8, 9, 11, 12, 13, 14, 18, 19]


def test_a_broken_value_is_reported_once(messages: Messages) -> None:
    # An alias has no value; that `call` would then be no text is not news.
    (message,) = messages("version: 1\njobs: {a: {call: *x}}\n")
    assert "aliases are not allowed" in message


def test_the_keys_of_a_schedule(job: Job) -> None:
    def schedule(lines: str, top: str = "") -> Cron | Every:
        (only,) = parse(job(lines).replace("jobs:\n", f"{top}jobs:\n", 1).encode()).jobs
        assert isinstance(only.schedule, Cron | Every)
        return only.schedule

    defaults = "defaults: {dst: {gap: skip}}\n"
    skip, both = Dst(gap=DstGap.SKIP), Dst(DstGap.SKIP, DstOverlap.BOTH)
    assert schedule("schedule: 0 3 * * *", defaults).dst == skip
    assert schedule("schedule: 0 3 * * *\ndst: {overlap: both}", defaults).dst == both, "merged key by key"
    assert schedule("every: 1h", defaults) == Every(3600.0), "a default of the file is no contradiction"
    assert schedule("schedule: H H * * *") == parse_cron("H H * * *", "UTC", name="j")
    assert schedule("every: 1h\nanchor: 2026-06-01T09:05\ntimezone: Asia/Tokyo").to_dict() == {
        "every": 3600.0,
        "anchor": "2026-06-01T00:05:00+00:00",
    }
    bounded = schedule(
        "schedule: 0 3 * * *\ntimezone: Asia/Tokyo\nfrom: 2026-06-01\nuntil: 2026-06-30\nexcept: [06-10, 2026-06-05]"
    )
    assert bounded.to_dict() == {
        "cron": "0 3 * * *",
        "timezone": "Asia/Tokyo",
        "from": "2026-05-31T15:00:00+00:00",
        "until": "2026-06-30T14:59:59.999999+00:00",
        "except": ["06-10", "2026-06-05"],
    }
    assert schedule("every: 1h\nexcept: [12-25]\ntimezone: Asia/Tokyo").timezone == "Asia/Tokyo"


def test_every_problem_of_a_schedule_at_once(messages: Messages, job: Job) -> None:
    lines = "at: 2026-12-25\nanchor: 2026-01-01\nfrom: 2026-01-01\nexcept: [12-25]\ndst: {gap: skip}\nonce_per: day"
    assert [message.split(": ")[1] for message in messages(job(lines))] == [
        f"jobs.j.{key}" for key in ("anchor", "from", "except", "dst", "once_per")
    ]
    zone = "every: 1h\ntimezone: Europe/London\nfrom: 2026-03-29T01:30\nuntil: 2026-10-25T01:30"
    assert [message.split(":")[1] for message in messages(job(zone))] == ["7", "8"]
