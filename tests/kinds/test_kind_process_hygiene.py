"""What a body leaves behind does not reach the next one."""

from __future__ import annotations

import gc
import os
import random
import resource
import signal
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from trial import Trial, alive, boottime, descriptors, pids_at, run, until

from scheduler.core.model import Ending, Outcome
from scheduler.kinds import Stop
from scheduler.kinds.python import PythonKind


def test_a_child_is_warm(process_kind: PythonKind) -> None:
    """Also when the thread that started the zygote has ended long since: each `run` has a thread of its own."""
    assert len({run(process_kind, "pid").result for _ in range(5)}) == 1


def test_a_spoilt_process_is_put_right(process_kind: PythonKind, tmp_path: Path) -> None:
    before = run(process_kind, "state").result
    assert run(process_kind, "spoil", directory=str(tmp_path)).result == before["pid"]
    ending = run(process_kind, "state")
    assert ending.result == before, "the same process, the same state"
    assert before["cwd"] == str(Path.cwd())
    assert before["blocked"] == []
    assert before["ignored"] == [signal.SIGPIPE, signal.SIGXFSZ]
    assert before["timer"] == [0.0, 0.0]
    assert before["stdin"] == ""
    assert "out\n" in ending.output_tail
    assert "INFO a-job log\n" in ending.output_tail


def test_masks_and_ignored_signals_of_the_replica_do_not_reach_a_body(make_kind: Callable[..., PythonKind]) -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        state = run(make_kind(), "state").result
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
        signal.signal(signal.SIGHUP, previous)
    assert state["blocked"] == []
    assert signal.SIGHUP not in state["ignored"]


def test_what_a_module_sets_when_it_is_imported_stays(process_kind: PythonKind) -> None:
    for _ in range(2):
        assert run(process_kind, "environment", name="SET_AT_IMPORT").result == "by the module"


def test_output_is_kept_in_order_and_per_attempt(process_kind: PythonKind) -> None:
    ending = run(process_kind, "talk")
    lines = ending.output_tail.splitlines()
    assert lines[:2] == ["printed", "to stderr"]
    assert lines[2].endswith("WARNING a.library warned")
    assert lines[3].endswith("INFO a-job logged")
    assert lines[4:] == ["from a process"]
    assert ending.output_bytes == len(ending.output_tail.encode())
    silent = run(process_kind, "noop")
    assert (silent.output_tail, silent.output_bytes) == ("", 0)


def test_a_flood_is_bounded(process_kind: PythonKind) -> None:
    ending = run(process_kind, "flood", megabytes=64)
    assert ending.outcome is Outcome.SUCCEEDED
    assert ending.output_bytes == (64 << 20) + len("the end\n")
    assert len(ending.output_tail) == 64 << 10
    assert ending.output_tail.endswith("xthe end\n")


def test_a_process_that_goes_on_writing_holds_nobody_up(process_kind: PythonKind, tmp_path: Path) -> None:
    ending = run(process_kind, "endless_writer", path=str(tmp_path / "w"))
    assert ending.outcome is Outcome.SUCCEEDED
    assert not [pid for pid in pids_at(tmp_path / "w") if alive(pid)]


@pytest.mark.case("C092")
def test_a_family_left_behind_is_gone_when_the_run_has_ended(process_kind: PythonKind, tmp_path: Path) -> None:
    ending = run(process_kind, "family", path=str(tmp_path / "f"), then="return")
    assert ending.outcome is Outcome.SUCCEEDED
    assert not [pid for pid in pids_at(tmp_path / "f") if alive(pid)]


@pytest.mark.case("C094")
def test_exit_codes_are_right_beside_background_processes(process_kind: PythonKind, tmp_path: Path) -> None:
    def one(number: int) -> tuple[int | None, list[int]]:
        path = tmp_path / str(number)
        ending = run(process_kind, "background", path=str(path), code=number)
        return ending.exit_code, [pid for pid in pids_at(path) if alive(pid)]

    with ThreadPoolExecutor(8) as seats:
        answers = list(seats.map(one, range(50)))
    assert answers == [(number, []) for number in range(50)]
    zygote = process_kind.pool.zygote
    dead = until(lambda: _zombies(zygote) == 0, "no zombies are left")
    assert dead


def _zombies(parent: int | None) -> int:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return sum(not alive(int(pid)) for pid in children)


def test_what_spoils_a_child_and_what_does_not(process_kind: PythonKind) -> None:
    pid = run(process_kind, "zombie").result
    assert run(process_kind, "own_thread").result == pid, "a dead process is buried and does no harm"
    assert run(process_kind, "left_thread").result == pid, "nor does a thread of Soloist's own"
    assert run(process_kind, "pid").result != pid, "a body's thread does"


def test_a_fork_that_returns_answers_for_nobody(process_kind: PythonKind) -> None:
    for _ in range(3):
        ending = run(process_kind, "fork_and_return")
        assert ending.outcome is Outcome.SUCCEEDED
        assert ending.result > 0
    assert run(process_kind, "fork_and_raise", code=7).result == 7


def test_a_child_is_replaced_after_its_runs(make_kind: Callable[..., PythonKind]) -> None:
    kind = make_kind(max_runs_per_child=3)
    pids = [run(kind, "pid").result for _ in range(7)]
    assert len(set(pids[:3])) == len(set(pids[3:6])) == 1
    assert len(set(pids)) == 3


