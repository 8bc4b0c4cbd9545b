"""Log lines: one for each event, JSON for machines or a readable line for people; and the libraries' lines alike."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import fields
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple, TextIO
from uuid import UUID

import structlog

from scheduler.core.errors import ConfigInvalid, Problem
from scheduler.core.events import Event, JobPlanned, ReplicaStarted, RunEvent, TickLost, TickSkipped
from scheduler.core.model import Status
from scheduler.core.redaction import LONGEST, Redaction, cut, printable
from scheduler.edges.words import instant, say

VARIABLE = "SOLOIST_LOG"

_FEW_JOBS = 20
_SELDOM = timedelta(minutes=5)
_WORD = re.compile(r"(?<!^)(?=[A-Z])")
_CHATTY = ("apscheduler", "alembic", "urllib3")

_OF_A_RUN = dict.fromkeys(("job", "run_key", "run_id", "attempt", "outcome", "status", "duration_ms", "trace_id"))
_encode = json.JSONEncoder(default=str).encode

EventDict = MutableMapping[str, Any]


class Form(StrEnum):
    """How lines look: objects for machines, or text for people."""

    JSON = "json"
    PLAIN = "plain"


def form_for(stream: TextIO, environment: Mapping[str, str]) -> Form:
    """What SOLOIST_LOG says, else plain on a terminal and JSON elsewhere. Raises ConfigInvalid."""
    wanted = environment.get(VARIABLE, "").strip().lower()
    if not wanted:
        return Form.PLAIN if stream.isatty() else Form.JSON
    if wanted not in tuple(Form):
        raise ConfigInvalid((Problem("environment", 0, 0, VARIABLE, "must be json or plain"),))
    return Form(wanted)


class LogListener:
    """Writes a line for each event that `level` (of `logging`) lets through. May be called from any thread.

    `stream`: stderr by default. `colour`: None means on a terminal, unless NO_COLOR is set. `environment`: where
    SOLOIST_LOG and the secrets to mask are read, once; the process's own by default. Raises ConfigInvalid.

    Every JSON line has `timestamp` (UTC), `level`, `event`, `replica` and `message`, and about a run also `job`,
    `run_key`, `run_id`, `attempt`, `outcome`, `status`, `duration_ms`, `trace_id` and `scheduled_at` (null where there
    is none). Texts over 2,000 characters are cut; a `result` that is longer as JSON becomes the beginning of that text.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        colour: bool | None = None,
        *,
        level: int = logging.INFO,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        stream = sys.stderr if stream is None else stream
        environment = os.environ if environment is None else environment
        self._form = form_for(stream, environment)
        self._redaction = Redaction(environment)
        self._few = True
        self._told: dict[tuple[type[Event], str], datetime] = {}
        self._level = level
        self._write = structlog.WriteLogger(stream).msg
        self._stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
        self._render = _renderer(self._form, _colour_for(stream, colour, environment))

    def __call__(self, event: Event) -> None:
        """Write the event's line."""
        if isinstance(event, ReplicaStarted):
            self._few = event.jobs <= _FEW_JOBS
        noise = self._is_noise(event)
        if noise and self._level > logging.DEBUG:
            return
        safe = self._redaction.event(event)  # before anything is cut: half a secret would not be recognised
        level, sentence = say(safe)
        if noise:
            level = logging.DEBUG
        if level >= self._level:
            # without structlog's own chain of calls, which costs more than all the rest (measured)
            line: EventDict = {"timestamp": None, "level": _level_name(level), "event": _SHAPES[type(event)].name}
            line.update(_facts_of(safe))
            line["message"] = cut(sentence)
            self._write(str(self._render(None, "", self._stamp(None, "", line))))

    def _is_noise(self, event: Event) -> bool:
        """What would drown the rest: the start of a long plan, and ticks that do not run here.

        Losing a tick is normal for all replicas but one. So it is told for a small plan only, and of each job once
        in five minutes of ticks. Skipped ticks are thinned out likewise for people; machines get every one.
        """
        if isinstance(event, JobPlanned):
            return not self._few and event.last_status in (None, Status.SUCCEEDED, Status.SKIPPED)
        if isinstance(event, TickLost):
            return not self._few or self._told_lately(event)
        return isinstance(event, TickSkipped) and self._form is Form.PLAIN and self._told_lately(event)

    def _told_lately(self, event: RunEvent) -> bool:
        if event.scheduled_at is None:
            return False
        last = self._told.get((type(event), event.job))
        if last is not None and abs(event.scheduled_at - last) < _SELDOM:
            return True
        self._told[type(event), event.job] = event.scheduled_at
        return False


