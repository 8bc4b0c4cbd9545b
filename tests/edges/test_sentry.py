"""SentryListener against an ingest endpoint that parses what it gets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from ingest_endpoint import Endpoint, running_endpoint
from replicas import eventually
from sample_events import RUN_ID, SAMPLES, ended, lost_tick, taken_over

from scheduler.core.events import AttemptEnded, Bus, Event, JobPaused, JobSick, PlanRefused, RunTakenOver
from scheduler.core.model import Outcome, Status
from scheduler.core.redaction import Redaction
from scheduler.edges.sentry import QUEUE, SentryListener

RELEASE = "soloist@0.1.0"
LIMIT = 1.0
SLACK = 30.0  # a busy machine may be late; what is guarded against are 5 s of waiting for each of a hundred events


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with running_endpoint() as running:
        yield running


@contextmanager
def listening(dsn: str, environment: str | None = "test") -> Iterator[SentryListener]:
    listener = SentryListener(dsn, RELEASE, environment)
    try:
        yield listener
    finally:
        listener.close(LIMIT)


def dead_dsn() -> str:
    """An address where nobody listens (any more)."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://publickey@127.0.0.1:{taken.getsockname()[1]}/1"


def elapsed(call: Callable[[], object]) -> float:
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


def sent(endpoint: Endpoint, *events: Event) -> list[dict]:
    """What arrives of these events until the listener is closed."""
    listener = SentryListener(endpoint.dsn, RELEASE, "test")
    for event in events:
        listener(event)
    listener.close(60)
    assert listener.dropped == 0
    return endpoint.events


def halts(event: Event) -> bool:
    """Whether it keeps jobs from running until a person acts."""
    return isinstance(event, PlanRefused | JobSick) or (isinstance(event, JobPaused) and event.by == "soloist")


def test_a_failed_run_is_one_event_with_its_tags(endpoint: Endpoint) -> None:
    tail = "".join(f"line {n}\n" for n in range(100))
    failed = ended(Status.FAILED, attempt=3, error_class="jobs.Boom", error_text="no paper", output_tail=tail)
    (event,) = sent(endpoint, failed)
    assert event["tags"] == {
        "job": "daily-registry",
        "run_key": "2026-11-29",
        "run_id": str(RUN_ID),
        "attempt": "3",
        "replica": "replica-1",
        "outcome": "failed",
        "status": "failed",
    }
    (exception,) = event["exception"]["values"]
    assert (exception["type"], exception["value"]) == ("jobs.Boom", "no paper")
    assert event["fingerprint"] == ["daily-registry", "jobs.Boom"]
    assert event["level"] == "error"
    assert (event["release"], event["environment"], event["server_name"]) == (RELEASE, "test", "replica-1")
    assert event["contexts"]["run"]["scheduled_at"] == "2026-11-29T03:00:00Z"
    assert event["contexts"]["run"]["trace_id"] == RUN_ID.hex
    assert event["extra"]["output_tail"].splitlines() == [f"line {n}" for n in range(60, 100)]
    assert "breadcrumbs" not in event
    assert "stacktrace" not in exception
    assert "modules" not in event
    assert [item.type for item in endpoint.items] == ["event"]


@pytest.mark.parametrize(
    ("bad", "outcome", "kind"),
    [
        (ended(Status.TIMED_OUT, Outcome.TIMED_OUT), "timed_out", "TimedOut"),
        (ended(Status.FAILED, Outcome.CRASHED), "crashed", "Crashed"),
        (ended(Status.LOST, Outcome.LEASE_LOST), "lease_lost", "LeaseLost"),
        (taken_over(Status.LOST), "crashed", "Lost"),
        (taken_over(Status.FAILED, error_text="crashed 3 times"), "crashed", "Crashed"),
    ],
)
def test_every_bad_end_is_one_event(endpoint: Endpoint, bad: Event, outcome: str, kind: str) -> None:
    (event,) = sent(endpoint, bad)
    assert event["tags"]["outcome"] == outcome
    assert event["exception"]["values"][0]["type"] == kind
    assert event["fingerprint"] == ["daily-registry", kind]


