"""Bodies that end their process, that are ended, and that are deaf: in a child of its own, nobody else is hurt."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trial import Trial, alive, boottime, pids_at, run, until

from scheduler.core.model import Outcome
from scheduler.kinds import Progress, Stop
from scheduler.kinds.python import Graces, PythonKind

BEGUN = 6.0  # seconds: by then a body has left its mark, also on a machine that stands still for some


@pytest.mark.parametrize(
    ("call", "args", "code", "words"),
    [
        ("hard_exit", {"code": 3}, 3, "exit code 3"),
        ("hard_exit", {"code": 0}, 0, "exit code 0"),
        ("segfault", {}, -11, "killed by signal 11 (SIGSEGV)"),
        ("kill_itself", {"number": 9}, -9, "killed by signal 9 (SIGKILL), not by Soloist: out of memory?"),
        ("kill_itself", {"number": 40}, -40, "killed by signal 40"),
    ],
)
def test_a_dead_child_is_a_crash_that_says_how(
    process_kind: PythonKind, call: str, args: dict[str, int], code: int, words: str
) -> None:
    ending = run(process_kind, call, **args)
    assert (ending.outcome, ending.exit_code, ending.started) == (Outcome.CRASHED, code, True)
    assert words in (ending.error_text or "")
    assert ending.cpu is not None
    assert (ending.peak_rss or 0) > 1 << 20


def test_a_segfault_leaves_the_line_where_it_was(process_kind: PythonKind) -> None:
    tail = run(process_kind, "segfault").output_tail
    assert "Fatal Python error: Segmentation fault" in tail
    assert "isolated_bodies.py" in tail


def test_a_body_that_breaks_its_channel_crashes_alone(process_kind: PythonKind) -> None:
    assert run(process_kind, "close_everything").outcome is Outcome.CRASHED
    assert run(process_kind, "send_rubbish").outcome is Outcome.CRASHED
    assert run(process_kind, "noop").outcome is Outcome.SUCCEEDED


def test_neighbours_live_through_a_crash(patient_kind: PythonKind, tmp_path: Path) -> None:
    neighbour = Trial(patient_kind, "until_cancelled", {"path": str(tmp_path / "n")}).begin()
    (pid,) = pids_at(tmp_path / "n")
    for call in ("segfault", "close_everything"):
        assert run(patient_kind, call).outcome is Outcome.CRASHED
    assert alive(pid)
    neighbour.execution.cancel()
    assert neighbour.ending().result == "stopped half-way"


def test_a_child_killed_while_idle_costs_no_run(process_kind: PythonKind) -> None:
    pid = run(process_kind, "pid").result
    os.kill(pid, signal.SIGKILL)
    ending = run(process_kind, "pid")  # at once: the news of the death may not have come yet
    assert ending.outcome is Outcome.SUCCEEDED
    assert ending.result != pid


def test_a_timeout_lets_the_body_clean_up(patient_kind: PythonKind, tmp_path: Path) -> None:
    ending = run(patient_kind, "wait", timeout=BEGUN, path=str(tmp_path / "w"))
    assert (ending.outcome, ending.error_text) == (Outcome.TIMED_OUT, "timed out after 6 s")
    assert "cleaned up" in ending.output_tail
    assert "isolated_bodies.py" in ending.output_tail, "where it was"


def test_a_timeout_lets_a_coroutine_clean_up(patient_kind: PythonKind, tmp_path: Path) -> None:
    ending = run(patient_kind, "coroutine_that_waits", timeout=BEGUN, path=str(tmp_path / "w"))
    assert ending.outcome is Outcome.TIMED_OUT
    assert "cleaned up" in ending.output_tail


@pytest.mark.parametrize("call", ["ignore_term", "hold_gil"])
def test_a_timeout_ends_the_deaf_too(process_kind: PythonKind, tmp_path: Path, call: str) -> None:
    start = time.monotonic()
    ending = run(process_kind, call, timeout=BEGUN, path=str(tmp_path / "w"))
    assert (ending.outcome, ending.exit_code) == (Outcome.TIMED_OUT, -signal.SIGKILL)
    assert time.monotonic() - start > BEGUN + 0.6, "TERM after that, KILL after a grace of 0.7 s"
    (pid,) = pids_at(tmp_path / "w")
    assert not alive(pid)


def test_a_body_that_swallows_the_term_has_timed_out_all_the_same(patient_kind: PythonKind, tmp_path: Path) -> None:
    ending = run(patient_kind, "swallow_term", timeout=BEGUN, path=str(tmp_path / "w"))
    assert ending.outcome is Outcome.TIMED_OUT
    assert "swallowed" in ending.output_tail


@pytest.mark.case("C092")
def test_a_timeout_takes_the_whole_family(process_kind: PythonKind, tmp_path: Path) -> None:
    ending = run(process_kind, "family", timeout=BEGUN, path=str(tmp_path / "f"), then="gil")
    assert ending.outcome is Outcome.TIMED_OUT
    assert not [pid for pid in pids_at(tmp_path / "f") if alive(pid)], "nobody is left when the run has ended"


def test_a_cancelled_body_that_stops_by_itself(patient_kind: PythonKind, tmp_path: Path) -> None:
    for call in ("until_cancelled", "raise_if_cancelled"):
        trial = Trial(patient_kind, call, {"path": str(tmp_path / call)}).begin()
        pids_at(tmp_path / call)
        trial.execution.cancel()
        ending = trial.ending()
        assert (ending.outcome, ending.exit_code) == (Outcome.CANCELLED, None)


def test_a_cancelled_body_that_does_not_look_is_ended(
    make_kind: Callable[..., PythonKind], process_kind: PythonKind, tmp_path: Path
) -> None:
    patient = make_kind(graces=Graces(cancel=0.5, term=20.0))
    for kind, call, code in ((patient, "wait", None), (process_kind, "ignore_term", -signal.SIGKILL)):
        trial = Trial(kind, call, {"path": str(tmp_path / call)}).begin()
        pids_at(tmp_path / call)
        for _ in range(3):
            trial.execution.cancel()  # each renewal brings the request again
        ending = trial.ending()
        assert (ending.outcome, ending.exit_code) == (Outcome.CANCELLED, code)


def test_a_body_that_ends_before_it_hears_of_the_cancel_has_succeeded(make_kind: Callable[..., PythonKind]) -> None:
    kind = make_kind()
    trial = Trial(kind, "echo", {"value": 1})
    assert trial.ending().result == 1
    trial.execution.cancel()
    trial.execution.stop(Stop.LEASE_LOST)
    pid = run(kind, "pid").result
    assert pid == run(kind, "pid").result, "a late word reached another body's child"


def test_shutdown_gives_a_grace_and_lost_leases_none(patient_kind: PythonKind, tmp_path: Path) -> None:
    trial = Trial(patient_kind, "wait", {"path": str(tmp_path / "s")}).begin()
    pids_at(tmp_path / "s")
    trial.execution.stop(Stop.SHUTDOWN)
    ending = trial.ending()
    assert (ending.outcome, ending.started) == (Outcome.HANDED_BACK, True)
    assert "cleaned up" in ending.output_tail

    trial = Trial(patient_kind, "ignore_term", {"path": str(tmp_path / "l")}).begin()  # or the first word may end it
    pids_at(tmp_path / "l")
    trial.execution.stop(Stop.SHUTDOWN)
    trial.execution.stop(Stop.LEASE_LOST)
    assert trial.ending().outcome is Outcome.LEASE_LOST


@pytest.mark.parametrize(
    ("stop", "outcome"), [(Stop.SHUTDOWN, Outcome.HANDED_BACK), (Stop.LEASE_LOST, Outcome.LEASE_LOST)]
)
def test_a_stop_before_the_beginning(process_kind: PythonKind, stop: Stop, outcome: Outcome) -> None:
    trial = Trial(process_kind, "boom")
    trial.execution.stop(stop)
    ending = trial.ending()
    assert (ending.outcome, ending.started) == (outcome, False)


def test_a_term_from_elsewhere_does_not_cut_a_body_short(process_kind: PythonKind, tmp_path: Path) -> None:
    trial = Trial(process_kind, "deaf", {"path": str(tmp_path / "d"), "seconds": 0.5}).begin()
    (pid,) = pids_at(tmp_path / "d")
    os.kill(pid, signal.SIGTERM)
    zygote = process_kind.pool.zygote
    assert zygote is not None
    os.kill(zygote, signal.SIGTERM)
    assert trial.ending().result == "done"
    assert alive(zygote)


@pytest.mark.parametrize("trust", [0.4, 1.7])
def test_the_trust_deadline_kills_a_body_that_holds_the_gil(
    process_kind: PythonKind, tmp_path: Path, trust: float
) -> None:
    trial = Trial(process_kind, "family", {"path": str(tmp_path / "f"), "then": "gil"}, trust=trust)
    start = boottime()
    ending = trial.ending()
    assert (ending.outcome, ending.exit_code) == (Outcome.LEASE_LOST, -signal.SIGKILL)
    assert "trust deadline" in (ending.error_text or "")
    assert boottime() - start > trust
    if (tmp_path / "f").exists():  # a busy machine may not have come so far
        assert not [pid for pid in pids_at(tmp_path / "f") if alive(pid)]


def test_an_extended_body_lives_past_its_first_deadline(process_kind: PythonKind, tmp_path: Path) -> None:
    trial = Trial(process_kind, "deaf", {"path": str(tmp_path / "d"), "seconds": BEGUN + 0.5}, trust=BEGUN).begin()
    pids_at(tmp_path / "d")
    trial.execution.extend(boottime() + 60)
    assert trial.ending().result == "done"


def test_progress_is_seen_while_the_body_is_at_work(process_kind: PythonKind, tmp_path: Path) -> None:
    trial = Trial(process_kind, "progress", {"path": str(tmp_path / "p")}).begin()
    pids_at(tmp_path / "p")
    assert trial.execution.progress() == Progress(3, 10, "ü" * 64)
    trial.execution.stop(Stop.LEASE_LOST)
    trial.ending()
    assert trial.execution.progress() == Progress(3, 10, "ü" * 64)


def test_a_dead_zygote_takes_its_bodies_along_and_is_replaced(
    make_kind: Callable[..., PythonKind], tmp_path: Path
) -> None:
    kind = make_kind()
    trial = Trial(kind, "family", {"path": str(tmp_path / "f"), "then": "wait"}).begin()
    child, near, _far = pids_at(tmp_path / "f")
    zygote = kind.pool.zygote
    assert zygote is not None
    os.kill(zygote, signal.SIGKILL)
    ending = trial.ending()
    assert (ending.outcome, ending.started) == (Outcome.CRASHED, True)
    until(lambda: not alive(child) and not alive(near), "child and group are gone")
    os.kill(_far, signal.SIGKILL)  # with a session of its own, and its only keeper dead
    assert run(kind, "noop").outcome is Outcome.SUCCEEDED
    assert kind.pool.zygote != zygote


def test_close_ends_what_is_at_work(make_kind: Callable[..., PythonKind], tmp_path: Path) -> None:
    kind = make_kind()
    trial = Trial(kind, "family", {"path": str(tmp_path / "f"), "then": "gil"}).begin()
    pids = pids_at(tmp_path / "f")
    zygote = kind.pool.zygote
    assert zygote is not None
    kind.close()
    assert not [pid for pid in (*pids, zygote) if alive(pid)], "nobody is left when close returns"
    assert trial.ending().outcome is Outcome.HANDED_BACK
    ending = run(kind, "noop")
    assert (ending.outcome, ending.started) == (Outcome.HANDED_BACK, False)