def configure_logging(
    stream: TextIO | None = None,
    colour: bool | None = None,
    *,
    level: int = logging.INFO,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Make the lines of `logging`, `warnings` and structlog look like LogListener's, in the same stream.

    For a process that is a replica and nothing else: it replaces the root logger's handlers. A JSON line has the event
    `log`, the `logger`'s name, the `message`, and the `exception`'s traceback where there is one. Arguments as in
    LogListener. Raises ConfigInvalid.
    """
    stream = sys.stderr if stream is None else stream
    environment = os.environ if environment is None else environment
    renderer = _renderer(form_for(stream, environment), _colour_for(stream, colour, environment))
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _Library(Redaction(environment)),
    ]
    handler = _StreamHandler(structlog.WriteLogger(stream))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer], foreign_pre_chain=shared
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    logging.captureWarnings(True)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )


class _StreamHandler(logging.Handler):
    """Through structlog's writer, whose lock belongs to the stream: no line is torn by one of LogListener's."""

    def __init__(self, writer: structlog.WriteLogger) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line. A stream that is gone must not hurt the code that logs."""
        try:
            self._writer.msg(self.format(record))
        except Exception:
            self.handleError(record)


class _Library:
    """A processor: a foreign line in our words, its secrets masked."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction

    def __call__(self, _logger: Any, _name: str, line: EventDict) -> EventDict:
        kept = {key: line.pop(key) for key in ("_record", "_from_structlog") if key in line}
        safe = {key: self._redaction.value(value) for key, value in line.items()}
        message = cut(str(safe.pop("event", "")))
        return {**kept, **{key: _plain(value) for key, value in safe.items()}, "event": "log", "message": message}


def _renderer(form: Form, colour: bool) -> structlog.typing.Processor:
    return _as_json if form is Form.JSON else _Readable(colour)


def _as_json(_logger: Any, _name: str, line: EventDict) -> str:
    """One object on one line, in ASCII: no character in it can act on a terminal or end the line."""
    head = {key: line.pop(key, None) for key in ("timestamp", "level", "event")}
    message = line.pop("message", "")
    return _encode({**head, **line, "message": message})


class _Readable:
    """`09:14:02.311Z replica-2  daily-registry   won 2026-11-29: it runs here`."""

    _LEVELS: Mapping[str, str] = {"debug": "2", "warning": "33", "error": "31", "critical": "1;31"}

    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def __call__(self, _logger: Any, _name: str, line: EventDict) -> str:
        level = str(line.get("level", "info"))
        message = printable(cut(str(line.get("message", ""))))
        if level not in ("info", "debug"):
            message = f"{level}: {message}"  # a word, for those who see no colour
        code = self._LEVELS.get(level) or ("32" if _is_good_news(line) else "")
        where = str(line.get("job") or line.get("logger") or "")
        parts = [
            self._painted(str(line["timestamp"])[11:23] + "Z", "2"),
            self._painted(f"{printable(str(line['replica'])):<10}", "36") if "replica" in line else "",
            self._painted(f"{printable(where):<16}", "1") if where else "",
            self._painted(message, code),
        ]
        trace = str(line.get("exception") or "").splitlines()
        return "\n".join([" ".join(filter(None, parts)), *(f"    {printable(row)}" for row in trace)])

    def _painted(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and code else text


def _is_good_news(line: EventDict) -> bool:
    return line["event"] == "tick_won" or (line["event"], line.get("status")) == ("attempt_ended", Status.SUCCEEDED)


def _colour_for(stream: TextIO, colour: bool | None, environment: Mapping[str, str]) -> bool:
    if colour is not None:
        return colour
    return stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


@cache
def _level_name(level: int) -> str:
    return logging.getLevelName(level).lower()


class _Shape(NamedTuple):
    name: str  # `TickWon` is `tick_won` to machines
    fields: tuple[str, ...]  # but the output's tail: that belongs to the history, here it would be thousands of lines


class _Shapes(dict[type[Event], _Shape]):
    def __missing__(self, kind: type[Event]) -> _Shape:
        name = _WORD.sub("_", kind.__name__.removesuffix("Event")).lower()
        self[kind] = _Shape(name, tuple(field.name for field in fields(kind) if field.name != "output_tail"))
        return self[kind]


_SHAPES = _Shapes()


def _facts_of(event: Event) -> dict[str, Any]:
    facts: dict[str, Any] = {"replica": event.replica}
    if isinstance(event, RunEvent):
        facts |= _OF_A_RUN
    for name in _SHAPES[type(event)].fields:
        value = getattr(event, name)
        if name in ("duration", "start_delay"):
            facts[f"{name}_ms"] = None if value is None else round(value * 1000)
        elif name == "result":
            facts["result"] = None if value is None else _bounded(value)
        else:
            facts[name] = _plain(value)
    return facts


def _bounded(result: object) -> Any:
    """The result, or the beginning of its JSON: it is long, or holds a NaN, which no JSON reader has to take."""
    try:
        text = json.dumps(result, default=str, allow_nan=False)
    except ValueError:
        return cut(json.dumps(result, default=str))
    return result if len(text) <= LONGEST else cut(text)


def _plain(value: Any) -> Any:
    write = _PLAIN.get(type(value))
    return value if write is None else write(value)


_PLAIN: Mapping[type, Callable[[Any], Any]] = {
    str: cut,
    datetime: instant,
    UUID: str,
    float: lambda value: round(value, 3),
}
