"""runs, trigger, replicas, migrate, purge: against rows that the protocol made."""

from __future__ import annotations

import json
import os
import pwd
import uuid

import pytest
from desk import Desk
from replicas import eventually
from scene import Scene, at, birth, spec

from scheduler.cli.trigger import exit_code
from scheduler.core.model import Ending, Outcome, SkipReason, Status
from scheduler.core.policy import Decision
from scheduler.store import runs
from scheduler.store.claims import Owner
from scheduler.store.runs import Settlement

A, B = spec("alpha"), spec("beta")
ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def owner(scene: Scene) -> Owner:
    """A replica, beside a plan with two jobs."""
    scene.jobs(A, B)
    return scene.owner("worker")


def ended(scene: Scene, owner: Owner, status: Status = Status.FAILED, second: float = 1, **fields: object) -> uuid.UUID:
    run = scene.running(owner, A, second)
    outcome = Outcome.SUCCEEDED if status is Status.SUCCEEDED else Outcome.FAILED
    runs.settle(scene.mine, owner, [Settlement(run, 1, Decision(status), Ending(outcome, **fields))])  # type: ignore[arg-type]
    return run


def test_list_is_a_contract(desk: Desk, scene: Scene, owner: Owner) -> None:
    run = ended(scene, owner, error_text="boom\nmore", error_class="ValueError")
    (row,) = desk.run("runs", "list", "-o", "json").rows
    assert list(row) == [
        "id", "job", "run_key", "scheduled_at", "trigger", "status", "skip_reason", "attempt", "replica",
        "started_at", "finished_at", "duration", "last_error", "missed", "or_more",
    ]  # fmt: skip
    assert (row["id"], row["job"], row["status"], row["replica"]) == (str(run), "alpha", "failed", "worker")
    assert row["scheduled_at"] == "2026-01-01T00:00:01Z"


def test_a_row_for_many_ticks_says_for_how_many(desk: Desk, scene: Scene, owner: Owner) -> None:
    many = {"skip_reason": SkipReason.MISSED, "since": at(1)}
    births = [birth(n, Status.SKIPPED, missed=n, **many) for n in (1, 2)]
    births.append(birth(3, Status.SKIPPED, missed=10_000, capped=True, **many))
    scene.claim(owner, scene.want(A, *births))
    rows = desk.run("runs", "list", "-o", "json").rows
    assert [(row["missed"], row["or_more"]) for row in rows] == [(10_000, True), (2, None), (1, None)]
    _, *lines = desk.run("runs", "list").out.splitlines()
    said = ["(missed, 10,000 or more ticks)", "(missed, 2 ticks)", "(missed)"]
    assert [words in line for words, line in zip(said, lines, strict=True)] == [True] * 3
    assert "(missed, 10,000 or more ticks)" in desk.run("runs", "list", "--last").out
    run = ended(scene, owner, Status.SUCCEEDED, 4, result={"missed": "a train"})
    (row,) = desk.run("runs", "list", "--limit", "1", "-o", "json").rows
    assert (row["id"], row["missed"]) == (str(run), None), "a job's own result is not read so"


def test_list_for_people(desk: Desk, scene: Scene, owner: Owner) -> None:
    ended(scene, owner, error_text="boom \x1b[31m\nmore")
    scene.claim(owner, scene.want(A, birth(2, Status.SKIPPED, skip_reason=SkipReason.MISSED)))
    head, first, second = desk.run("runs", "list").out.splitlines()
    assert head.split() == ["RUN", "JOB", "RUN", "KEY", "STATUS", "ATTEMPT", "REPLICA", "STARTED", "DURATION", "ERROR"]
    assert "skipped (missed)" in first
    assert "boom" in second
    assert "more" not in second
    assert "\x1b" not in second, "what a job wrote must not steer the terminal"


def test_duration_and_error_belong_to_what_the_row_says(desk: Desk, scene: Scene, owner: Owner) -> None:
    """A run that failed once, is queued, runs again, and fails for good."""
    run = scene.running(owner, A)
    again = Decision(Status.QUEUED, spent=1)
    runs.settle(scene.mine, owner, [Settlement(run, 1, again, Ending(Outcome.FAILED, error_text="boom"))])

    def listed() -> tuple[str, float | None]:
        (row,) = desk.run("runs", "list", "-o", "json").rows
        assert row["last_error"] == "boom", "JSON has what the row has"
        return desk.run("runs", "list").out.splitlines()[1], row["duration"]

    line, duration = listed()
    assert line.endswith("Z            last: boom"), "nothing lasts while it is queued"
    assert duration is None
    assert not [line for line in desk.run("runs", "show", str(run)).out.splitlines() if line.startswith("duration")]
    scene.sql(
        "UPDATE soloist.run SET status = 'running', attempt = 2, started_at = clock_timestamp() - interval '9 s',"
        " claimed_by = %s, claimed_until = clock_timestamp() + interval '1 min', ready_at = NULL",
        owner.id,
    )
    line, duration = listed()
    assert "boom" not in line, "it is not the running attempt's"
    assert duration is not None
    assert duration >= 9
    scene.sql(
        "UPDATE soloist.run SET status = 'failed', finished_at = started_at + interval '5 s', claimed_by = NULL,"
        " claimed_until = NULL, ready_at = NULL"
    )
    line, duration = listed()
    assert line.endswith("5.0s  boom")
    assert duration == 5


