"""How a body that comes to its end by itself is judged, the same in a child and in a thread."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from trial import Trial, run, run_info

from scheduler.core.model import Outcome
from scheduler.kinds import Kind, Progress
from scheduler.kinds.python import PythonKind
from scheduler.kinds.thread import ThreadKind


@pytest.mark.parametrize("value", [None, 0, "text", [1, 2.5, True], {"a": {"b": None}}, "ü€😀"])
def test_a_json_value_is_the_result(kind: Kind, value: Any) -> None:
    ending = run(kind, "echo", value=value)
    assert (ending.outcome, ending.result, ending.started) == (Outcome.SUCCEEDED, value, True)
    assert ending.error_text is None
    assert ending.cpu is not None


def test_the_context_carries_the_facts(kind: Kind) -> None:
    moment = datetime.datetime(2026, 3, 29, 1, 30, 0, 5, tzinfo=datetime.UTC)
    info = run_info(
        scheduled_at=moment,
        deadline=moment + datetime.timedelta(hours=1),
        attempt=4,
        payload={"a": [1, "ü"]},
        checkpoint={"page": 7},
        trace_id="00-ab-cd-01",
    )
    facts = Trial(kind, "facts", info=info).ending().result
    assert facts == {
        "job": "a-job",
        "run_key": info.run_key,
        "run_id": str(info.run_id),
        "scheduled_at": "2026-03-29T01:30:00.000005+00:00",
        "deadline": "2026-03-29T02:30:00.000005+00:00",
        "attempt": 4,
        "payload": {"a": [1, "ü"]},
        "checkpoint": {"page": 7},
        "trace_id": "00-ab-cd-01",
    }


def test_a_coroutine_function_runs_in_its_own_loop(kind: Kind) -> None:
    assert run(kind, "coroutine", value=41).result == 42


@pytest.mark.parametrize(
    ("call", "args", "words"),
    [
        ("a_set", {}, "not JSON"),
        ("not_a_number", {}, "not JSON"),
        ("large", {"size": 70_000}, "70002 bytes of JSON, at most 65536"),
    ],
)
def test_a_result_that_cannot_be_kept_fails_with_a_reason(
    kind: Kind, call: str, args: dict[str, Any], words: str
) -> None:
    ending = run(kind, call, **args)
    assert (ending.outcome, ending.result) == (Outcome.FAILED, None)
    assert words in (ending.error_text or "")


def test_a_result_of_64_kib_is_kept(kind: Kind) -> None:
    assert len(run(kind, "large", size=65_534).result) == 65_534


def test_a_result_too_deep_for_json_hurts_only_its_own_run(process_kind: PythonKind) -> None:
    assert run(process_kind, "deep").outcome in (Outcome.FAILED, Outcome.CRASHED)
    assert run(process_kind, "noop").outcome is Outcome.SUCCEEDED


def test_nul_and_surrogates_never_reach_the_database(kind: Kind) -> None:
    assert run(kind, "nul_and_surrogate").result == {"a\ufffdb": ["c\ufffdd", "😀"]}
    ending = run(kind, "odd_text")
    assert ending.error_text == "NUL \ufffd and \ufffd"
    for text in (ending.error_text, ending.output_tail):
        assert "\x00" not in text
        text.encode()


def test_nor_does_an_odd_log_line(process_kind: PythonKind) -> None:
    tail = run(process_kind, "odd_log").output_tail
    assert tail.endswith("INFO a-job log \ufffd \\ud800 end\n")


def test_an_exception_is_told_with_class_text_and_traceback(kind: Kind) -> None:
    ending = run(kind, "boom", text="the reason")
    assert (ending.outcome, ending.error_class, ending.error_text) == (Outcome.FAILED, "ValueError", "the reason")
    assert not ending.final
    assert ending.retry_after is None
    assert "isolated_bodies.py" in ending.output_tail
    assert ending.output_tail.endswith("ValueError: the reason\n")
    assert "pool/body.py" not in ending.output_tail


def test_an_exception_that_cannot_be_printed_is_told_all_the_same(kind: Kind) -> None:
    ending = run(kind, "odd")
    assert (ending.outcome, ending.error_class) == (Outcome.FAILED, "isolated_bodies.OddError")
    assert ending.error_text == "<the exception cannot be printed>"


def test_signals_to_the_engine(kind: Kind) -> None:
    later = run(kind, "retry", after=12.5)
    assert (later.outcome, later.retry_after, later.error_text) == (Outcome.FAILED, 12.5, "later")
    assert run(kind, "fatal").final
    skipped = run(kind, "skip")
    assert (skipped.outcome, skipped.error_text, skipped.output_tail) == (Outcome.SKIPPED, "nothing to do", "")
    assert run(kind, "cancelled").outcome is Outcome.CANCELLED
    assert run(kind, "lease_lost").outcome is Outcome.LEASE_LOST


@pytest.mark.parametrize(
    ("code", "outcome", "exit_code"),
    [
        (None, Outcome.SUCCEEDED, 0),
        (0, Outcome.SUCCEEDED, 0),
        (3, Outcome.FAILED, 3),
        ("a text", Outcome.FAILED, 1),
    ],
)
def test_sys_exit_means_what_it_means_in_python(kind: Kind, code: object, outcome: Outcome, exit_code: int) -> None:
    ending = run(kind, "sys_exit", code=code)
    assert (ending.outcome, ending.exit_code) == (outcome, exit_code)


def test_a_missing_function_and_wrong_args_are_failures_with_a_hint(kind: Kind) -> None:
    missing = run(kind, "noop_")
    assert missing.outcome is Outcome.FAILED
    assert 'did you mean "noop"' in (missing.error_text or "")
    wrong = run(kind, "retry", after="soon")
    assert wrong.outcome is Outcome.FAILED
    assert "args.after" in (wrong.error_text or "")


def test_a_body_that_may_not_begin_is_handed_back_untouched(kind: Kind) -> None:
    ending = Trial(kind, "boom", trust=None).ending()
    assert (ending.outcome, ending.started) == (Outcome.HANDED_BACK, False)
    assert run(kind, "noop").outcome is Outcome.SUCCEEDED


def test_progress_is_there_after_the_end(kind: Kind) -> None:
    trial = Trial(kind, "say_and_end")
    assert trial.execution.progress() is None
    trial.ending()
    assert trial.execution.progress() == Progress(7, None, None)


def test_no_database_is_said_with_the_variable_to_set(
    thread_kind: ThreadKind, make_kind: Callable[..., PythonKind], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOLOIST_DATABASE_URL", raising=False)
    for kind in (thread_kind, make_kind()):
        ending = run(kind, "database")
        assert ending.outcome is Outcome.FAILED
        assert "SOLOIST_DATABASE_URL" in (ending.error_text or "")
