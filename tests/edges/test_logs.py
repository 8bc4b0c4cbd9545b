"""LogListener: a line for each event, for machines and for people."""

from __future__ import annotations

import inspect
import io
import json
import logging
import threading
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from sample_events import RESULT, RUN, RUN_ID, SAMPLES, TICK, ended, lost_tick

from scheduler.core import events as ev
from scheduler.core.errors import ConfigInvalid
from scheduler.core.model import Outcome, SkipReason, Status
from scheduler.edges.logs import LogListener
from scheduler.edges.words import say

PLAIN = {"SOLOIST_LOG": "plain"}
JSON = {"SOLOIST_LOG": "json"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(*events: ev.Event, environment: dict[str, str], colour: bool | None = None, level: int = logging.INFO):
    stream = io.StringIO()
    listener = LogListener(stream, colour, level=level, environment=environment)
    for event in events:
        listener(event)
    return stream.getvalue().splitlines()


def objects(*events: ev.Event, **more):
    return [json.loads(line) for line in lines(*events, environment=more.pop("environment", JSON), **more)]


def event_classes() -> set[type[ev.Event]]:
    """Those that something publishes: the leaves below Event."""
    found = {c for _, c in inspect.getmembers(ev, inspect.isclass) if issubclass(c, ev.Event)}
    return {c for c in found if not c.__subclasses__()}


def test_every_event_has_a_sentence_and_a_sample() -> None:
    classes = event_classes()
    assert len(classes) >= 17
    assert classes - set(say.registry) == set(), "an event without a sentence in edges/words"
    assert classes - {type(event) for event, _, _ in SAMPLES} == set(), "an event without a sample here"


@pytest.mark.parametrize(("event", "level", "text"), SAMPLES, ids=lambda value: type(value).__name__)
@time_machine.travel(datetime(2026, 11, 29, 9, 14, 2, 311000, tzinfo=UTC), tick=False)
def test_readable_line(event: ev.Event, level: str, text: str) -> None:
    job = getattr(event, "job", None)
    where = f"{job:<16} " if job else ""
    assert lines(event, environment=PLAIN) == [f"09:14:02.311Z replica-1  {where}{text}"]


@pytest.mark.parametrize(("event", "level", "text"), SAMPLES, ids=lambda value: type(value).__name__)
@time_machine.travel(datetime(2026, 11, 29, 9, 14, 2, 311000, tzinfo=UTC), tick=False)
def test_json_line(event: ev.Event, level: str, text: str) -> None:
    (line,) = objects(event)
    assert list(line)[:4] == ["timestamp", "level", "event", "replica"]
    assert line["timestamp"] == "2026-11-29T09:14:02.311000Z"
    assert (line["level"], line["replica"]) == (level, "replica-1")
    assert line["message"].replace("\n", "\\n") == text.removeprefix(f"{level}: ")
    if isinstance(event, ev.RunEvent):
        keys = {"job", "run_key", "run_id", "attempt", "outcome", "status", "duration_ms", "trace_id", "scheduled_at"}
        assert keys <= set(line)
        assert (line["job"], line["run_id"], line["scheduled_at"]) == (
            "daily-registry",
            str(RUN_ID),
            "2026-11-29T03:00:00Z",
        )


def test_machine_names_are_stable() -> None:
    """Somebody's alert is built on each of these."""
    names = {line["event"] for line in objects(*(event for event, _, _ in SAMPLES), level=logging.DEBUG)}
    assert names >= {
        *("replica_started", "replica_draining", "replica_stopped", "job_planned", "plan_changed"),
        *("tick_won", "tick_lost", "tick_skipped", "attempt_started", "attempt_ended"),
        *("run_taken_over", "lease_lost", "write_fenced", "outcome_unwritten"),
        *("database_lost", "database_regained", "engine_failed"),
    }


def test_an_attempts_end_in_json() -> None:
    (line,) = objects(ended(Status.SUCCEEDED, Outcome.SUCCEEDED, result=RESULT, output_tail="noise\n" * 100))
    assert line["event"] == "attempt_ended"
    assert (line["outcome"], line["status"], line["duration_ms"]) == ("succeeded", "succeeded", 610)
    assert line["result"] == RESULT
    assert "output_tail" not in line
    (line,) = objects(ended(Status.SUCCEEDED, Outcome.SUCCEEDED, result={"rows": list(range(5000))}))
    assert isinstance(line["result"], str)
    assert len(line["result"]) <= 2000


def test_the_form_follows_the_stream_unless_told_otherwise() -> None:
    event = SAMPLES[0][0]
    for stream, environment, is_json in [
        (Terminal(), {}, False),
        (io.StringIO(), {}, True),
        (Terminal(), JSON, True),
        (io.StringIO(), {"SOLOIST_LOG": " Plain "}, False),
    ]:
        LogListener(stream, environment=environment)(event)
        assert stream.getvalue().startswith("{") is is_json
    with pytest.raises(ConfigInvalid, match="SOLOIST_LOG: must be json or plain"):
        LogListener(io.StringIO(), environment={"SOLOIST_LOG": "xml"})


def test_colour_is_for_terminals_and_can_be_refused() -> None:
    event = ended(Status.FAILED)
    for stream, environment, colour, coloured in [
        (Terminal(), {}, None, True),
        (Terminal(), {"NO_COLOR": "1"}, None, False),
        (Terminal(), {"TERM": "dumb"}, None, False),
        (Terminal(), {}, False, False),
        (io.StringIO(), PLAIN, None, False),
        (io.StringIO(), PLAIN, True, True),
    ]:
        LogListener(stream, colour, environment=environment)(event)
        assert ("\x1b[31m" in stream.getvalue()) is coloured


@pytest.mark.parametrize("environment", [PLAIN, JSON])
def test_no_value_can_end_the_line_or_speak_to_the_terminal(environment: dict[str, str]) -> None:
    nasty = "a\nb\r\x1b[2Jc\x00d\u2028e\u202ef\x85g"
    event = ended(
        Status.FAILED,
        job=nasty,
        run_key=nasty,
        replica=nasty,
        error_class=nasty,
        error_text=nasty,
        result={nasty: nasty},
    )
    stream = io.StringIO()
    LogListener(stream, environment=environment)(event)
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert text[:-1].isprintable()
    if environment is JSON:
        assert json.loads(text)["error_text"] == nasty


@pytest.mark.parametrize("environment", [PLAIN, JSON])
def test_long_values_are_cut(environment: dict[str, str]) -> None:
    (line,) = lines(
        ended(Status.FAILED, error_text="é" * 100_000, result={"x": ["y" * 100_000]}), environment=environment
    )
    assert len(line) < 20_000
    assert "(100000 characters)" in line.replace("\\u2026", "…")
    if environment is JSON:
        assert len(json.loads(line)["error_text"]) == 2000


@pytest.mark.parametrize("environment", [PLAIN, JSON])
def test_hostile_results_are_survived(environment: dict[str, str]) -> None:
    deep: object = 1
    for _ in range(900):
        deep = {"a": [deep]}
    for result in (deep, "text", 0, False, [], {}, {"": None}, [1, 2], {"a": float("nan")}, {1: object()}):
        (line,) = lines(ended(Status.SUCCEEDED, Outcome.SUCCEEDED, result=result), environment=environment)
        assert "NaN" not in line or environment is PLAIN or '\\"a\\": NaN' in line  # inside a text, never as a number


def test_no_lost_tick_is_an_error_or_a_flood() -> None:
    """A loser's normal fate: one line a job in five minutes of ticks, and never above INFO."""
    ticks = [lost_tick(job="probe", scheduled_at=TICK + timedelta(seconds=15 * n)) for n in range(40)]
    found = objects(*ticks, level=logging.DEBUG)
    assert {line["level"] for line in found} == {"info", "debug"}
    assert [line["scheduled_at"] for line in found if line["level"] == "info"] == [
        "2026-11-29T03:00:00Z",
        "2026-11-29T03:05:00Z",
    ]
    daily = [lost_tick(scheduled_at=TICK + timedelta(days=n)) for n in range(3)]
    assert len(objects(*daily)) == 3


def test_a_long_plan_is_not_recited() -> None:
    def start(jobs: int) -> list[ev.Event]:
        planned = [ev.JobPlanned(replica="r", job=f"job-{n}", next_tick=TICK) for n in range(jobs)]
        bad = ev.JobPlanned(
            replica="r", job="bad", next_tick=TICK, last_run_key="k", last_status=Status.LOST, last_replica="x"
        )
        started = ev.ReplicaStarted(replica="r", version="1", jobs=jobs, seats=1, database="d")
        return [started, *planned, bad, lost_tick()]

    assert [line["event"] for line in objects(*start(2))] == [
        "replica_started",
        *["job_planned"] * 3,
        "tick_lost",
    ]
    many = objects(*start(1000))
    assert [line.get("job") for line in many] == [None, "bad"]


def test_skipped_ticks_are_thinned_for_people_only() -> None:
    missed = [
        ev.TickSkipped(**{**RUN, "scheduled_at": TICK + timedelta(seconds=15 * n)}, reason=SkipReason.MISSED)
        for n in range(40)
    ]
    assert len(lines(*missed, environment=PLAIN)) == 2
    assert len(lines(*missed, environment=JSON)) == 40


def test_threads_do_not_tear_lines() -> None:
    stream = io.StringIO()
    listener = LogListener(stream, environment=JSON)
    event = ended(Status.FAILED, error_text="x" * 500)
    threads = [threading.Thread(target=lambda: [listener(event) for _ in range(100)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = stream.getvalue().splitlines()
    assert len(found) == 800
    assert all(json.loads(line)["event"] == "attempt_ended" for line in found)


def test_a_stream_that_is_gone_hurts_nobody() -> None:
    stream = io.StringIO()
    reported: list[Exception] = []
    bus = ev.Bus(lambda _event, error: reported.append(error))
    bus.subscribe(LogListener(stream, environment=JSON))
    stream.close()
    bus.publish(SAMPLES[0][0])
    assert [type(error) for error in reported] == [ValueError]
