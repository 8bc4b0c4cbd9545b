"""configure_logging: what libraries and jobs say looks like the engine's own lines."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator

import pytest
import structlog
from sample_events import ended

from scheduler.core.model import Status
from scheduler.edges.logs import LogListener, configure_logging

JSON = {"SOLOIST_LOG": "json"}
PLAIN = {"SOLOIST_LOG": "plain", "DB_PASSWORD": "hunter2-hunter2"}


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """The test's own logging; pytest's handlers come back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.reset_defaults()
    for name in ("apscheduler", "alembic", "urllib3"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def fail() -> None:
    raise ValueError("no such\nthing hunter2-hunter2")


def test_json_of_a_library() -> None:
    stream = io.StringIO()
    configure_logging(stream, environment=JSON)
    logging.getLogger("some.library").warning("%d of %s\nlost", 2, "them")
    (line,) = map(json.loads, stream.getvalue().splitlines())
    assert line.pop("timestamp").endswith("Z")
    assert line == {"level": "warning", "event": "log", "logger": "some.library", "message": "2 of them\nlost"}


def test_readable_line_of_a_library_and_its_exception() -> None:
    stream = io.StringIO()
    configure_logging(stream, environment=PLAIN)
    try:
        fail()
    except ValueError:
        logging.getLogger("some.library").exception("it failed: \x1b[2J hunter2-hunter2")
    first, *trace = stream.getvalue().splitlines()
    assert first[12:] == r"Z some.library     error: it failed: \x1b[2J ***"
    assert trace[0] == "    Traceback (most recent call last):"
    assert trace[-1] == "    thing ***"
    assert all(line.startswith("    ") for line in trace)


def test_structlog_and_warnings_take_the_same_way() -> None:
    stream = io.StringIO()
    configure_logging(stream, environment=JSON)
    structlog.get_logger("jobs.mine").info("counted", rows=3)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(False)
    mine, warned = map(json.loads, stream.getvalue().splitlines())
    assert (mine["logger"], mine["level"], mine["message"], mine["rows"]) == ("jobs.mine", "info", "counted", 3)
    assert mine["event"] == "log"
    assert warned["logger"] == "py.warnings"
    assert "DeprecationWarning: old" in warned["message"]


def test_levels() -> None:
    stream = io.StringIO()
    configure_logging(stream, environment=JSON)
    logging.getLogger("mine").debug("no")
    logging.getLogger("mine").info("yes")
    logging.getLogger("apscheduler.executors.default").info("no: one line for each tick")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["yes"]


def test_engine_and_libraries_share_one_stream() -> None:
    stream = io.StringIO()
    configure_logging(stream, environment=JSON)
    listener = LogListener(stream, environment=JSON)
    listener(ended(Status.FAILED))
    logging.getLogger("mine").info("yes")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["attempt_ended", "log"]


def test_a_stream_that_is_gone_does_not_hurt_who_logs(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    configure_logging(stream, environment=JSON)
    stream.close()
    logging.getLogger("mine").info("lost")
    assert "closed file" in capsys.readouterr().err
