"""YAML 1.2 into plain values with the place of every entry, strictly: text is text, and nothing is guessed.

The libraries scan and parse; the values are built here from their events, because we want less than YAML has (no tags,
aliases, merge keys or second documents), the place of every key, and every problem at once. Scalars follow the core
schema of YAML 1.2: `no`, `on`, `10:30`, `2026-11-29` and `1_000` are text; `true`, `12`, `0x1F` and `1.5` are not.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from scheduler.config.scalars import NotAllowed, resolve_scalar
from scheduler.config.yaml_events import Events, can_be_quick, exact_events, quick_events
from scheduler.config.yaml_faults import Place, explain
from scheduler.core.errors import ConfigInvalid, Problem

LARGEST = 8 * 1024 * 1024
MOST_ENTRIES = 500_000
DEEPEST = 20
LONGEST_KEY = 200

Path = tuple[str, ...]

_ENTRY = re.compile(r"[,\[{?]|[:-](?=\s)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufffe\uffff]")


@dataclass(slots=True)
class Document:
    """What a file says. `places`: line and column (from 1) of each entry, by its path; `()` is the whole.

    `content`: the text without a byte order mark. `unread`: entries whose value is not known, such as an alias: what
    is said of them besides is no news.
    """

    value: Any
    content: str
    places: dict[Path, Place]
    unread: set[Path] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)


def read_yaml(text: bytes, name: str) -> Document:
    """Read one document. Raises ConfigInvalid where nothing can be read at all; else see `problems`."""
    content = _decoded(text, name)
    if _most_entries(content) > MOST_ENTRIES and sum(1 for _ in _ENTRY.finditer(content)) > MOST_ENTRIES:
        raise _invalid(name, (1, 1), f"the file has more than {MOST_ENTRIES:,} entries (or commas and colons)")
    if can_be_quick(content):
        with suppress(ConfigInvalid):
            document = _Reader(name, content, quick_events).read()
            if not document.problems:
                return document
    return _Reader(name, content, exact_events).read()


def _most_entries(content: str) -> int:
    """No fewer than there are; ten times as fast as to count them."""
    return sum(content.count(sign) for sign in ",[{?:-")


def _decoded(text: bytes, name: str) -> str:
    if len(text) > LARGEST:
        raise _invalid(name, (1, 1), "the file is larger than 8 MiB")
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in text[:4]:
        raise _invalid(name, (1, 1), "the file is UTF-16 or UTF-32: save it as UTF-8")
    text = text.removeprefix(codecs.BOM_UTF8)
    try:
        content = text.decode("utf-8")
    except UnicodeDecodeError as error:
        before = text[: error.start].decode("utf-8")
        raise _invalid(
            name, _place_at(before), f"byte 0x{text[error.start]:02X} is not UTF-8: save it as UTF-8"
        ) from None
    odd = _CONTROL.search(content)
    if odd is not None:
        message = f"the invisible character U+{ord(odd.group()):04X} is not allowed: delete it"
        raise _invalid(name, _place_at(content[: odd.start()]), message)
    return content


def _place_at(before: str) -> Place:
    lines = before.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return len(lines), len(lines[-1]) + 1


def _invalid(name: str, place: Place, message: str) -> ConfigInvalid:
    return ConfigInvalid((Problem(name, *place, "", message),))


class _Reader:
    def __init__(self, name: str, content: str, events: Events) -> None:
        self._name, self._parse = name, events
        self._content = content
        self._last: Place = (1, 1)
        self._document = Document(None, content, {(): (1, 1)})
        self._source = self._events()

    def read(self) -> Document:
        """Read the one document of the stream."""
        next(self._source)
        event = next(self._source)
        if isinstance(event, StreamEndEvent):
            raise _invalid(self._name, (1, 1), "the file is empty")
        assert isinstance(event, DocumentStartEvent)
        if event.version is not None and tuple(event.version) != (1, 2):
            raise _invalid(self._name, _place(event), "only YAML 1.2 is read: take out the %YAML line")
        self._document.value = self._node(next(self._source), ())
        next(self._source)
        event = next(self._source)
        if not isinstance(event, StreamEndEvent):
            raise _invalid(self._name, _place(event), "a second document begins here (---): a file holds one")
        return self._document

    def _events(self) -> Iterator[Event]:
        """Whatever goes wrong in there becomes one problem with a place."""
        try:
            for event in self._parse(self._content):
                self._last = _place(event)
                yield event
        except MarkedYAMLError as error:
            raise _invalid(self._name, *explain(error, self._content, self._last)) from None
        except ConfigInvalid:
            raise
        except Exception as error:
            # ruamel answers some broken escapes and directives with bare ValueErrors and the like.
            raise _invalid(self._name, self._last, f"not readable as YAML ({type(error).__name__})") from None

    def _node(self, event: Event, path: Path) -> Any:
        """The plain value that begins with `event`."""
        if len(path) > DEEPEST:
            raise _invalid(self._name, _place(event), f"nested deeper than {DEEPEST} levels")
        if isinstance(event, AliasEvent):
            self._say(event, path, "aliases are not allowed; if this is a cron expression, quote the expression")
            self._document.unread.add(path)
            return None
        if getattr(event, "anchor", None) is not None:
            self._say(event, path, "anchors are not allowed: write the value out (quote it if the & belongs to it)")
        if getattr(event, "tag", None) is not None:
            self._say(event, path, "tags are not allowed: quote the value if the ! belongs to it")
            self._document.unread.add(path)
        if isinstance(event, MappingStartEvent):
            return self._mapping(path)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(path)
        assert isinstance(event, ScalarEvent)
        return self._scalar(event, path)

    def _scalar(self, event: ScalarEvent, path: Path) -> Any:
        try:
            return resolve_scalar(event.value, plain=bool(event.implicit[0]))
        except NotAllowed as error:
            self._say(event, path, str(error))
            self._document.unread.add(path)
            return None

    def _sequence(self, path: Path) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._source), SequenceEndEvent):
            item = (*path, str(len(items)))
            self._document.places[item] = _place(event)
            items.append(self._node(event, item))
        return items

    def _mapping(self, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not isinstance(event := next(self._source), MappingEndEvent):
            key = self._key(event, path)
            entry = (*path, key)
            if key in values:
                self._again(event, entry)
            else:
                self._document.places[entry] = _place(event)
                values[key] = self._node(next(self._source), entry)
        return values

    def _again(self, event: Event, entry: Path) -> None:
        """A key for the second time: say so, and read past its value, whose places are not the entry's."""
        first, places = self._document.places[entry], self._document.places
        message = f"duplicate key: it stands on line {first[0]} already (this is line {_place(event)[0]})"
        self._say(event, entry, message)
        self._document.places = {}
        self._node(next(self._source), entry)
        self._document.places = places

    def _key(self, event: Event, path: Path) -> str:
        if not isinstance(event, ScalarEvent):
            self._say(event, path, "a key must be a text")
            # Read on to its end, so that what follows is still checked.
            self._node(event, (*path, "?"))
            return "?"
        if len(event.value) > LONGEST_KEY:
            self._say(event, path, f"a key is longer than {LONGEST_KEY} characters")
            return str(event.value)[:LONGEST_KEY]
        entry = (*path, event.value)
        plain = bool(event.implicit[0])
        if event.anchor is not None or event.tag is not None:
            self._say(event, entry, "tags and anchors are not allowed")
        elif plain and event.value == "<<":
            self._say(event, entry, "merge keys are not allowed: write the entries out, or use `defaults:`")
            self._document.unread.add(entry)
        else:
            self._check_key(event, entry, plain=plain)
        return str(event.value)

    def _check_key(self, event: ScalarEvent, entry: Path, *, plain: bool) -> None:
        try:
            if not isinstance(resolve_scalar(event.value, plain=plain), str):
                self._say(
                    event, entry, f'{event.value or "an empty key"} is not a text in YAML: quote it, "{event.value}"'
                )
        except NotAllowed as error:
            self._say(event, entry, str(error))

    def _say(self, event: Event, path: Path, message: str) -> None:
        self._document.problems.append(Problem(self._name, *_place(event), ".".join(path), message))


def _place(event: Event) -> Place:
    mark = event.start_mark
    return (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
