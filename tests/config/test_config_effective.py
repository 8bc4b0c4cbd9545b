"""`check --effective`: the plan as a jobs file that means the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.config.effective import effective_rows, effective_text
from scheduler.config.jobs_file import load, parse
from scheduler.config.models import JobSection
from scheduler.core.duration import LONGEST, format_duration, parse_duration

FULL = """\
version: 1
timezone: Europe/London
defaults: {timeout: 10m, retry: {attempts: 3, backoff: 1m}, misfire: {grace: 30s}, overlap: queue, owner: "a: b # c"}
retention: {succeeded: 10d, failed: 1h30m}
jobs:
  cron: {schedule: "@weekly", timezone: Asia/Tokyo, once_per: week, call: "m.n:f.g", jitter: 90s}
  every: {every: 1500ms, call: "m:f", timeout: none, retry: {attempts: 1, backoff: 0s}}
  limited: {schedule: H 2 * * *, from: 2026-01-01, until: 2026-12-31, except: [2026-12-25, 12-26], call: m:f,
     dst: {gap: skip}}
  anchored: {every: 8h, anchor: 2026-01-01T06:00, except: [01-01], call: "m:f"}
  once: {at: 2026-12-24T18:00, call: "m:f", misfire: {policy: all, within: 26h, first_sight: run}}
  by-hand: {call: "m:f", after_crash: fail, retry: {attempts: 1}, pause_after_failures: 5, isolation: thread}
  "007":
    call: m:f
    guard: advisory_lock
    description: |
      Two lines, "quoted" \\ and
      with a tab\tin the middle: # no comment
    args:
      text: ["", "no", "true", "null", "1", "1.5", "0x1F", "1:30", "~", "- a", "a: b", " a ", "{", "&a", "\\u2028"]
      numbers: [0, -1, 1.5, -2.5e-07, 1.0e+300, 123456789012345678901234567890, true, false, null]
      "odd key": {token: {env: TOKEN}, "": [[], {}], "it's": "\\a\\x7f\\u0085\\ufeff"}
"""


def same(text: str) -> None:
    """What is printed is read as the same plan, and printed the same again."""
    plan = parse(text.encode())
    printed = effective_text(plan)
    again = parse(printed.encode())
    assert [job.hash for job in again.jobs] == [job.hash for job in plan.jobs]
    assert again.jobs == plan.jobs
    assert (again.timezone, again.retention) == (plan.timezone, plan.retention)
    assert effective_text(again) == printed


def test_it_means_the_same() -> None:
    same(FULL)
    same("version: 1\njobs: {}\n")


def test_the_repositorys_own_file_means_the_same() -> None:
    plan = load(Path(__file__).parents[2] / "jobs.yaml")
    assert parse(effective_text(plan).encode()).jobs == plan.jobs


def test_every_key_with_a_value_is_there() -> None:
    text = effective_text(parse(b"version: 1\njobs: {a: {call: 'm:f', schedule: 0 3 * * *}}\n"))
    assert text == (
        "# jobs.yaml, with every default filled in\n"
        "version: 1\n"
        "timezone: UTC\n"
        "retention: {succeeded: 30d, failed: 180d, skipped: 7d}\n"
        "jobs:\n"
        "  a:\n"
        "    call: m:f\n"
        "    args: {}\n"
        '    schedule: "0 3 * * *"\n'
        "    timezone: UTC\n"
        "    guard: run_row\n"
        "    timeout: none\n"
        "    retry: {attempts: 1, backoff: 1m, max: 1h}\n"
        "    overlap: skip\n"
        "    after_crash: rerun\n"
        "    crash_limit: 3\n"
        "    misfire: {policy: latest, grace: 1m, within: 1d, limit: 100, first_sight: wait}\n"
        "    lost_contact: stop\n"
        "    jitter: 0s\n"
        "    isolation: process\n"
    )


def test_rows_are_flat_and_name_every_key() -> None:
    plan = parse(FULL.encode())
    rows = {row["job"]: row for row in effective_rows(plan)}
    assert rows["cron"]["retry.attempts"] == 3
    assert rows["cron"]["schedule"] == "0 0 * * 0"
    assert rows["every"]["every"] == "1s500ms"
    assert rows["once"]["at"] == "2026-12-24T18:00:00+00:00"
    assert rows["007"]["args.odd key"]["token"] == {"env": "TOKEN"}
    assert [row["spec_hash"] for row in rows.values()] == [job.hash for job in plan.jobs]
    assert not any(isinstance(value, dict) for key, value in rows["cron"].items() if "args" not in key)
    known = {field.alias or name for name, field in JobSection.model_fields.items()} | {"job", "spec_hash"}
    assert {key.partition(".")[0] for row in rows.values() for key in row} <= known


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), max_size=8)
VALUES = st.recursive(
    LEAVES | TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(TEXTS, VALUES, max_size=4), TEXTS)
def test_whatever_the_args_and_texts_are(args: dict[str, object], description: str) -> None:
    from scheduler.config.secrets import plain_secrets

    if list(plain_secrets(args)):
        return
    same(
        json.dumps(
            {"version": 1, "jobs": {"a": {"call": "m:f", "args": args, "description": description}}}, ensure_ascii=False
        )
    )


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, int(LONGEST * 1000)))
def test_durations_are_written_as_they_are_read(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, abs=1e-9)
