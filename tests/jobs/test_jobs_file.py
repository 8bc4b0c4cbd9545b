"""The repository's own jobs.yaml, and the job that only prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.demo import pulse
from scheduler.config import check, jobs_file

ROOT = Path(__file__).parents[2]


def test_the_repositorys_own_file_is_in_order() -> None:
    """It loads, every call leads to a function that takes its args, and every job has somebody to ask."""
    plan = jobs_file.load(ROOT / "jobs.yaml")
    assert [str(problem) for problem in check.check(plan)] == []
    assert [job.name for job in plan.jobs] == ["daily-registry", "cleanup-history", "demo-pulse"]
    assert all(job.owner and job.description for job in plan.jobs)


def test_the_file_says_what_it_is() -> None:
    text = (ROOT / "jobs.yaml").read_text(encoding="utf-8")
    schema, what, *_ = text.splitlines()
    assert (ROOT / schema.removeprefix("# yaml-language-server: $schema=./")).is_file(), "editors find the schema"
    assert what.startswith("# The schedule of this repository's own jobs")


def test_the_pulse_prints_one_line(begin: Callable, capsys: pytest.CaptureFixture[str]) -> None:
    pulse(begin().context())
    assert capsys.readouterr().out == "pulse of 03:00:00Z, attempt 1\n"