def test_list_filters_and_pages(desk: Desk, scene: Scene, owner: Owner) -> None:
    first = ended(scene, owner, Status.SUCCEEDED)
    second = ended(scene, owner, Status.FAILED, second=2)
    other = scene.running(owner, B, 1)

    def ids(*words: str) -> list[str]:
        return [row["id"] for row in desk.run("runs", "list", "-o", "json", *words).rows]

    assert ids() == [str(other), str(second), str(first)]
    assert ids("--job", "alpha") == [str(second), str(first)]
    assert ids("--status", "failed", "--status", "running") == [str(other), str(second)]
    assert ids("--limit", "1") == [str(other)]
    assert ids("--limit", "1", "--before", str(other)) == [str(second)]
    assert ids("--last") == [str(second), str(other)]
    answer = desk.run("runs", "list", "--job", "alhpa")
    assert answer.code == 4
    assert 'did you mean "alpha"?' in answer.err


def test_the_short_id_of_the_list_leads_to_the_run(desk: Desk, scene: Scene, owner: Owner) -> None:
    made = scene.claim(owner, scene.want(A, birth(1)), scene.want(B, birth(1))).made
    shown = [line.split()[0] for line in desk.run("runs", "list").out.splitlines()[1:]]
    assert len(set(shown)) == 2
    found = {desk.run("runs", "show", short, "-o", "json").rows[0]["id"] for short in shown}
    assert found == {str(one.id) for one in made}


def test_show_has_every_field_and_the_attempts(desk: Desk, scene: Scene, owner: Owner) -> None:
    run = ended(scene, owner, error_text="boom", error_class="ValueError", exit_code=7, output_tail="x")
    (row,) = desk.run("runs", "show", str(run), "-o", "json").rows
    assert {"payload", "progress", "checkpoint", "result", "retry_of", "triggered_by", "retries_left"} <= row.keys()
    (attempt,) = row["attempts"]
    assert (attempt["number"], attempt["exit_code"], attempt["error_class"]) == (1, 7, "ValueError")
    text = desk.run("runs", "show", run.hex[:14]).out
    assert "last_error" in text
    assert "boom" in text
    assert "attempts" in text
    answer = desk.run("runs", "show", "0123456789ab")
    assert (answer.code, answer.out) == (4, "")


def test_logs_are_what_the_attempt_wrote(desk: Desk, scene: Scene, owner: Owner) -> None:
    run = ended(scene, owner, output_tail="grüße\nend\n", output_bytes=5000)
    answer = desk.run("runs", "logs", str(run))
    assert (answer.code, answer.out) == (0, "grüße\nend\n")
    assert "were not kept" in answer.err
    assert desk.run("runs", "logs", str(run), "--attempt", "2").code == 4
    quiet = desk.run("runs", "logs", str(ended(scene, owner, second=2)))
    assert (quiet.code, quiet.out) == (0, "")
    assert "wrote nothing" in quiet.err


def test_retry_makes_a_new_run(desk: Desk, scene: Scene, owner: Owner) -> None:
    run = ended(scene, owner)
    (row,) = desk.run("runs", "retry", str(run), "-o", "json").rows
    made = scene.row(uuid.UUID(row["id"]))
    assert (made["status"], made["trigger"], made["retry_of"], made["triggered_by"]) == ("queued", "retry", run, ME)
    assert made["run_key"] == scene.row(run)["run_key"] + "~2"
    again = desk.run("runs", "retry", str(run))
    assert again.code == 5
    assert row["id"] in again.err


def test_retry_of_what_needs_none(desk: Desk, scene: Scene, owner: Owner) -> None:
    done = ended(scene, owner, Status.SUCCEEDED)
    refused = desk.run("runs", "retry", str(done))
    assert refused.code == 2
    assert "--force" in refused.err
    assert desk.run("runs", "retry", str(done), "--force").code == 0
    running = scene.running(owner, B, 1)
    assert desk.run("runs", "retry", str(running), "--force").code == 5


def test_trigger_makes_one_run_for_one_key(desk: Desk, scene: Scene, owner: Owner) -> None:
    words = ("trigger", "alpha", "--key", "x y", "--payload", '{"day": "2026-11-29"}', "-o", "json")
    (first,) = desk.run(*words).rows
    (second,) = desk.run(*words).rows
    assert list(first) == ["id", "job", "run_key", "status", "payload_ignored"]
    assert (first["status"], second["status"], first["run_key"]) == ("queued", "existing", "manual:x y")
    assert first["id"] == second["id"]
    row = scene.row(uuid.UUID(first["id"]))
    assert (row["trigger"], row["triggered_by"], row["payload"]) == ("manual", ME, {"day": "2026-11-29"})
    (other,) = desk.run("trigger", "alpha", "-o", "json").rows
    assert other["status"] == "waiting", "beside the active one it waits its turn"


