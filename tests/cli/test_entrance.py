"""Help, version, exit codes, and what people see when something is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from desk import Desk

import scheduler

COMMANDS = ["serve", "exec", "check", "next", "diff", "schema", "init", "trigger", "runs", "replicas", "migrate"]
COMMANDS += ["purge", "jobs", "explain", "pause", "resume", "audit", "backfill"]
SHOW = """
import sys
from scheduler.cli.failures import run
code = run()
slow = ("sqlalchemy", "psycopg", "pydantic", "pydantic_settings", "sentry_sdk", "alembic", "apscheduler", "rich")
print(code, [name for name in slow if name in sys.modules], file=sys.stderr)
"""
FAULT = """
import sys
from scheduler.cli import failures, main
def fault():
    raise TypeError("not your doing")
(check,) = [one for one in main.app.registered_commands if one.callback.__name__ == "check"]
check.name, check.callback = "check", fault
sys.exit(failures.run())
"""


def python(desk: Desk, code: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=desk.folder,
        env=desk.environment(env),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("words", [["--help"], ["serve", "--help"], ["runs", "list", "--help"], ["--version"]])
def test_help_imports_nothing_slow(desk: Desk, words: list[str]) -> None:
    done = python(desk, SHOW, *words)
    # typer itself reads the options of one command with pydantic
    allowed = ["0 []"] if len(words) == 1 else ["0 []", "0 ['pydantic']"]
    assert done.stderr.strip() in allowed
    assert done.stdout.startswith(("Usage: soloist", "soloist "))


def test_every_command_explains_itself(desk: Desk) -> None:
    listed = desk.run("--help").out
    for command in COMMANDS:
        assert f"  {command} " in listed
    assert "8 database" in listed, "the exit codes are part of the help"


def test_usage_names_arguments_as_messages_do(desk: Desk) -> None:
    for words, usage in {
        ("trigger",): "[OPTIONS] JOB\n",
        ("explain",): "[OPTIONS] JOB\n",
        ("exec",): "[OPTIONS] JOB\n",
        ("runs", "show"): "[OPTIONS] RUN_ID\n",
        ("diff",): "[OPTIONS] OLD [NEW]\n",
        ("check",): "[OPTIONS] [FILE]\n",
        ("next",): "[OPTIONS] [JOB]...\n",
        ("init",): "[OPTIONS] [PATH]\n",
    }.items():
        assert desk.run(*words, "--help").out.startswith(f"Usage: soloist {' '.join(words)} {usage}")
    assert "Missing argument 'JOB'" in desk.run("pause", "--reason", "x").err


def test_version(desk: Desk) -> None:
    answer = desk.run("--version")
    assert (answer.code, answer.out) == (0, f"soloist {scheduler.__version__}\n")


def test_no_command_is_a_usage_error(desk: Desk) -> None:
    answer = desk.run()
    assert answer.code == 2
    assert "Usage: soloist" in answer.out + answer.err


@pytest.mark.parametrize(
    "words",
    [
        ["sevre"],
        ["next", "--aftr", "x"],
        ["next", "-n", "0"],
        ["runs", "list", "--status", "done"],
        ["serve", "--lease", "15"],
    ],
)
def test_usage_errors(desk: Desk, words: list[str]) -> None:
    answer = desk.run(*words)
    assert (answer.code, answer.out) == (2, "")
    assert "Error: " in answer.err


def test_an_unreachable_database_says_what_was_tried(desk: Desk) -> None:
    desk.write(a={"every": "1h", "call": "work:quick"})
    env = {"SOLOIST_DATABASE_URL": "postgresql://me:s3cr3t@127.0.0.1:1/x"}
    for words in (
        ["runs", "list"],
        ["replicas"],
        ["trigger", "a"],
        ["migrate"],
        ["purge"],
        ["exec", "a"],  # serve waits for it: see tests/chaos
    ):
        answer = desk.run(*words, env=env)
        assert (answer.code, answer.out) == (8, ""), words
        assert "me:***@127.0.0.1:1/x" in answer.err
        assert "s3cr3t" not in answer.err
        assert answer.err.count("127.0.0.1:1/x") == 1, "told once"


def test_settings_that_are_wrong_are_told_at_once(desk: Desk) -> None:
    answer = desk.run("replicas", env={"SOLOIST_SEATS": "many", "SOLOIST_LEASE": "15"})
    assert answer.code == 3
    assert "SOLOIST_SEATS" in answer.err
    assert "SOLOIST_LEASE" in answer.err


def test_a_command_that_looks_makes_no_database(desk: Desk) -> None:
    for words in (["runs", "list"], ["replicas"], ["trigger", "a"]):
        answer = desk.run(*words)
        assert answer.code == 8
        assert "soloist serve" in answer.err
    assert not (desk.folder / ".soloist").exists()


def test_a_fault_of_our_own_is_one_line(desk: Desk) -> None:
    done = python(desk, FAULT, "check")
    assert done.returncode == 70
    assert "TypeError: not your doing" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in python(desk, FAULT, "check", SOLOIST_DEBUG="1").stderr


def test_a_reader_that_goes_away(desk: Desk) -> None:
    desk.write(a={"every": "1s", "call": "work:quick"})
    command = [sys.executable, "-m", "scheduler", "next", "a", "-n", "10000"]
    process = subprocess.Popen(
        command, cwd=desk.folder, env=desk.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 141


def test_output_that_the_terminal_cannot_show(desk: Desk) -> None:
    """A C locale must not end a command."""
    (desk.folder / "jobs.yaml").write_text("version: 1\njobs: {}\nwörter: 1\n", encoding="utf-8")
    answer = desk.run("check", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert answer.code == 3
    assert "jobs.yaml:3:1" in answer.err


def test_the_console_script_is_the_same_program(desk: Desk) -> None:
    script = Path(sys.executable).with_name("soloist")
    if not script.exists():
        pytest.skip("the package is not installed in this environment")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert done.stdout == f"soloist {scheduler.__version__}\n"