def test_no_descriptor_and_no_slot_leaks(make_kind: Callable[..., PythonKind]) -> None:
    kind = make_kind(max_runs_per_child=1, seats=2, preload=("isolated_bodies",))
    run(kind, "noop")
    gc.collect()
    before = descriptors()
    pids = {run(kind, "pid").result for _ in range(200)}
    assert len(pids) == 200
    until(lambda: descriptors() <= before + 4, "all but the last child's descriptors are closed")
    zygote = kind.pool.zygote
    own = len(os.listdir(f"/proc/{zygote}/fd"))
    assert own < 15, "nor does the zygote keep any"


def test_as_many_children_as_bodies_at_once(make_kind: Callable[..., PythonKind], tmp_path: Path) -> None:
    kind = make_kind(seats=3)
    trials = [Trial(kind, "until_cancelled", {"path": str(tmp_path / str(n))}).begin() for n in range(3)]
    pids = {pids_at(tmp_path / str(n))[0] for n in range(3)}
    assert len(pids) == 3
    for trial in trials:
        trial.execution.cancel()
    assert {trial.ending().outcome for trial in trials} == {Outcome.CANCELLED}


def test_memory_and_cpu_are_those_of_the_attempt(process_kind: PythonKind) -> None:
    assert run(process_kind, "noop").outcome is Outcome.SUCCEEDED
    hungry, modest, busy = (
        run(process_kind, "memory", megabytes=200),
        run(process_kind, "noop"),
        run(process_kind, "burn"),
    )
    assert hungry.peak_rss is not None
    assert modest.peak_rss is not None
    assert hungry.peak_rss > 200 << 20
    assert modest.peak_rss < 150 << 20, "not the peak of the body before"
    assert (busy.cpu or 0) > 0.05 > (modest.cpu or 0)


def test_large_args_and_payload_travel_whole(process_kind: PythonKind) -> None:
    value = ["ü" * 1000] * 1000
    ending = run(process_kind, "echo", value=value)
    assert ending.outcome is Outcome.FAILED, "a result of 2 MB is too large, but it went and was measured"
    assert "2004000 bytes" in (ending.error_text or "")


def test_args_that_are_not_json_fail_before_the_beginning(process_kind: PythonKind) -> None:
    ending = run(process_kind, "echo", value={1, 2})
    assert (ending.outcome, ending.started) == (Outcome.FAILED, False)
    assert "not JSON" in (ending.error_text or "")


@pytest.mark.parametrize("preload", [("thread_starter",), ("no_such_module_here",)])
def test_a_module_that_cannot_be_preloaded_is_left_out_and_named(
    make_kind: Callable[..., PythonKind], preload: tuple[str, ...]
) -> None:
    kind = make_kind(preload=("isolated_bodies", *preload))
    assert run(kind, "threads_in_zygote", module="isolated_bodies").result is True
    assert run(kind, "threads_in_zygote", module=preload[0]).result is False
    assert list(kind.pool.skipped) == list(preload)
    assert Path(f"/proc/{kind.pool.zygote}/task").stat().st_nlink - 2 == 1, "the zygote has one thread"


def test_a_body_reaches_the_database(make_kind: Callable[..., PythonKind], empty_database_url: str) -> None:
    kind = make_kind(database_url=empty_database_url)
    assert run(kind, "database").result == 42
    assert kind.pool.skipped == {}, "and what it needs for that was preloaded"


def test_words_at_random_moments_hurt_nobody(process_kind: PythonKind) -> None:
    chance = random.Random(7)
    words = [Stop.SHUTDOWN, Stop.LEASE_LOST, None]
    plans = [(chance.choice(words), chance.random() * 0.02, chance.random() * 0.02) for _ in range(60)]

    def one(plan: tuple[Stop | None, float, float]) -> Ending:
        word, pause, timeout = plan
        trial = Trial(process_kind, "pid", timeout=timeout).begin()
        threading.Event().wait(pause)
        trial.execution.extend(boottime() + 60)
        if word is None:
            trial.execution.cancel()
        else:
            trial.execution.stop(word)
        return trial.ending()

    with ThreadPoolExecutor(4) as seats:
        endings = list(seats.map(one, plans))
    ours = {Outcome.SUCCEEDED, Outcome.TIMED_OUT, Outcome.CANCELLED, Outcome.HANDED_BACK, Outcome.LEASE_LOST}
    assert [ending for ending in endings if ending.outcome not in ours] == []
    assert len({ending.outcome for ending in endings}) > 2, "the moments were not random enough"
    for _ in range(5):
        assert run(process_kind, "noop").outcome is Outcome.SUCCEEDED


def test_a_fork_of_the_replica_keeps_nothing_alive(make_kind: Callable[..., PythonKind]) -> None:
    kind = make_kind()
    child = run(kind, "pid").result
    zygote = kind.pool.zygote
    assert zygote is not None
    fork = subprocess.Popen(["sleep", "60"], close_fds=False)  # what exec keeps open is what was not close-on-exec
    try:
        kind.close()
        assert not alive(child)
        assert not alive(zygote)
    finally:
        fork.kill()
        fork.wait()


def test_without_descriptors_no_body_begins_and_none_is_lost(make_kind: Callable[..., PythonKind]) -> None:
    kind = make_kind(max_runs_per_child=1)
    run(kind, "noop")
    until(lambda: not _children(kind), "the only child is replaced at need")
    before = descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free + 3, hard))
    try:
        ending = run(kind, "noop")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (ending.outcome, ending.started) == (Outcome.CRASHED, False)
    assert "Too many open files" in (ending.error_text or "")
    assert descriptors() <= before
    assert run(kind, "noop").outcome is Outcome.SUCCEEDED


def _children(kind: PythonKind) -> list[str]:
    return Path(f"/proc/{kind.pool.zygote}/task/{kind.pool.zygote}/children").read_text().split()
