"""What may leave the process as text: secrets masked, control characters escaped, length bounded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from scheduler.core.events import Event

LONGEST = 2000
"""Characters of one value in a log line."""

MASK = "***"
_SHORTEST = 6  # a shorter value is more often a word than a secret, and masking words makes lines unreadable
_DEEPEST = 20  # of a job's result; what lies deeper is not shown
_NAME = re.compile(
    r"TOKEN|PASSW(?:OR)?D|SECRET|CREDENTIAL|DSN|(?:^|_)PASS(?:_|$)|(?:^|_|API|ACCESS|PRIVATE|SSH)KEYS?(?:_|$)",
    re.IGNORECASE,
)
_PLACE = re.compile(r"_(?:FILE|PATH|DIR)$", re.IGNORECASE)
# Each of the three begins at a literal that its own tail cannot cross, so that a long hostile text costs linear time.
_IN_URL = re.compile(r"(?<=://)([^\s/:@'\"]*:)[^\s/'\"]*@")
_ONLY_USER = re.compile(r"(https?://)[^\s/:@'\"]+@")
_IN_CONNINFO = re.compile(r"(passw(?:or)?d\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s,;&'\"]+)", re.IGNORECASE)
_PASSWORD_OF_URL = re.compile(r"://[^\s/:@]*:([^\s/]+)@")

E = TypeVar("E", bound=Event)


class Redaction:
    """Masks the secrets of an environment, and passwords in URLs and connection strings, wherever they stand.

    A variable is secret when its name says so (TOKEN, PASSWORD, SECRET, KEY, DSN, …) and its value has at least six
    characters; so is the password inside any variable's URL. The environment is read once, here.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        found = {form for name, value in environment.items() for form in _secrets_of(name, value)}
        # the longest first: a secret that begins with another one is masked whole
        words = sorted((word for word in found if len(word) >= _SHORTEST), key=lambda word: (-len(word), word))
        self._secrets = re.compile("|".join(map(re.escape, words))) if words else None

    def text(self, text: str) -> str:
        """`text` with every secret as `***`."""
        if self._secrets is not None:
            text = self._secrets.sub(MASK, text)
        if "://" in text:
            text = _IN_URL.sub(rf"\1{MASK}@", text)
            text = _ONLY_USER.sub(rf"\1{MASK}@", text)
        return _IN_CONNINFO.sub(rf"\1{MASK}", text) if "=" in text else text

    def value(self, value: Any, depth: int = 0) -> Any:
        """The same for every text in a value; the words of an enumeration are ours and stay."""
        if _HARMLESS[type(value)]:
            return value
        if isinstance(value, str):
            return self.text(value)
        if depth == _DEEPEST:
            return "…"
        if isinstance(value, Mapping):
            return {self.value(key): self.value(inner, depth + 1) for key, inner in value.items()}
        masked = [self.value(inner, depth + 1) for inner in value]
        return tuple(masked) if isinstance(value, tuple) else masked

    def event(self, event: E) -> E:
        """The event with no secret in any of its texts: itself, where there is none."""
        masked = {}
        for name in _NAMES[type(event)]:
            value = getattr(event, name)
            if not _HARMLESS[type(value)] and (safe := self.value(value)) is not value:
                masked[name] = safe
        return replace(event, **masked) if masked else event


class _Names(dict[type[Event], tuple[str, ...]]):
    """The names of an event's fields, asked for once."""

    def __missing__(self, kind: type[Event]) -> tuple[str, ...]:
        self[kind] = tuple(field.name for field in fields(kind))
        return self[kind]


_NAMES = _Names()


class _Harmless(dict[type, bool]):
    """Whether a value of this type holds no text but words of ours."""

    def __missing__(self, kind: type) -> bool:
        self[kind] = issubclass(kind, Enum) or not issubclass(kind, str | Mapping | list | tuple)
        return self[kind]


_HARMLESS = _Harmless()


def _secrets_of(name: str, value: str) -> Iterator[str]:
    if _NAME.search(name) and not _PLACE.search(name):
        yield from _forms(value.strip())
        if "\n" in value.strip():  # a key in several lines: an error may quote one of them
            yield from (line.strip() for line in value.splitlines() if len(line) >= 16 and not line.startswith("-----"))
    for password in _PASSWORD_OF_URL.findall(value):
        yield from _forms(password)
        yield from _forms(unquote(password))


def _forms(secret: str) -> Iterator[str]:
    """A secret as it is, as URLs carry it and as a repr or JSON shows it."""
    yield secret
    yield quote(secret, safe="")
    yield secret.encode("unicode_escape").decode("ascii")


def printable(text: str) -> str:
    """`text` on one line, harmless to a terminal: what is not printable (line ends, ESC, bidi marks) is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def cut(text: str, limit: int = LONGEST) -> str:
    """At most `limit` characters; what is cut says how long it was."""
    if len(text) <= limit:
        return text
    note = f"… ({len(text)} characters)"
    return text[: max(0, limit - len(note))] + note
