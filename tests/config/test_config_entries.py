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
    ("schedule: 0 0 3 * * *", "schedule: expected 5 fields (minute hour day month weekday), got 6"),
    ("schedule: '@reboot'", "schedule: @reboot has no meaning among replicas; use a schedule, or run the job by hand"),
    ("schedule: '@every 5m'", "schedule: @every is not a cron expression; use the `every:` key, e.g. every: 5m"),
    ("schedule: 0 22-2 * * *", "schedule: hour '22-2': the range 22-2 runs backwards and does not wrap; write 22,23,0"),
    ("schedule: ０ 3 * * *", "schedule: '０' (U+FF10) is not allowed: a cron expression is plain ASCII"),
    ("schedule: 0 9–17 * * *", "schedule: '–' (U+2013) is not allowed: a cron expression is plain ASCII; write -"),
    (
        "schedule: 0 9\u221217 * * *",
        "schedule: '\u2212' (U+2212) is not allowed: a cron expression is plain ASCII; write -",
    ),
    (
        "schedule: 0\u00a03 * * *",
        "schedule: '\\xa0' (U+00A0) is not allowed: a cron expression is plain ASCII; write a sp",
    ),
    (
        "schedule: 0\u200b3 * * *",
        "schedule: '\\u200b' (U+200B) is not allowed: a cron expression is plain ASCII; it is",
    ),
    ("schedule: ٣ 3 * * *", "schedule: '٣' (U+0663) is not allowed: a cron expression is plain ASCII; write 3"),
    ("schedule: 0 3 ＊ * *", "schedule: '＊' (U+FF0A) is not allowed: a cron expression is plain ASCII; write *"),
    ("schedule: é 3 * * *", "schedule: 'é' (U+00E9) is not allowed: a cron expression is plain ASCII"),
    (
        "schedule: 03:00",
        "schedule: expected 5 fields (minute hour day month weekday), got 1; for 03:00 every day write 0 3 ",
    ),
    (
        "schedule: '23:30'",
        "schedule: expected 5 fields (minute hour day month weekday), got 1; for 23:30 every day write 30 ",
    ),
    (
        "schedule: '*/30 * * * * *'",
        "schedule: expected 5 fields (minute hour day month weekday), got 6; there is no field "
        "for seconds or years (for seconds use `every:`, e.g. every: 30s)",
    ),
    ("schedule: 00000005 3 * * *", "schedule: minute '00000005': 00000005 has too many leading zeros: write 5"),
    ("schedule: 00000065 3 * * *", "schedule: minute '00000065': 00000065 is not in 0-59"),
    ("every: 1w", "every: '1w' is not a duration: weeks are unknown, write 7d"),
    ("timeout: 2w", "timeout: '2w' is not a duration: weeks are unknown, write 14d"),
    ("schedule: h 3 * * *", "schedule: minute 'h': `H` for a value made of the job's name is written in upper case"),
    ("schedule: H/61 3 * * *", "schedule: minute 'H/61': a step of 61 is not in 1-60"),
    ("schedule: 0 0 H(1-31) * *", "schedule: day of month 'H(1-31)': `H` stays within 1-28"),
    ("schedule: 0 3 * * *\nevery: 1h", "every: schedule is given already: a job has one of schedule, every and at"),
    # where intervals are counted from
    (
        "schedule: 0 3 * * *\nanchor: 2026-01-01",
        "anchor: anchor is where the intervals of every: are counted",
    ),
    (
        "anchor: 2026-01-01",
        "anchor: anchor is where the intervals of every: are counted from, but this job has",
    ),
    ("every: 1h\nanchor: noon", "anchor: 'noon' is not an ISO date and time"),
    ("every: 1h\nanchor: 2026", "anchor: must be a text such as 2026-01-01T03:00:00+00:00, not 2026"),
    (
        "every: 1h\ntimezone: Europe/London\nanchor: 2026-10-25T01:30",
        "anchor: 2026-10-25T01:30 happens twice in Europe/London: add an offset, 2026-10-25T01:30:00+01:00 or",
    ),
    # bounds
    (
        "at: 2026-12-25T03:00\nfrom: 2026-01-01",
        "from: from bounds the ticks of schedule: or every:, but at: is one",
    ),
    (
        "until: 2026-01-01",
        "until: until bounds the ticks of schedule: or every:, but this job has no schedule: take it",
    ),
    ("at: 2026-12-25T03:00\nexcept: [12-25]", "except: except bounds the ticks of schedule: or every:, but at: is one"),
    ("every: 1h\nfrom: 2026-02-01\nuntil: 2026-01-31", "until: until comes before from: there is no time"),
    ("every: 1h\nfrom: 2026-02-30", "from: 2026-02-30 is not a day: day"),
    ("every: 1h\nfrom: next week", "from: 'next week' is not an ISO date and time"),
    ("every: 1h\nuntil: 9999-12-31", "until: 9999-12-31: the year must lie between 1900 and 2999"),
    ("every: 1h\nuntil:", "until: is empty; write e.g. 2026-12-31"),
    ("every: 1h\ntimezone: Europe/London\nuntil: 2026-03-29T01:30", "until: 2026-03-29T01:30 does not exist in Europe"),
    ("every: 1h\nexcept: 2026-12-25", "except: must be a list of dates, e.g. [2026-12-25, 01-01]"),
    ("every: 1h\nexcept: [2026-12-24, 02-30]", "except.1: 02-30 is not a day: day"),
    ("every: 1h\nexcept: [25.12.]", "except.0: '25.12.' is not a date, e.g. 2026-12-25, or 12-25 for each year"),
    ("every: 1h\nexcept: [1225]", "except.0: must be a text such as 2026-12-25, or 12-25 for each year, not 1225"),
    ("every: 1h\nexcept: [２０２６-12-25]", "except.0: '２０２６-12-25' is not a date"),
    ("every: 1h\nexcept: {a: b}", "except: must be a list, [a, b], not a mapping"),
    ("every: 1h\nexept: [12-25]", 'exept: unknown key (did you mean "except"?)'),
    ("every: 1h\nfrom_: 2026-01-01", 'from_: unknown key (did you mean "from"?)'),
    ("every: 1h\nholidays: [12-25]", 'holidays: unknown key (did you mean "except"?)'),
    # clock changes
    ("every: 1h\ndst: {gap: skip}", "dst: dst is about the wall times of schedule:, but every: is elapsed time, which"),
    ("at: 2026-12-25T03:00\ndst: {gap: skip}", "dst: dst is about the wall times of schedule:, but at: is one instant"),
    ("dst: {gap: skip}", "dst: dst is about the wall times of schedule:, but this job has no schedule: take it out"),
    ("schedule: 0 3 * * *\ndst: {gap: jump}", "dst.gap: 'jump' is not allowed; allowed: shift, skip"),
    ("schedule: 0 3 * * *\ndst: {overlap: twice}", "dst.overlap: 'twice' is not allowed; allowed: first, both"),
    ("schedule: 0 3 * * *\ndst: {fold: both}", "dst.fold: unknown key (known here: gap, overlap)"),
    ("schedule: 0 3 * * *\ndst: skip", "dst: must be a mapping, {key: value}, not a text"),
    ("at: 2026-12-25T03:00\nonce_per: day", "once_per: once_per needs a schedule"),
    ("jitter: 30", "jitter: 30 has no unit: write 30s for seconds or 30m for minutes"),
    ("timezone: europe/berlin", "timezone: unknown timezone 'europe/berlin' (did you mean \"Europe/Berlin\"?)"),
    ("timezone: 5", "timezone: must be a text such as Europe/London, not 5"),
]


@pytest.mark.parametrize(("line", "said"), ENTRIES)
def test_one_wrong_entry(line: str, said: str, messages: Messages, job: Job) -> None:
    found = messages(job(line))
    assert len(found) == 1
    assert f": jobs.j.{said}" in found[0]
    key = said.partition(":")[0].partition(".")[0]
    number = 5 + [one.partition(":")[0] for one in line.splitlines()].index(key)
    assert found[0].startswith(f"jobs.yaml:{number}:")


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
