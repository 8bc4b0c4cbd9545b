"""How bodies end, and what becomes of their runs: each job misbehaves in its own way beside one that does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from local import Local
from replicas import eventually, jobs_file, once
from scene import Scene

from scheduler.core.events import AttemptStarted, EngineFailed

# the way -> status, outcome, error class, a part of the error's text
ENDS: dict[str, tuple[str, str, str | None, str]] = {
    "fail": ("failed", "failed", "ValueError", "no"),
    "retry late": ("failed", "failed", "scheduler.core.errors.Retry", "not yet"),
    "skip": ("skipped", "skipped", None, "nothing to do"),
    "fatal": ("failed", "failed", "scheduler.core.errors.Fatal", "never"),
    "cancelled": ("cancelled", "cancelled", None, "enough"),
    "exit 7": ("failed", "failed", "SystemExit", "7"),
    "set": ("failed", "failed", "scheduler.pool.body.ResultRefused", ""),
    "nan": ("failed", "failed", "scheduler.pool.body.ResultRefused", ""),
    "large result": ("failed", "failed", "scheduler.pool.body.ResultRefused", ""),
    "nul error": ("failed", "failed", "ValueError", "a"),
    "nul output": ("succeeded", "succeeded", None, ""),
    "nul result": ("succeeded", "succeeded", None, ""),
    "surrogate result": ("succeeded", "succeeded", None, ""),
    "nul progress": ("succeeded", "succeeded", None, ""),
    "surrogate progress": ("succeeded", "succeeded", None, ""),
    "odd progress": ("failed", "failed", "", ""),
    "nul checkpoint": ("failed", "failed", "", ""),
    "result": ("succeeded", "succeeded", None, ""),
}


def _name(way: str) -> str:
    return way.replace(" ", "-")


@pytest.fixture(scope="module", params=["process", "thread"])
def ended(request: pytest.FixtureRequest, server: Any, template: str) -> Iterator[tuple[Local, Scene]]:
    """All of them at once in one replica, and a neighbour that ticks on; when all have ended."""
    name = f"outcomes_{request.param}"
    server.clone(name, template)
    jobs = {
        _name(way): {"call": "effects:behave", **once(), "args": {"how": way}, "isolation": request.param}
        for way in ENDS
    }
    local = Local(server.url_of(name), jobs_file(**jobs), seats=4)
    scene = Scene(server.url_of(name))
    left = "SELECT 1 FROM soloist.run WHERE finished_at IS NULL"
    try:
        eventually(lambda: len(scene.rows()) == len(ENDS) and not scene.sql(left), "all have ended", 60)
        yield local, scene
    finally:
        local.close()
        scene.close()
        server.drop(name)


@pytest.mark.parametrize("way", ENDS)
def test_each_way_to_end_has_a_clear_outcome(ended: tuple[Local, Scene], way: str) -> None:
    _, scene = ended
    status, outcome, error_class, error_text = ENDS[way]
    (row,) = scene.rows(_name(way))
    (line,) = scene.attempts(row["id"])
    assert (row["status"], line["outcome"]) == (status, outcome), line["error_text"]
    if error_class:
        assert line["error_class"] == error_class
    assert error_text in (line["error_text"] or "")
    assert (row["last_error"] is not None) == (status == "failed" or bool(error_text))


def test_results_come_back_as_they_were(ended: tuple[Local, Scene]) -> None:
    (row,) = ended[1].rows("result")
    assert row["result"] == {"rows": 3, "ünï": ["ß", None, 1.5]}


def test_the_replica_took_no_harm(ended: tuple[Local, Scene]) -> None:
    local, scene = ended
    assert not local.of(EngineFailed)
    assert len(local.of(AttemptStarted)) == len(ENDS)
    assert scene.sql("SELECT count(*) AS n FROM soloist.attempt") == [{"n": len(ENDS)}]


Start = Callable[..., Local]


def _entry(way: str, path: Path | None = None, **fields: Any) -> dict[str, Any]:
    args = {"how": way, **({"path": str(path)} if path else {})}
    return {"call": "effects:behave", **once(), "args": args, "isolation": "thread", **fields}


def test_retries_are_counted_and_the_last_failure_is_terminal(start: Start, facts: Scene, tmp_path: Path) -> None:
    retry = {"attempts": 3, "backoff": "200ms", "max": "300ms"}
    local = start(jobs_file(a=_entry("fail", tmp_path / "seen", retry=retry)))
    eventually(lambda: [row["status"] for row in facts.rows()] == ["failed"], "it fails for good")
    (row,) = facts.rows()
    assert (row["attempt"], row["retries_left"], row["crashes"]) == (3, 0, 0)
    assert [line["outcome"] for line in facts.attempts(row["id"])] == ["failed"] * 3
    assert (tmp_path / "seen").read_text().split("\n")[:-1] == ["a 1", "a 2", "a 3"]
    gaps = facts.sql(
        "SELECT extract(epoch FROM started_at - lag(finished_at) OVER (ORDER BY number))::float8 AS gap"
        " FROM soloist.attempt"
    )
    waits = [gap["gap"] for gap in gaps if gap["gap"] is not None]
    assert waits[0] >= 0.16
    assert waits[1] >= 0.24
    assert not local.of(EngineFailed)


def test_fifty_that_fail_together_do_not_come_back_together(start: Start, facts: Scene) -> None:
    retry = {"attempts": 2, "backoff": "100s"}
    start(jobs_file(**{f"j{n}": _entry("fail", retry=retry) for n in range(50)}), seats=50)
    eventually(lambda: {row["status"] for row in facts.rows()} == {"queued"} and len(facts.rows()) == 50, "all wait")
    (spread,) = facts.sql(
        "SELECT min(wait) AS least, max(wait) AS most, stddev(wait) AS apart FROM (SELECT extract(epoch FROM ready_at -"
        " attempt.finished_at)::float8 AS wait FROM soloist.run JOIN soloist.attempt ON attempt.run = run.id) w"
    )
    assert 79 <= spread["least"] < spread["most"] <= 121
    assert spread["apart"] > 4


def test_retry_after_takes_its_own_time(start: Start, facts: Scene) -> None:
    start(jobs_file(a=_entry("retry", retry={"attempts": 2, "backoff": "1h"})))
    eventually(lambda: [row["status"] for row in facts.rows()] == ["succeeded"], "the second try succeeds")
    (row,) = facts.rows()
    assert row["attempt"] == 2


def test_fatal_is_not_tried_again(start: Start, facts: Scene) -> None:
    start(jobs_file(a=_entry("fatal", retry={"attempts": 5, "backoff": "100ms"})))
    eventually(lambda: [row["status"] for row in facts.rows()] == ["failed"], "it fails")
    assert facts.rows()[0]["attempt"] == 1


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_timeout_ends_the_body_and_counts_as_a_try(start: Start, facts: Scene, tmp_path: Path, attempts: int) -> None:
    args = {"path": str(tmp_path / "seen"), "gate": str(tmp_path / "gate")}
    entry = {"call": "effects:hold", **once(), "args": args, "timeout": "500ms"}
    start(jobs_file(a={**entry, "retry": {"attempts": attempts, "backoff": "100ms"}}))
    eventually(lambda: [row["status"] for row in facts.rows()] == ["timed_out"], "it times out")
    (row,) = facts.rows()
    assert row["attempt"] == attempts
    assert [line["outcome"] for line in facts.attempts(row["id"])] == ["timed_out"] * attempts
    assert "timed out after 0.5 s" in row["last_error"]


def test_fifteen_due_at_once_on_few_seats_all_run(start: Start, facts: Scene) -> None:
    local = start(jobs_file(**{f"j{n}": _entry("surrogate progress") for n in range(15)}), seats=3)
    eventually(lambda: [row["status"] for row in facts.rows()] == ["succeeded"] * 15, "all 15 run")
    assert not local.of(EngineFailed)
