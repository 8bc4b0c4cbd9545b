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
        nightly={"schedule": "30 1 * * *", "timezone": "Europe/London", "call": "work:quick", "once_per": "day"},
        hourly={"every": "1h", "call": "work:quick"},
        by_hand={"call": "work:slow"},
    )
    return desk


def test_a_good_file(two: Desk) -> None:
    assert two.run("check").out == "jobs.yaml: 3 jobs, no problems\n"
    answer = two.run("check", "-o", "json")
    assert (answer.code, answer.rows) == (0, [])


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
    desk.write(a={"every": "1h", "call": "loud:f"})
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
        },
        {
            "job": "nightly",
            "scheduled_at": "2026-10-26T01:30:00Z",
            "local": "2026-10-26T01:30:00+00:00",
            "run_key": "2026-10-26",
        },
    ]


def test_next_of_all_jobs_is_in_the_order_of_time(two: Desk) -> None:
    rows = two.run("next", "--after", AFTER, "-o", "json").rows
    assert len(rows) == 10
    assert [r["scheduled_at"] for r in rows] == sorted(r["scheduled_at"] for r in rows)
    assert [r["job"] for r in rows[:3]] == ["nightly", "hourly", "hourly"]
    assert len(two.run("next", "hourly", "-o", "json").rows) == 5


def test_next_begins_strictly_after(two: Desk) -> None:
    rows = two.run("next", "hourly", "--after", "2026-01-01T01:00:00+01:00", "-n", "1", "-o", "json").rows
    assert rows[0]["scheduled_at"] == "2026-01-01T01:00:00Z"


def test_next_without_a_word_begins_now(two: Desk) -> None:
    (row,) = two.run("next", "hourly", "-n", "1", "-o", "json").rows
    ahead = (datetime.fromisoformat(row["scheduled_at"]) - datetime.now(UTC)).total_seconds()
    assert -60 < ahead <= 3600


def test_next_in_a_pipe_is_aligned_and_plain(two: Desk) -> None:
    head, *rows = two.run("next", "--after", AFTER, "-n", "2").out.splitlines()
    assert head.split() == ["JOB", "SCHEDULED_AT", "LOCAL", "RUN_KEY"]
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
