"""A body that hangs in a job that may not overlap: its ticks are skipped one by one, and each says because of whom."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from local import Local
from replicas import eventually, jobs_file
from scene import Scene

from scheduler.core.events import AttemptStarted, TickSkipped

Start = Callable[..., Local]


@pytest.mark.case("C064")
@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_each_tick_beside_a_hung_body_leaves_a_record_that_names_it(
    start: Start, facts: Scene, tmp_path: Path, isolation: str
) -> None:
    args = {"path": str(tmp_path / "seen"), "gate": str(tmp_path / "gate")}
    hangs = {"call": "effects:hold", "every": "250ms", "isolation": isolation, "args": args}
    other = {"call": "effects:append", "every": "250ms", "isolation": "thread", "args": {"path": str(tmp_path / "o")}}
    local = start(jobs_file(hangs=hangs, other=other), lease=30.0)
    eventually((tmp_path / "seen").exists, "it hangs")
    second = start(jobs_file(hangs=hangs, other=other), name="second", lease=30.0)
    eventually(lambda: len(facts.rows("hangs")) >= 11, "ten ticks go by")
    first, *skipped = facts.rows("hangs")
    assert (first["status"], first["attempt"]) == ("running", 1)
    for row in skipped:
        assert (row["status"], row["skip_reason"], row["attempt"]) == ("skipped", "overlap", 0)
        assert row["result"] == {"blocked_by": str(first["id"])}
    said = [event for one in (local, second) for event in one.of(TickSkipped, job="hangs")]
    assert {event.blocked_by for event in said} == {first["id"]}
    assert len({event.run_key for event in said}) == len(said), "one word for each tick, from whoever skipped it"
    age = (
        "SELECT 1 FROM soloist.run WHERE status = 'running' AND id = %s"
        " AND clock_timestamp() - started_at > interval '2 s'"
    )
    eventually(lambda: facts.sql(age, first["id"]), "how long it hangs can be asked for")
    assert len(facts.rows("other")) >= 8, "the other job is not held up"
    facts.sql("UPDATE soloist.run SET cancel_requested_at = now() WHERE id = %s", first["id"])
    eventually(lambda: facts.row(first["id"])["status"] == "cancelled", "a person ends it")
    eventually(lambda: len(local.of(AttemptStarted, job="hangs") + second.of(AttemptStarted, job="hangs")) >= 2, "next")
    (tmp_path / "gate").touch()
