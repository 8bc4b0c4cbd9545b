"""Backfilled runs as a replica does them: in order, and of a paused job as well, because a person asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from local import Local
from replicas import away_from_a_tick, eventually, jobs_file
from scene import Scene
from uuid_utils.compat import uuid7

from scheduler.store import pauses
from scheduler.store.backfill import Backfill, Stretch
from scheduler.store.jobs import read_job


def test_they_run_in_order_though_the_job_is_paused(start: Callable[..., Local], facts: Scene, tmp_path: Path) -> None:
    away_from_a_tick(3600)
    entry = {"call": "effects:append", "every": "1h", "isolation": "thread", "args": {"path": str(tmp_path / "seen")}}
    start(jobs_file(a=entry))
    pauses.pause_job(facts.mine, pauses.Wish("a", "ann", "x"))
    job = read_job(facts.mine, "a")
    assert job is not None
    now = job.database_now
    done = list(Backfill(facts.mine, job, "ann", uuid7).fill(Stretch(now - timedelta(hours=3), now)))
    assert [one.what for one in done] == ["created"] * 3
    eventually(lambda: [row["status"] for row in facts.rows()] == ["succeeded"] * 3, "they run")
    keys = [line.split()[1] for line in (tmp_path / "seen").read_text().splitlines()]
    assert keys == sorted(keys)
