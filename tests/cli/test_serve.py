"""serve and exec: real replicas, real signals, and the embedded server under them."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from desk import REPO, Desk, Running, asked
from replicas import eventually
from scene import Scene

PULSE = {"every": "1s", "call": "work:quick"}


@pytest.fixture
def pulse(desk: Desk) -> Desk:
    desk.write(pulse=PULSE)
    return desk


def server_of(desk: Desk) -> psutil.Process | None:
    with suppress(OSError, ValueError, psutil.Error):
        text = (desk.folder / ".soloist" / "pg" / "postmaster.pid").read_text()
        return psutil.Process(int(text.split(maxsplit=1)[0]))
    return None


def started(running: Running, count: int = 1) -> None:
    def fact() -> bool:
        assert running.process.poll() is None, running.text
        return len(re.findall("replica_started", running.text)) >= count

    eventually(fact, f"{count} replicas run")


def replicas_of(running: Running) -> list[psutil.Process]:
    children = psutil.Process(running.process.pid).children()
    return [child for child, words in asked(children, psutil.Process.cmdline).items() if "serve" in words]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_alone_on_the_embedded_server(pulse: Desk, number: int) -> None:
    serving = pulse.start("serve")
    started(serving)
    assert serving.text.count("development on this host only; set SOLOIST_DATABASE_URL") == 1
    eventually(lambda: pulse.run("runs", "list", "--status", "succeeded", "-o", "json").rows, "the job ran")
    server = server_of(pulse)
    assert server is not None
    assert server.is_running(), "commands that look do not stop the server under a replica"
    assert serving.end(number) == 0
    assert server_of(pulse) is None
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE
    assert "Traceback" not in serving.text


def test_three_of_them(pulse: Desk, scene: Scene) -> None:
    serving = pulse.start("serve", "--replicas", "3", "--seats", "2", "--lease", "5s")
    started(serving, 3)
    eventually(lambda: len(scene.rows("pulse")) >= 3, "three ticks")
    rows = pulse.run("replicas", "-o", "json").rows
    assert {(row["name"], row["seats"], row["state"]) for row in rows} == {
        (f"replica-{n}", 2, "live") for n in (1, 2, 3)
    }
    children = replicas_of(serving)
    assert len(children) == 3
    sessions = {os.getsid(child.pid) for child in children}
    assert len(sessions) == 3, "Ctrl-C is for the parent, which passes it on"
    assert scene.url not in " ".join(word for child in children for word in child.cmdline())
    assert serving.end(signal.SIGINT) == 0
    assert not psutil.wait_procs(children, 10)[1]
    keys = [row["run_key"] for row in scene.rows("pulse")]
    assert len(keys) == len(set(keys))
    assert {row["state"] for row in pulse.run("replicas", "-o", "json").rows} == {"stopped"}


def test_one_that_dies_is_told_and_the_others_go_on(pulse: Desk, scene: Scene) -> None:
    serving = pulse.start("serve", "--replicas", "2")
    started(serving, 2)
    first, second = replicas_of(serving)
    first.kill()
    eventually(lambda: "was killed by SIGKILL; 1 other goes on" in serving.text, "it is told")
    assert f"(pid {first.pid})" in serving.text
    before = len(scene.rows("pulse"))
    eventually(lambda: len(scene.rows("pulse")) > before + 1, "the other one ticks")
    assert second.is_running()
    assert serving.end(signal.SIGTERM) == 128 + signal.SIGKILL, "an ugly end is not forgotten"


def test_when_all_have_died_it_ends(pulse: Desk, scene: Scene) -> None:
    serving = pulse.start("serve", "--replicas", "2")
    started(serving, 2)
    for child in replicas_of(serving):
        child.kill()
    assert serving.wait() == 128 + signal.SIGKILL


def test_none_outlives_the_parent(pulse: Desk, scene: Scene) -> None:
    serving = pulse.start("serve", "--replicas", "2")
    started(serving, 2)
    children = replicas_of(serving)
    serving.process.kill()
    assert not psutil.wait_procs(children, 30)[1]


def test_a_second_signal_makes_them_hurry(desk: Desk, scene: Scene) -> None:
    desk.write(slow={"every": "1s", "call": "work:slow"})
    serving = desk.start("serve", "--replicas", "2", "--drain", "10m")
    started(serving, 2)
    eventually(lambda: [row for row in scene.rows("slow") if row["status"] == "running"], "a body runs")
    serving.process.send_signal(signal.SIGINT)
    eventually(lambda: serving.text.count("replica_draining") == 2, "both drain")
    begun = time.monotonic()
    assert serving.end(signal.SIGINT) == 0
    assert time.monotonic() - begun < 60
    assert [row["status"] for row in scene.rows("slow") if row["attempt"]] == ["queued"], "handed back"


def test_no_signal_is_too_many(pulse: Desk) -> None:
    """Also while the embedded server stops, and in the interpreter's last moments."""
    serving = pulse.start("serve", "--replicas", "2")
    started(serving, 2)

    def struck() -> bool:
        with suppress(ProcessLookupError):
            os.kill(serving.process.pid, signal.SIGINT)
        return serving.process.poll() is not None

    eventually(struck, "it ends")
    assert serving.wait() == 0, serving.text
    assert server_of(pulse) is None
    assert "Traceback" not in serving.text