@pytest.mark.parametrize(
    ("trouble", "level", "tags"),
    [
        (
            PlanRefused(replica="replica-1", file="jobs.yaml", problems=("jobs.yaml:3:5: a: unknown key", "1 more")),
            "error",
            {"file": "jobs.yaml"},
        ),
        (JobSick(replica="replica-1", job="daily-registry", error="unknown timezone"), "error", {}),
        (
            JobPaused(replica="replica-1", job="daily-registry", by="soloist", reason="5 bad ends in a row"),
            "warning",
            {},
        ),
    ],
)
def test_what_keeps_jobs_from_running_is_one_event(
    endpoint: Endpoint, trouble: PlanRefused | JobSick | JobPaused, level: str, tags: dict[str, str]
) -> None:
    (event,) = sent(endpoint, trouble)
    subject = trouble.file if isinstance(trouble, PlanRefused) else trouble.job
    kind = type(trouble).__name__
    assert event["fingerprint"] == [subject, kind]
    assert event["level"] == level
    assert event["tags"] == {"replica": "replica-1", **(tags or {"job": subject})}
    (exception,) = event["exception"]["values"]
    assert exception["type"] == kind
    match trouble:
        case PlanRefused(problems=problems):
            assert exception["value"].splitlines() == ["The former plan goes on.", *problems]
        case JobSick(error=text) | JobPaused(reason=text):
            assert exception["value"] == text
    assert "extra" not in event


def test_nothing_else_is_sent(endpoint: Endpoint) -> None:
    """No retries in between, no losers, no take-overs that go on, no shutdown; and one event at the end of the row."""
    bad = (Status.FAILED, Status.TIMED_OUT, Status.LOST)
    harmless = [event for event, _, _ in SAMPLES if getattr(event, "status", None) not in bad and not halts(event)]
    losers = [lost_tick(status=status) for status in bad]
    assert len(harmless) > 25
    found = sent(
        endpoint, *harmless, *losers, *(ended(Status.QUEUED) for _ in range(3)), ended(Status.FAILED, attempt=4)
    )
    assert [event["tags"]["attempt"] for event in found] == ["4"]
    assert endpoint.requests == 1


def test_it_listens_on_the_bus(endpoint: Endpoint) -> None:
    bad = [
        event
        for event, level, _ in SAMPLES
        if halts(event) or (isinstance(event, AttemptEnded | RunTakenOver) and level == "error")
    ]
    failures: list[Exception] = []
    bus = Bus(lambda _event, error: failures.append(error))
    with listening(endpoint.dsn) as listener:
        bus.subscribe(listener)
        for event, _, _ in SAMPLES:
            bus.publish(event)
        eventually(lambda: len(endpoint.events) == len(bad), "the troubles among the samples")
    assert failures == []
    assert len(endpoint.events) == len(bad) >= 7


