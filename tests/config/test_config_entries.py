"""One wrong entry at a time: typos, coercions, words, schedules, secrets. The message says what to write."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.config.jobs_file import parse

Messages = Callable[[str], list[str]]
Job = Callable[[str], str]

ENTRIES = [
    # unknown keys, with what was meant; and keys that belong to later versions
    ("timeuot: 5m", 'timeuot: unknown key (did you mean "timeout"?)'),
    ("cron: 0 3 * * *", 'cron: unknown key (did you mean "schedule"?)'),
    ("retries: 3", 'retries: unknown key (did you mean "retry"?)'),
    ("shell: [ls]", "shell: unknown key (known here: "),
    ("sla: {late_after: 15m}", "sla: unknown key"),
    ("retry: {atempts: 3}", 'retry.atempts: unknown key (did you mean "attempts"?)'),
    ("misfire: {gracy: 3s}", 'misfire.gracy: unknown key (did you mean "grace"?)'),
    # no coercion
    ("timeout: 600", "timeout: 600 has no unit: write 600s for seconds or 600m for minutes"),
    ("timeout: '600'", "timeout: '600' has no unit"),
    ("timeout: 1.5", "timeout: 1.5 has no unit"),
    ("timeout: yes", "timeout: 'yes' is not a duration"),
    ("timeout: true", "timeout: must be a text such as 90s, 15m or 1h30m, not true"),
    ("timeout: 1:30", "timeout: '1:30' is not a duration: write 1h30m or 1m30s"),
    ("timeout: 0s", "timeout: must be longer than nothing"),
    ("timeout:", "timeout: is empty; write e.g. 90s"),
    ("retry: 3", "retry: must be a mapping, {key: value}, not a number"),
    ("retry: {attempts: '3'}", "retry.attempts: must be a whole number, not a text"),
    ("retry: {attempts: true}", "retry.attempts: must be a whole number, not true or false"),
    ("retry: {attempts: 1.5}", "retry.attempts: must be a whole number, not a number"),
    ("retry: {attempts: 0}", "retry.attempts: should be greater than or equal to 1"),
    ("crash_limit: 0", "crash_limit: should be greater than or equal to 1"),
    ("misfire: {limit: 0}", "misfire.limit: should be greater than or equal to 1"),
    ("misfire: {within: 0s}", "misfire.within: must be longer than nothing"),
    ("description: 5", "description: must be a text: quote it, not a number"),
    ("owner:", "owner: must be a text: quote it (it is empty)"),
    ("args: [a]", "args: must be a mapping, {key: value}, not a list"),
    ("args:", "args: must be a mapping, {key: value} (it is empty)"),
    # words
    ("overlap: forbidd", "overlap: 'forbidd' is not allowed; allowed: skip, queue, queue_all, replace, allow"),
    (
        "overlap: skipp",
        "overlap: 'skipp' is not allowed (did you mean \"skip\"?); allowed: skip, queue, queue_all, replace, allow",
    ),
    ("overlap: Skip", "overlap: 'Skip' is not allowed (did you mean \"skip\"?)"),
    ("overlap: cancel", "overlap: 'cancel' is not allowed"),
    ("guard: mutex", "guard: 'mutex' is not allowed; allowed: run_row, advisory_lock"),
    ("after_crash: true", "after_crash: must be a text such as rerun or fail, not true"),
    ("isolation: container", "isolation: 'container' is not allowed; allowed: process, thread"),
    ("misfire: {policy: last}", "misfire.policy: 'last' is not allowed (did you mean \"latest\"?)"),
    ("once_per: daily\nschedule: '@daily'", "once_per: 'daily' is not allowed (did you mean \"day\"?)"),
    # schedules
    ("schedule: 0 3 * * 8", "schedule: day of week '8': 8 is not in 0-7"),
    ("schedule: 0 0 3 * * *", "schedule: expected 5 fields"),
    ("schedule: 5", 'schedule: must be a text such as "0 3 * * *", not 5'),
    ("schedule:", 'schedule: is empty; write e.g. "0 3 * * *"'),
    ("schedule: CRON_TZ=UTC 0 3 * * *", "schedule: a zone inside the expression"),
    ("schedule: 0 0 30 2 *", "schedule: never fires"),
    ("every: 15", "every: 15 has no unit"),
    ("every: 50ms", "every: every: 0.05s is not between 100ms and ten years"),
    ("at: soon", "at: 'soon' is not an ISO date and time"),
    ("at: 2026", "at: must be a text such as 2026-11-29T03:00:00+00:00, not 2026"),
    ("timezone: europe/berlin", "timezone: unknown timezone 'europe/berlin' (did you mean \"Europe/Berlin\"?)"),
    ("timezone: 5", "timezone: must be a text such as Europe/London, not 5"),
]


@pytest.mark.parametrize(("line", "said"), ENTRIES)
def test_one_wrong_entry(line: str, said: str, messages: Messages, job: Job) -> None:
    found = messages(job(line))
    assert len(found) == 1
    assert f": jobs.j.{said}" in found[0]
    assert found[0].startswith("jobs.yaml:5:")


@pytest.mark.parametrize(
    ("call", "said"),
    [("jobs.registry", "is not package.module:function"), ("os:system()", "is not package"), ("5", "must be a text")],
)
def test_a_call_that_is_none(call: str, said: str, messages: Messages) -> None:
    (message,) = messages(f"version: 1\njobs: {{a: {{call: {call}}}}}\n")
    assert said in message


SECRETS = [
    "password: x",
    "db_password: x",
    "apiKey: x",
    "api-key: x",
    "TOKEN: x",
    "private_key: x",
    "nested: {passwd: x}",
]


@pytest.mark.parametrize("entry", [*SECRETS, "list: [{secret: x}]", "tokens: {token: [x]}"])
def test_a_secret_in_the_file_is_refused_and_not_repeated(entry: str, messages: Messages, job: Job) -> None:
    (message,) = messages(job(f"args: {{{entry.replace(': x', ': hunter2').replace('[x]', '[hunter2]')}}}"))
    assert "write {env: NAME} or {file: PATH}" in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    "entry", ["password: {env: P}", "token: {file: /run/t}", "max_tokens: 5", "token_count: x", "password_file: x"]
)
def test_references_and_other_names_are_fine(entry: str, job: Job) -> None:
    assert parse(job(f"args: {{{entry}}}").encode()).jobs[0].args