def test_kill_9_of_everything_and_a_new_start(pulse: Desk) -> None:
    serving = pulse.start("serve", "--replicas", "2")
    started(serving, 2)
    server = server_of(pulse)
    assert server is not None
    family = [serving.process.pid, server.pid, *(child.pid for child in replicas_of(serving))]
    for pid in family:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    serving.wait()
    again = pulse.start("serve")
    started(again)
    assert again.end() == 0
    server = server_of(pulse)
    assert server is None


def test_a_migration_from_the_future_is_told_once(pulse: Desk, scene: Scene) -> None:
    scene.sql("UPDATE soloist.alembic_version SET version_num = '9999_future'")
    answer = pulse.run("serve", "--replicas", "3")
    assert answer.code == 8
    assert answer.err.count("9999_future") == 1


def test_exec_runs_one_tick_and_exits_with_its_outcome(desk: Desk, scene: Scene) -> None:
    desk.write(
        good={"schedule": "* * * * *", "call": "work:quick"},
        bad={"schedule": "* * * * *", "call": "work:broken"},
        hand={"call": "work:quick"},
        odd={"schedule": "* * * * *", "call": "work:quick"},
    )
    assert desk.run("exec", "good").code == 0
    assert desk.run("exec", "bad", "--scheduled-at", "2026-01-01T00:00:00Z").code == 1
    (row,) = scene.rows("bad")
    assert (row["status"], row["run_key"]) == ("failed", "2026-01-01T00:00:00[UTC]")
    wrong = desk.run("exec", "good", "--scheduled-at", "2026-01-01T00:00:07Z")
    assert wrong.code == 2
    assert "2026-01-01T00:00:00Z, 2026-01-01T00:01:00Z" in wrong.err, "the nearest ticks"
    assert desk.run("exec", "good", "--scheduled-at", "2026-01-01T00:00:00").code == 2, "no zone"
    early = desk.run("exec", "good", "--scheduled-at", "2999-01-01T00:00:00Z")
    assert early.code == 2
    assert "2999-01-01T00:00:00Z is still to come" in early.err
    assert len(scene.rows("good")) == 1, "no row that a replica would then find"
    assert "trigger" in desk.run("exec", "hand").err
    assert desk.run("exec", "goood").code == 4


def test_an_error_without_a_text_is_its_class(desk: Desk, scene: Scene) -> None:
    (desk.folder / "odd.py").write_text("import sys\ndef a(ctx): raise KeyError\ndef b(ctx): sys.exit('')\n")
    desk.write(a={"schedule": "* * * * *", "call": "odd:a"}, b={"schedule": "* * * * *", "call": "odd:b"})
    for job, error in (("a", "KeyError"), ("b", "SystemExit")):
        answer = desk.run("exec", job)
        assert answer.code == 1
        assert f'no further try: {error}"' in answer.err, "and is named once"
        (row,) = desk.run("runs", "list", "--job", job, "-o", "json").rows
        assert row["last_error"] == error


def test_exec_is_not_stopped_by_a_neighbour(desk: Desk, scene: Scene) -> None:
    desk.write(good={"schedule": "* * * * *", "call": "work:quick"}, bad={"every": "1h", "call": "work:gone"})
    assert desk.run("exec", "good").code == 0
    assert desk.run("exec", "bad").code == 3


def test_the_lock_names_no_host_and_no_path() -> None:
    text = (REPO / "requirements.lock").read_text()
    assert "://" not in text
    assert not [line for line in text.splitlines() if line.startswith(("/", "-", "file:"))]
    assert "--hash=sha256:" in text
    assert Path(REPO / "Makefile").read_text().count("--require-hashes") == 1
