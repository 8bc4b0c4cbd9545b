"""What is special about a body in a thread: nobody can end it but itself."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from trial import ROOT, Trial, boottime, pids_at, run

from scheduler.core.model import Outcome
from scheduler.kinds import Progress, Stop
from scheduler.kinds.thread import ThreadKind


def test_at_the_timeout_the_body_is_told(thread_kind: ThreadKind, tmp_path: Path) -> None:
    for call in ("until_cancelled", "raise_if_cancelled"):
        ending = run(thread_kind, call, timeout=0.2, path=str(tmp_path / call))
        assert ending.outcome is Outcome.TIMED_OUT
        assert "a thread cannot be stopped from outside" in ending.output_tail


def test_work_that_was_done_late_is_done(thread_kind: ThreadKind, tmp_path: Path) -> None:
    ending = run(thread_kind, "deaf", timeout=0.1, path=str(tmp_path / "d"), seconds=0.3)
    assert (ending.outcome, ending.result) == (Outcome.SUCCEEDED, "done")
    assert "after its timeout" in ending.output_tail


@pytest.mark.parametrize(
    ("stop", "outcome"),
    [(None, Outcome.CANCELLED), (Stop.SHUTDOWN, Outcome.HANDED_BACK), (Stop.LEASE_LOST, Outcome.LEASE_LOST)],
)
def test_a_stop_is_a_word(thread_kind: ThreadKind, tmp_path: Path, stop: Stop | None, outcome: Outcome) -> None:
    for call in ("until_cancelled", "raise_if_cancelled"):
        trial = Trial(thread_kind, call, {"path": str(tmp_path / call)}).begin()
        pids_at(tmp_path / call)
        if stop is None:
            trial.execution.cancel()
        else:
            trial.execution.stop(stop)
        assert trial.ending().outcome is outcome


def test_past_the_trust_deadline_the_body_is_told(thread_kind: ThreadKind, tmp_path: Path) -> None:
    trial = Trial(thread_kind, "until_cancelled", {"path": str(tmp_path / "t")}, trust=0.3)
    assert trial.ending().outcome is Outcome.LEASE_LOST


def test_an_extended_body_is_not_told(thread_kind: ThreadKind, tmp_path: Path) -> None:
    trial = Trial(thread_kind, "until_cancelled", {"path": str(tmp_path / "t")}, timeout=1.5, trust=1.0).begin()
    trial.execution.extend(boottime() + 60)
    pids_at(tmp_path / "t")
    trial.execution.extend(boottime() + 60)
    assert trial.ending().outcome is Outcome.TIMED_OUT


def test_progress_is_seen_while_the_body_is_at_work(thread_kind: ThreadKind, tmp_path: Path) -> None:
    trial = Trial(thread_kind, "progress", {"path": str(tmp_path / "p")}).begin()
    pids_at(tmp_path / "p")
    assert trial.execution.progress() == Progress(3, 10, "ü" * 100)


def test_logging_of_this_body_alone_is_kept(thread_kind: ThreadKind) -> None:
    logging.getLogger("somebody.else").warning("not the body's")
    ending = run(thread_kind, "talk")
    kept = [line.partition(" ")[2] for line in ending.output_tail.splitlines()]
    assert kept == ["WARNING a.library warned", "INFO soloist.jobs.a-job logged"]
    assert ending.output_bytes == len(ending.output_tail.encode())


def test_it_works_where_linux_s_own_things_are_missing() -> None:
    code = (
        "import os, resource, signal, sys, time; from pathlib import Path\n"
        "for place, name in ((time, 'CLOCK_BOOTTIME'), (signal, 'SIGRTMIN'), (os, 'memfd_create')):\n"
        "    delattr(place, name)\n"
        "from trial import ROOT, run_info\n"
        "from scheduler.kinds import Body\n"
        "from scheduler.kinds.thread import ThreadKind\n"
        "body = Body(run_info(), 'isolated_bodies:echo', {'value': 7}, 60.0)\n"
        "print(ThreadKind(ROOT).start(body, 1e12, lambda: 1e12).wait().result)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *ROOT.parents[:2])))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stdout == "7\n", answer.stderr


def test_close_leaves_no_handler(thread_kind: ThreadKind) -> None:
    before = len(logging.getLogger().handlers)
    thread_kind.close()
    assert len(logging.getLogger().handlers) == before - 1