def test_a_hanging_endpoint_delays_neither_run_nor_shutdown(endpoint: Endpoint) -> None:
    endpoint.answers.clear()
    listener = SentryListener(endpoint.dsn, RELEASE, None)
    listener(ended(Status.FAILED))
    assert endpoint.asked.wait(60)
    bad = ended(Status.FAILED, error_text="x" * 100_000, output_tail="y" * 65_536)
    took = sorted(elapsed(lambda: listener(bad)) for _ in range(QUEUE - 1))
    assert took[len(took) // 2] < 0.001
    assert elapsed(lambda: listener.close(LIMIT)) < LIMIT + SLACK
    assert listener.dropped == QUEUE
    assert elapsed(lambda: listener.close(60)) < SLACK  # a second time: nothing to do


def test_a_dead_endpoint_costs_nothing_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    listener = SentryListener(dead_dsn(), RELEASE, None)
    for _ in range(3):
        listener(ended(Status.FAILED))
    eventually(lambda: listener.dropped == 3, "all three are counted as lost")
    assert elapsed(lambda: listener.close(LIMIT)) < LIMIT + SLACK
    said = [record.getMessage() for record in caplog.records if record.name == "soloist.sentry"]
    assert said == [
        "Sentry did not take an event (network); no run is affected, and further losses are counted",
        "Sentry did not get 3 events of this process; no run was affected",
    ]
    assert {record.name for record in caplog.records} == {"soloist.sentry"}, "the SDK's own tries are nobody's news"


def test_a_refusing_endpoint_is_counted_and_said_again_after_it_worked(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    with listening(endpoint.dsn) as listener:
        for status, dropped, arrived in ((500, 1, 0), (200, 1, 1), (500, 2, 1)):
            endpoint.status = status
            before = endpoint.requests
            listener(ended(Status.FAILED))
            eventually(lambda before=before: endpoint.requests > before, "it was asked")
            eventually(lambda dropped=dropped: listener.dropped == dropped, "the loss is counted")
            eventually(lambda arrived=arrived: len(endpoint.events) == arrived, "the event is there")
    assert [r.args for r in caplog.records if "did not take" in r.msg] == [("status_500",), ("status_500",)]


def test_what_does_not_fit_is_dropped_and_counted(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    # a first request that met its limit meanwhile would be lost too, and make room for another
    monkeypatch.setattr("scheduler.edges.sentry._ANSWER_WITHIN", 60)
    endpoint.answers.clear()
    listener = SentryListener(endpoint.dsn, RELEASE, None)
    listener(ended(Status.FAILED))
    assert endpoint.asked.wait(60)
    for _ in range(QUEUE + 7):
        listener(ended(Status.FAILED))
    assert listener.dropped == 7
    endpoint.answers.set()
    listener.close(60)
    assert (len(endpoint.events), listener.dropped) == (QUEUE + 1, 7), "all others arrive"
    listener(ended(Status.FAILED))
    assert listener.dropped == 8, "after close, an event is counted and not kept"


@pytest.mark.parametrize(
    "dsn", ["", "   ", "geheim-token", "https://h/1", "https://k@h/x", "ftp://k@h/1", "https://k@h:x/1"]
)
def test_a_broken_dsn_is_one_warning(
    dsn: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SENTRY_DSN", raising=False)
    before = set(threading.enumerate())  # a set: a thread of an earlier test may end in the middle
    listener = SentryListener(dsn, RELEASE, None)
    listener(ended(Status.FAILED))
    listener.close()
    assert set(threading.enumerate()) <= before
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("SENTRY_DSN cannot be used")
    assert Redaction({}).text(record.getMessage()) == record.getMessage(), "the advice survives the log's own masking"
    assert not dsn.strip() or dsn not in record.getMessage()


def test_no_secret_reaches_sentry(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secrets = [f"canary-{n}-value" for n in range(5)]
    for name, secret in zip(("A_TOKEN", "B_PASSWORD", "C_SECRET", "D_API_KEY"), secrets, strict=False):
        monkeypatch.setenv(name, secret)
    monkeypatch.setenv("SOLOIST_DATABASE_URL", f"postgresql://u:{secrets[4]}@h/db")
    text = " ".join(secrets) + " postgresql://u:canary-6-value@h/db " + endpoint.dsn
    bad = ended(Status.FAILED, **dict.fromkeys(("job", "run_key", "replica", "error_class", "error_text"), text))
    sent(endpoint, bad, ended(Status.FAILED, output_tail=text, trace_id=text), taken_over(Status.LOST, owner=text))
    assert len(endpoint.bodies) == 3
    for body in endpoint.bodies:
        # the envelope's header names the address it was sent to: the protocol wants that
        _, _, rest = body.partition(b"\n")
        assert b"canary" not in rest
        assert b"publickey" not in rest
        assert b"***" in rest
    assert "canary" not in caplog.text


def test_long_and_odd_values_arrive(endpoint: Endpoint) -> None:
    odd = "manual:\n\ud800" + "k" * 500
    (event,) = sent(endpoint, ended(Status.FAILED, run_key=odd, error_text="e" * 10_000, output_tail="t" * 65_536))
    assert len(event["tags"]["run_key"]) == 200
    assert "\n" not in event["tags"]["run_key"]
    assert len(event["exception"]["values"][0]["value"]) <= 2000
    assert event["extra"]["output_tail"]


def test_a_run_without_an_id_is_reported(endpoint: Endpoint) -> None:
    (event,) = sent(endpoint, taken_over(Status.LOST, run_id=None, scheduled_at=None, trace_id=None))
    assert "run_id" not in event["tags"]
    assert event["tags"]["job"] == "daily-registry"


def test_close_flushes(endpoint: Endpoint) -> None:
    """The replica ends right after the failure: the event must not end with it."""
    listener = SentryListener(endpoint.dsn, RELEASE, None)
    for _ in range(20):
        listener(ended(Status.FAILED))
    listener.close(60)
    assert (len(endpoint.events), listener.dropped) == (20, 0)


def test_a_process_can_leave_while_the_endpoint_hangs(endpoint: Endpoint) -> None:
    """Not only `close`: the interpreter's own end must not wait for a thread or a request either."""
    endpoint.answers.clear()
    code = (
        "import sys; sys.path[:0] = [sys.argv[2], sys.argv[3]]\n"
        "from sample_events import ended\n"
        "from scheduler.core.model import Status\n"
        "from scheduler.edges.sentry import SentryListener\n"
        "listener = SentryListener(sys.argv[1], 'r', None)\n"
        "listener(ended(Status.FAILED)); listener.close(0.5)\n"
        "print(listener.dropped)\n"
    )
    here = os.path.dirname(__file__)
    root = os.path.dirname(os.path.dirname(here))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, endpoint.dsn, here, root],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert "Traceback" not in done.stderr


def test_importing_the_module_does_not_import_the_sdk() -> None:
    code = "import sys, scheduler.edges.sentry; print('sentry_sdk' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"
