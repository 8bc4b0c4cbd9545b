"""All shared vectors of the dialects that we speak; skipped visibly where the shared folder is absent."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler.core.schedule import ScheduleError, due, latest_upto, next_after, parse_cron

SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
def vectors(shared: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((shared / "cron_vectors.json").read_text(encoding="utf-8"))
    return loaded


def test_every_vector_of_our_dialect(vectors: dict[str, Any]) -> None:
    ours = [vector for vector in vectors["vectors"] if vector["dialect"] in ("both", "vixie")]
    assert len(ours) > 100
    wrong = []
    for vector in ours:
        cron = parse_cron(vector["expr"], vector["tz"])
        start = at = datetime.fromisoformat(vector["after"])
        wanted = [datetime.fromisoformat(text) for text in vector["next"]]
        got = []
        for _ in wanted:
            tick = next_after(cron, at)
            assert tick is not None, vector["id"]
            got.append(tick)
            at = tick
        backwards = list(due(cron, start, at, 100).ticks)
        before = [latest_upto(cron, tick - SECOND) for tick in wanted[1:]]
        if got != wanted or backwards != wanted or before != wanted[:-1] or latest_upto(cron, at) != at:
            wrong.append((vector["id"], vector["expr"], vector["tz"], got, backwards))
    assert wrong == []


def test_every_refusal_of_our_dialect(vectors: dict[str, Any]) -> None:
    entries = vectors["invalid"] + vectors["invalid_in_one_dialect"]
    ours = [entry["expr"] for entry in entries if entry["refuse_in"] in ("both", "vixie")]
    assert len(ours) > 60
    assert {entry["refuse_in"] for entry in entries} <= {"both", "vixie", "k8s"}, "a dialect that nobody has looked at"
    for line in ours:
        for name in (None, "a-job"):
            with pytest.raises(ScheduleError, match=r"\S"):
                parse_cron(line, "UTC", name=name)


def test_the_vectors_say_nothing_of_us_that_was_left_out(vectors: dict[str, Any]) -> None:
    assert {vector["dialect"] for vector in vectors["vectors"]} == {"both", "vixie", "k8s"}
    assert all(vector["next"] for vector in vectors["vectors"] if vector["dialect"] != "k8s")
