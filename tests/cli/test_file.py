"""check and next: the jobs file alone, no database."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from desk import Desk

AFTER = "2026-10-25T00:10:00Z"


@pytest.fixture
def two(desk: Desk) -> Desk:
    desk.write(
        nightly={
            "schedule": "30 1 * * *",
            "timezone": "Europe/London",
            "call": "work:quick",
            "once_per": "day",
            "timeout": "1h",
        },
        hourly={"every": "1h", "call": "work:quick", "timeout": "10m"},
        by_hand={"call": "work:slow"},
    )
    return desk


def test_a_good_file(two: Desk) -> None:
    two.write(hourly={"every": "1h", "call": "work:quick", "timeout": "10m"}, by_hand={"call": "work:slow"})
    answer = two.run("check")
    assert (answer.code, answer.out, answer.err) == (0, "jobs.yaml: 2 jobs, no problems\n", "")
    answer = two.run("check", "-o", "json")
    assert (answer.code, answer.rows, answer.err) == (0, [], "")
    assert two.run("check", "--strict").code == 0


def test_warnings_are_no_errors_unless_one_is_strict(desk: Desk) -> None:
    (desk.folder / "jobs.yaml").write_text(
        "version: 1\njobs:\n"
        "  a: {call: work:quick, timeout: 1m, schedule: '*/40 * * * *'}\n"
        "  b: {call: work:quick, timeout: 2h, every: 1h}\n"
    )
    answer = desk.run("check")
    assert (answer.code, answer.out) == (0, "jobs.yaml: 2 jobs, 2 warnings\n")
    first, second = answer.err.splitlines()
    assert first.startswith("jobs.yaml:3:38: jobs.a.schedule: warning: minute */40 begins anew each hour: ")
    assert second.startswith("jobs.yaml:4:25: jobs.b.timeout: warning: 2h is longer than the 1h between two ticks")
    strict = desk.run("check", "--strict", "-o", "json")
    assert strict.code == 3
    assert strict.err == answer.err
    assert [(row["severity"], row["line"], row["column"], row["path"]) for row in strict.rows] == [
        ("warning", 3, 38, "jobs.a.schedule"), ("warning", 4, 25, "jobs.b.timeout")
    ]  # fmt: skip
    assert strict.rows[1]["message"].startswith("2h is longer")


def test_a_broken_file_has_errors_and_no_warnings(desk: Desk) -> None:
    desk.write(a={"every": "1h", "call": "work:quick", "timeout": "2h"}, b={"evry": "1h", "call": "work:quick"})
    answer = desk.run("check", "-o", "json")
    assert answer.code == 3
    assert [(row["severity"], row["path"]) for row in answer.rows] == [("error", "jobs.b.evry")]
    assert "warning" not in answer.err


def test_the_effective_file_is_a_jobs_file_of_the_same_meaning(two: Desk) -> None:
    printed = two.run("check", "--effective")
    assert printed.code == 0
    (two.folder / "effective.yaml").write_text(printed.out)
    again = two.run("check", "--effective", "effective.yaml")
    assert again.out.splitlines()[1:] == printed.out.splitlines()[1:]
    assert "    misfire: {policy: latest, grace: 1m, within: 1d, limit: 100, first_sight: wait}" in printed.out
    rows = two.run("check", "--effective", "-o", "json").rows
    assert rows == two.run("check", "--effective", "effective.yaml", "-o", "json").rows
    assert [(row["job"], row.get("every"), row["timeout"]) for row in rows] == [
        ("nightly", None, "1h"), ("hourly", "1h", "10m"), ("by-hand", None, "none")
    ]  # fmt: skip


def test_every_problem_at_once_with_its_place(desk: Desk) -> None:
    (desk.folder / "jobs.yaml").write_text(
        "version: 1\n"
        "jobs:\n"
        "  a:\n"
        "    every: 1h\n"
        "    call: work:quik\n"
        "  b:\n"
        "    every: 1h\n"
        "    call: work:slow\n"
        "    args: {secs: 1}\n"
    )
    answer = desk.run("check")
    assert (answer.code, answer.out) == (3, "")
    first, second = answer.err.splitlines()[:2]
    assert first.startswith("jobs.yaml:5:5: jobs.a.call: ")
    assert "quick" in first, "what was probably meant"
    assert second.startswith("jobs.yaml:9:12: jobs.b.args.secs: ")
    found = desk.run("check", "-o", "json").rows
    assert [(p["line"], p["path"]) for p in found] == [(5, "jobs.a.call"), (9, "jobs.b.args.secs")]
    assert desk.run("serve").err.splitlines()[:2] == [first, second], "serve says the same"
    assert not (desk.folder / ".soloist").exists(), "and starts nothing"


def test_broken_entries_hide_no_other_problem(desk: Desk) -> None:
    desk.write(
        typo={"every": "1h", "call": "work:quik"},
        shape={"evry": "1h", "call": "work:quick"},
        args={"every": "1h", "call": "work:slow", "args": {"secs": 1}},
        good={"every": "1h", "call": "work:quick"},
    )
    for command in ("check", "serve"):
        answer = desk.run(command)
        assert answer.code == 3
        assert [line.split(": ")[1] for line in answer.err.splitlines()[:3]] == [
            "jobs.typo.call", "jobs.shape.evry", "jobs.args.args.secs"
        ]  # fmt: skip
        assert "3 problems; nothing was started" in answer.err
    assert [row["path"] for row in desk.run("check", "-o", "json").rows] == [
        "jobs.typo.call", "jobs.shape.evry", "jobs.args.args.secs"
    ]  # fmt: skip


def test_a_secret_in_the_file_is_refused_and_not_shown(desk: Desk) -> None:
    desk.write(a={"every": "1h", "call": "work:slow", "args": {"seconds": "postgresql://me:s3cr3t@db/app"}})
    answer = desk.run("check")
    assert answer.code == 3
    assert "jobs.a.args.seconds: a secret must not stand in the file" in answer.err
    assert "s3cr3t" not in answer.err + answer.out


def test_what_a_module_prints_is_no_data(desk: Desk) -> None:
    (desk.folder / "loud.py").write_text("print('imported')\ndef f(ctx): pass\n")
    desk.write(a={"every": "1h", "call": "loud:f", "timeout": "1m"})
    answer = desk.run("check", "-o", "json")
    assert answer.rows == []
    assert "imported" in answer.err


def test_no_file(desk: Desk) -> None:
    answer = desk.run("check", "--jobs", "nowhere.yaml")
    assert answer.code == 3
    assert "nowhere.yaml" in answer.err
    assert "No such file" in answer.err


def test_the_file_is_named_by_flag_argument_or_environment(two: Desk) -> None:
    (two.folder / "jobs.yaml").rename(two.folder / "other.yaml")
    assert two.run("check").code == 3
    assert two.run("check", "--jobs", "other.yaml").code == 0
    assert two.run("check", "other.yaml").code == 0
    assert two.run("check", env={"SOLOIST_JOBS": "other.yaml"}).code == 0


def test_next_of_one_job_is_a_contract(two: Desk) -> None:
    answer = two.run("next", "nightly", "--after", AFTER, "-n", "2", "-o", "json")
    assert answer.rows == [
        {
            "job": "nightly",
            "scheduled_at": "2026-10-25T00:30:00Z",
            "local": "2026-10-25T01:30:00+01:00",
            "run_key": "2026-10-25",
            "dst": "first",
            "once_per": None,
        },
        {
            "job": "nightly",
            "scheduled_at": "2026-10-26T01:30:00Z",
            "local": "2026-10-26T01:30:00+00:00",
            "run_key": "2026-10-26",
            "dst": "back",
            "once_per": None,
        },
    ]


def test_next_of_all_jobs_is_in_the_order_of_time(two: Desk) -> None:
    rows = two.run("next", "--after", AFTER, "-o", "json").rows
    assert len(rows) == 10
    assert [r["scheduled_at"] for r in rows] == sorted(r["scheduled_at"] for r in rows)
    assert [r["job"] for r in rows[:3]] == ["nightly", "hourly", "hourly"]
    assert len(two.run("next", "hourly", "-o", "json").rows) == 5


def test_next_of_some_jobs_and_up_to_an_instant(two: Desk) -> None:
    rows = two.run("next", "hourly", "nightly", "hourly", "--after", AFTER, "-o", "json").rows
    assert len(rows) == 10
    assert {row["job"] for row in rows} == {"hourly", "nightly"}
    rows = two.run("next", "--after", AFTER, "--until", "2026-10-26T01:00:00Z", "-o", "json").rows
    assert [row["scheduled_at"] for row in rows if row["job"] == "hourly"][-1] == "2026-10-26T01:00:00Z", "included"
    assert len(rows) == 26
    assert len(two.run("next", "--after", AFTER, "--until", "2026-10-26T01:00:00Z", "-n", "3", "-o", "json").rows) == 3
    answer = two.run("next", "nightly", "--after", AFTER, "--until", "2026-10-25T00:20:00Z")
    assert (answer.code, answer.out) == (0, "")
    assert "no tick comes up to 2026-10-25T00:20:00Z" in answer.err
    assert two.run("next", "hourly", "nigthly").code == 4


def test_next_marks_what_the_clocks_do(two: Desk) -> None:
    rows = two.run("next", "nightly", "--after", "2027-03-27T12:00:00Z", "-n", "2", "-o", "json").rows
    assert [(row["local"], row["dst"]) for row in rows] == [
        ("2027-03-28T02:00:00+01:00", "gap"), ("2027-03-29T01:30:00+01:00", None)
    ]  # fmt: skip
    answer = two.run("next", "hourly", "--after", "2026-10-24T23:30:00Z", "-n", "3", "-o", "json")
    assert [row["dst"] for row in answer.rows] == [None, None, None], "its zone is UTC"


def test_next_marks_ticks_whose_period_has_its_run(desk: Desk) -> None:
    desk.write(daily={"schedule": "0 1,2 * * *", "once_per": "day", "call": "work:quick"})
    words = ["next", "--after", "2026-11-29T01:30:00Z", "-n", "3"]
    rows = desk.run(*words, "-o", "json").rows
    assert [(row["run_key"], row["once_per"]) for row in rows] == [
        ("2026-11-29", "perhaps"), ("2026-11-30", None), ("2026-11-30", "covered")
    ]  # fmt: skip
    head, first, second, third = desk.run(*words).out.splitlines()
    assert head.split()[-2:] == ["RUN_KEY", "ONCE_PER"]
    assert first.endswith("not run if an earlier tick was")
    assert second.endswith("2026-11-30")
    assert third.endswith("not run: its key's run is an earlier tick's")


def test_a_bounded_list_says_that_it_is(desk: Desk) -> None:
    desk.write(often={"every": "1s", "call": "work:quick"})
    answer = desk.run("next", "--after", "2026-01-01T00:00:00Z", "--until", "2026-01-02T00:00:00Z", "-o", "json")
    assert len(answer.rows) == 10_000
    assert "only the first 10,000 are shown" in answer.err


def test_next_begins_strictly_after(two: Desk) -> None:
    rows = two.run("next", "hourly", "--after", "2026-01-01T01:00:00+01:00", "-n", "1", "-o", "json").rows
    assert rows[0]["scheduled_at"] == "2026-01-01T01:00:00Z"


def test_next_without_a_word_begins_now(two: Desk) -> None:
    (row,) = two.run("next", "hourly", "-n", "1", "-o", "json").rows
    ahead = (datetime.fromisoformat(row["scheduled_at"]) - datetime.now(UTC)).total_seconds()
    assert -60 < ahead <= 3600


def test_next_in_a_pipe_is_aligned_and_plain(two: Desk) -> None:
    head, *rows = two.run("next", "--after", AFTER, "-n", "2").out.splitlines()
    assert head.split() == ["JOB", "SCHEDULED_AT", "LOCAL", "DST", "RUN_KEY"]
    assert [row.index("2026-10-25T0") for row in rows] == [head.index("SCHEDULED_AT")] * 2
    assert "\x1b" not in "".join(rows)


@pytest.mark.parametrize(
    ("env", "coloured"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_colour_only_on_a_terminal_that_wants_it(two: Desk, env: dict[str, str], coloured: bool) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "scheduler", "next", "hourly", "-n", "2"]
    process = subprocess.Popen(command, cwd=two.folder, env=two.environment(env), stdin=follower, stdout=follower)
    os.close(follower)
    said = b""
    with suppress(OSError):  # EIO: the terminal's last user is gone
        while piece := os.read(leader, 65536):
            said += piece
    os.close(leader)
    assert process.wait(60) == 0
    assert (b"\x1b[" in said) is coloured
    assert b"SCHEDULED_AT" in said


def test_next_of_an_unknown_job(two: Desk) -> None:
    answer = two.run("next", "nigthly")
    assert (answer.code, answer.out) == (4, "")
    assert 'did you mean "nightly"?' in answer.err
    assert "hourly" in two.run("next", "xyz").err, "where nothing is near, what there is"


def test_next_where_there_is_none(two: Desk) -> None:
    answer = two.run("next", "by-hand", "-o", "json")
    assert (answer.code, answer.rows) == (0, [])
    assert "no schedule" in answer.err


@pytest.mark.parametrize("word", ["2026-11-29", "2026-11-29T03:00:00", "tomorrow"])
def test_an_instant_needs_its_zone(two: Desk, word: str) -> None:
    answer = two.run("next", "--after", word)
    assert answer.code == 2
    assert "--after" in answer.err


def test_json_is_text_that_other_programs_read(two: Desk) -> None:
    assert json.loads(two.run("next", "-n", "1", "-o", "json").out)
