"""diff, schema and init: for those who edit the jobs file. No database, but where the example runs."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest
from desk import LIMIT, REPO, Desk

AFTER = "2026-11-29T12:00:00Z"
OLD = """\
version: 1
timezone: Europe/London
retention: {failed: 90d}
jobs:
  nightly: {schedule: 0 3 * * *, call: "work:quick", timeout: 1h, owner: billing}
  often: {every: 5m, call: "work:quick"}
  gone: {at: "2026-12-01T10:00:00Z", call: "work:quick"}
  same: {every: 1s, call: "work:quick"}
"""
NEW = """\
version: 1
timezone: Europe/London
jobs:
  same: {every: 1s, call: "work:quick", description: only words}
  nightly: {schedule: 0 4 * * *, call: "work:quick", timeout: 2h}
  often: {every: 10m, call: "work:quick"}
  new: {schedule: "@weekly", call: "work:slow"}
"""
ONCE = {"schedule": "0 1,2 * * *", "once_per": "day", "call": "work:quick"}


@pytest.fixture
def edited(desk: Desk) -> Desk:
    (desk.folder / "old.yaml").write_text(OLD)
    (desk.folder / "jobs.yaml").write_text(NEW)
    return desk


def test_what_an_edit_does_is_a_contract(edited: Desk) -> None:
    answer = edited.run("diff", "old.yaml", "jobs.yaml", "--after", AFTER, "--days", "7", "-o", "json")
    assert answer.code == 0
    rows = answer.rows
    assert all(list(row) == ["job", "change", "what", "key", "old", "new", "count"] for row in rows)
    keys = [(r["job"], r["change"], r["key"], r["old"], r["new"]) for r in rows if r["what"] == "key"]
    assert keys == [
        (None, "changed", "retention.failed", "90d", "180d"),
        ("same", "added", "description", None, "only words"),
        ("nightly", "changed", "schedule", "0 3 * * *", "0 4 * * *"),
        ("nightly", "changed", "timeout", "1h", "2h"),
        ("nightly", "removed", "owner", "billing", None),
        ("often", "changed", "every", "5m", "10m"),
    ]
    assert [(r["job"], r["change"]) for r in rows if r["what"] == "job"] == [("new", "added"), ("gone", "removed")]
    ticks = [r for r in rows if r["what"] == "tick"]
    totals = {(r["job"], r["change"]): 0 for r in ticks}
    for row in ticks:
        totals[row["job"], row["change"]] += row["count"]
    assert totals == {
        ("nightly", "moved"): 7, ("often", "removed"): 7 * 144, ("new", "added"): 1, ("gone", "removed"): 1
    }  # fmt: skip
    assert [r["count"] for r in ticks if r["job"] == "nightly"] == [1, 1, 1, 1, 1, 2], "five, and the rest as a number"
    moved = next(r for r in ticks if r["job"] == "nightly")
    assert (moved["old"], moved["new"]) == ("2026-11-30T03:00:00+00:00", "2026-11-30T04:00:00+00:00")


def test_one_tick_more_than_are_shown_is_shown(desk: Desk) -> None:
    (desk.folder / "old.yaml").write_text("{version: 1, jobs: {}}")
    desk.write(nightly={"schedule": "0 3 * * *", "call": "work:quick"})
    for days, counts in (("5", [1] * 5), ("6", [1] * 6), ("7", [1] * 5 + [2])):
        rows = desk.run("diff", "old.yaml", "--after", AFTER, "--days", days, "-o", "json").rows[1:]
        assert [row["count"] for row in rows] == counts
        assert [row["new"] is None for row in rows] == [count > 1 for count in counts]
    lines = desk.run("diff", "old.yaml", "--after", AFTER, "--days", "6").out.splitlines()
    assert [line.split()[-1] for line in lines[2:]] == [f"2026-{day}T03:00:00+00:00" for day in (
        "11-30", "12-01", "12-02", "12-03", "12-04", "12-05"
    )]  # fmt: skip


def test_ticks_of_a_period_that_has_its_run_are_no_difference(desk: Desk) -> None:
    (desk.folder / "old.yaml").write_text(json.dumps({"version": 1, "jobs": {"daily": ONCE}}))
    desk.write(daily=ONCE | {"schedule": "0 1,14 * * *"})
    answer = desk.run("diff", "old.yaml", "--after", AFTER, "-o", "json")
    assert [(row["what"], row["key"]) for row in answer.rows] == [("key", "schedule")], "the first tick of a day runs"
    desk.write(daily=ONCE | {"schedule": "0 14 * * *"})
    rows = desk.run("diff", "old.yaml", "--after", AFTER, "--days", "1", "-o", "json").rows
    ticks = [(row["change"], row["old"], row["new"]) for row in rows if row["what"] == "tick"]
    assert ticks == [("removed", "2026-11-30T01:00:00+00:00", None)], "today has run at 01:00"


def test_a_diff_to_read(edited: Desk) -> None:
    out = edited.run("diff", "old.yaml", "--after", AFTER).out
    head, *lines = out.splitlines()
    assert head.split() == ["JOB", "CHANGE", "WHAT", "OLD", "NEW"]
    assert [line.split() for line in lines if "more" in line] == [
        ["nightly", "moved", "tick", "and", "2", "more"],
        ["often", "removed", "tick", "and", "1,003", "more"],
    ]


def test_values_are_shown_as_the_file_has_them(desk: Desk) -> None:
    desk.write(a={"call": "work:slow", "args": {"seconds": 1, "on": True}})
    (desk.folder / "old.yaml").write_text(
        "version: 1\njobs: {a: {call: 'work:slow', args: {seconds: {env: HOME}, on: [1, null]}}}\n"
    )
    lines = [line.split(None, 3)[2:] for line in desk.run("diff", "old.yaml").out.splitlines()[1:]]
    assert lines == [["args.seconds", "{env: HOME}  1"], ["args.on", "[1, null]    true"]]


def test_the_old_file_may_come_from_git(edited: Desk) -> None:
    command = [sys.executable, "-m", "scheduler", "diff", "-", "--after", AFTER, "-o", "json"]
    done = subprocess.run(
        command,
        cwd=edited.folder,
        env=edited.environment(),
        input=OLD,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout) == edited.run("diff", "old.yaml", "--after", AFTER, "-o", "json").rows


def test_exit_codes_of_a_diff(edited: Desk) -> None:
    assert edited.run("diff", "old.yaml", "--exit-code").code == 1
    same = edited.run("diff", "old.yaml", "old.yaml", "--exit-code")
    assert (same.code, same.out) == (0, "")
    assert "no difference" in same.err
    (edited.folder / "broken.yaml").write_text("jobs: [\n")
    assert edited.run("diff", "broken.yaml").code == 3
    assert edited.run("diff", "nowhere.yaml").code == 3
    assert edited.run("diff").code == 2


def test_very_many_ticks_are_said_to_be_cut(edited: Desk) -> None:
    (edited.folder / "old.yaml").write_text(OLD.replace("every: 1s", "every: 2s"))
    answer = edited.run("diff", "old.yaml", "--after", AFTER)
    assert "same has very many ticks: they are compared up to 2026-11-29T14:46:40Z only" in answer.err


def test_the_schema_is_the_one_in_docs(desk: Desk) -> None:
    answer = desk.run("schema")
    assert answer.out == (REPO / "docs" / "jobs.schema.json").read_text(encoding="utf-8")


def test_a_first_file_works_at_once(desk: Desk) -> None:
    (desk.folder / "work.py").unlink()
    answer = desk.run("init")
    assert answer.code == 0
    assert answer.out.split() == ["jobs.yaml", "jobs.schema.json", "jobs/__init__.py", "jobs/hello.py"]
    text = (desk.folder / "jobs.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=./jobs.schema.json\n")
    checked = desk.run("check", "--strict")
    assert (checked.code, checked.out, checked.err) == (0, "jobs.yaml: 1 job, no problems\n", "")
    assert [row["job"] for row in desk.run("next", "-n", "1", "-o", "json").rows] == ["hello"]
    ran = desk.run("exec", "hello")
    assert ran.code == 0, ran.err
    (run,) = desk.run("runs", "list", "-o", "json").rows
    assert (run["job"], run["status"]) == ("hello", "succeeded")
    assert "hello world, this is run " in desk.run("runs", "logs", run["id"]).out


def test_nothing_is_overwritten(desk: Desk) -> None:
    (desk.folder / "jobs.yaml").write_text("mine")
    answer = desk.run("init")
    assert (answer.code, answer.out) == (2, "")
    assert "jobs.yaml is there already" in answer.err
    assert sorted(os.listdir(desk.folder)) == ["jobs.yaml", "work.py"]
    assert (desk.folder / "jobs.yaml").read_text() == "mine"


def test_beside_a_package_of_ones_own_the_example_is_a_comment(desk: Desk) -> None:
    (desk.folder / "jobs").mkdir()
    answer = desk.run("init", "schedule.yaml")
    assert answer.out.split() == ["schedule.yaml", "jobs.schema.json"]
    assert "the example in schedule.yaml is a comment" in answer.err
    assert os.listdir(desk.folder / "jobs") == []
    assert desk.run("check", "schedule.yaml").out == "schedule.yaml: 0 jobs, no problems\n"
    text = (desk.folder / "schedule.yaml").read_text()
    assert "#     call: jobs.hello:greet" in text


@pytest.mark.parametrize(
    ("words", "env", "file"),
    [
        ([], None, None),
        (["./jobs.yaml"], None, None),
        (["sub/dir"], None, "sub/dir"),
        (["a b.yaml"], None, "'a b.yaml'"),
        (["folder"], None, "folder/jobs.yaml"),
        (["mine.yaml"], {"SOLOIST_JOBS": "mine.yaml"}, None),
        ([], {"SOLOIST_JOBS": "mine.yaml"}, "jobs.yaml"),
    ],
)
def test_what_to_do_now_is_of_the_file_that_was_written(
    desk: Desk, words: list[str], env: dict[str, str] | None, file: str | None
) -> None:
    (desk.folder / "folder").mkdir()
    answer = desk.run("init", *words, env=env)
    which = "" if file is None else f" --jobs {file}"
    assert answer.err == f"soloist: now: soloist check{which}, soloist next{which}, soloist serve{which}\n"
    assert desk.run("check", *shlex.split(which), env=env).code == 0


def test_a_folder_gets_a_file(desk: Desk) -> None:
    (desk.folder / "service").mkdir()
    assert desk.run("init", "service").code == 0
    assert desk.run("check", "service/jobs.yaml").code == 0
    assert desk.run("init", "new/place/jobs.yaml").code == 0
    assert desk.run("check", "new/place/jobs.yaml").code == 0
    assert desk.run("init", "work.py/jobs.yaml").code == 2