def test_trigger_of_an_unknown_job(desk: Desk, scene: Scene, owner: Owner) -> None:
    answer = desk.run("trigger", "alhpa")
    assert (answer.code, answer.out) == (4, "")
    assert 'did you mean "alpha"?' in answer.err


@pytest.mark.parametrize(
    "payload", ["{", "[1]", '{"a": NaN}', '{"a": "\\u0000"}', '{"a": ["\\ud800"]}', '{"\\u0000": 1}']
)
def test_a_payload_that_cannot_be_stored(desk: Desk, payload: str) -> None:
    answer = desk.run("trigger", "alpha", "--payload", payload)
    assert answer.code == 2
    assert "--payload" in answer.err


@pytest.mark.parametrize(
    ("status", "reason", "code"),
    [
        ("succeeded", None, 0),
        ("failed", None, 1),
        ("lost", None, 1),
        ("cancelled", None, 6),
        ("timed_out", None, 7),
        ("skipped", "job", 0),
        ("skipped", "stale_config", 1),
    ],
)
def test_the_exit_code_of_an_end(status: str, reason: str | None, code: int) -> None:
    assert exit_code(Status(status), None if reason is None else SkipReason(reason)) == code


def test_trigger_waits_and_exits_as_the_run_ended(desk: Desk, scene: Scene, owner: Owner) -> None:
    waiting = desk.start("trigger", "alpha", "--wait", "-o", "json")
    eventually(lambda: "waiting for run" in waiting.text, "it says that it waits")
    assert waiting.process.poll() is None
    scene.sql("UPDATE soloist.run SET status = 'timed_out', finished_at = now(), ready_at = NULL")
    assert waiting.wait() == 7
    (row,) = json.loads(waiting.text[waiting.text.index("[") :])
    assert row["status"] == "timed_out"


def test_replicas(desk: Desk, scene: Scene, owner: Owner) -> None:
    (row,) = [row for row in desk.run("replicas", "-o", "json").rows if row["name"] == "worker"]
    assert row["state"] == "live"
    assert {"host", "pid", "version", "generation", "config_hash", "seats", "clock_offset", "seen_ago"} <= row.keys()
    assert (row["fenced_writes"], row["leases_lost"], row["takeovers"]) == (0, 0, 0)
    scene.sql("UPDATE soloist.replica SET fenced_writes = 1, leases_lost = 22, takeovers = 333 WHERE id = %s", owner.id)
    head, *lines = desk.run("replicas").out.splitlines()
    (line,) = [line for line in lines if line.startswith("worker")]
    for title, number in (("FENCED WRITES", "1"), ("LEASES LOST", "22"), ("TAKEOVERS", "333")):
        end = head.index(title) + len(title)
        assert line[:end].endswith(f" {number}"), "right under its title"


def test_migrate(desk: Desk, empty_database_url: str) -> None:
    desk.env["SOLOIST_DATABASE_URL"] = empty_database_url
    listed = desk.run("runs", "list")
    assert listed.code == 8
    assert "soloist migrate" in listed.err
    assert desk.run("migrate").out.startswith("applied 0001_initial")
    assert desk.run("migrate").out == "up to date\n"
    assert desk.run("runs", "list", "-o", "json").rows == []
    script = desk.run("migrate", "--sql")
    assert script.code == 0
    assert "CREATE TABLE soloist.run" in script.out


def test_purge(desk: Desk, scene: Scene, owner: Owner) -> None:
    (desk.folder / "jobs.yaml").write_text("version: 1\nretention: {succeeded: 1h, failed: 30d}\njobs: {}\n")
    old = [ended(scene, owner, Status.SUCCEEDED, second) for second in (1, 2, 3)]
    kept = ended(scene, owner, Status.FAILED, 4)
    for run in old:  # born and ended two days ago: an id is a UUIDv7
        aged = uuid.UUID(int=run.int - (2 * 86_400_000 << 80))
        scene.sql("DELETE FROM soloist.attempt WHERE run = %s", run)
        scene.sql(
            "UPDATE soloist.run SET id = %s, finished_at = finished_at - interval '2 days' WHERE id = %s", aged, run
        )

    def purged(*words: str) -> dict[str, int]:
        return {row["group"]: row["runs"] for row in desk.run("purge", "-o", "json", *words).rows}

    assert purged("--dry-run") == {"succeeded": 3, "failed": 0, "skipped": 0}
    assert len(scene.rows()) == 4
    limited = desk.run("purge", "--max-rows", "2")
    assert "purge again" in limited.err
    assert purged() == {"succeeded": 1, "failed": 0, "skipped": 0}
    assert [row["id"] for row in scene.rows()] == [kept]
