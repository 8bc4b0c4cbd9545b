"""All shared vectors of the dialects that we speak; skipped visibly where the shared folder is absent."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from scheduler.core.schedule import ScheduleError, due, next_after, parse_cron


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
        if got != wanted or list(due(cron, start, at, 100).ticks) != wanted:
            wrong.append((vector["id"], vector["expr"], vector["tz"], got))
    assert wrong == []


def test_every_refusal_of_our_dialect(vectors: dict[str, Any]) -> None:
    entries = vectors["invalid"] + vectors["invalid_in_one_dialect"]
    ours = [entry["expr"] for entry in entries if entry["refuse_in"] in ("both", "vixie")]
    assert len(ours) > 60
    for line in ours:
        with pytest.raises(ScheduleError, match=r"\S"):
            parse_cron(line, "UTC")
