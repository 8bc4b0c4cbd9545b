"""The plain majority of a jobs file, read line by line: ten times as fast as by a full YAML scanner, to the same end.

A large file is thousands of lines like `  timeout: 10m`. What such a line means does not depend on the rest of YAML, as
long as it is `key:` or `key: value` in a block mapping, with a value on the same line that has no escapes. An entry of
any other shape is cut out with all its lines and read by the full reader. Whatever could be a mistake ends this reading
with `NotPlain`: then the full reader reads the whole, and it alone says what is wrong. `tests/config` holds both to the
same values and places.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scheduler.config.scalars import NotAllowed, resolve_scalar

DEEPEST = 20
LONGEST_KEY = 200
Path = tuple[str, ...]
Place = tuple[int, int]
Odd = Callable[[str, Path, int], Any]
"""Reads a piece of text that is one entry of the mapping at a path, from a line (from 1) on. Returns its value."""

# A word and words of a plain scalar that mean the same in every corner of YAML: nothing in it is an indicator.
_QUOTED = r"\"[^\"\\]*\"|'[^']*'"
_KEY = r"(?P<key>\w[\w.-]*+|\"[^\"\\]*\"|'[^']*')"
_BLOCK_PLAIN = r"-?[\w./](?:[^\s:#]++|:(?=\S)|(?<=\S)#|[ ]+(?=[^\s:#]))*+"
_FLOW_PLAIN = r"-?[\w./](?:[\w./@+*=~$;%!^()<>|-]++|:(?=[\w/])|[ ]+(?=[\w./(]))*+"
_LINE = re.compile(rf"(?P<indent> *){_KEY}:(?:[ ]+(?P<value>{_QUOTED}|[{{\[].*|{_BLOCK_PLAIN}))?(?:[ ]+(?:\#.*)?)?")
_FIRST = re.compile(rf" *{_KEY}:(?:[ ]|$)")
_FLOW = re.compile(rf"[ ]*(?:(?P<mark>[{{}}\[\],])|(?P<scalar>{_QUOTED}|{_FLOW_PLAIN})(?P<colon>:(?=[ ]))?)")
_REST = re.compile(r"(?:[ ]+(?:#.*)?)?")
_NOT_HERE = re.compile("^(?:---|\\.\\.\\.|%)|[\t\x85\u2028\u2029\ufeff]|\r(?!\n)", re.MULTILINE)


class NotPlain(Exception):
    """The full reader has to read it: it is something else, or a mistake."""


@dataclass(slots=True)
class _Level:
    indent: int
    path: Path
    values: dict[str, Any]


def read_lines(content: str, places: dict[Path, Place], odd: Odd) -> dict[str, Any]:
    """The mapping that the text is; `places` is filled. Raises NotPlain."""
    if _NOT_HERE.search(content):
        raise NotPlain
    return _Lines(content.replace("\r\n", "\n").split("\n"), places, odd).read()


class _Lines:
    def __init__(self, lines: list[str], places: dict[Path, Place], odd: Odd) -> None:
        self._lines, self._places, self._odd = lines, places, odd
        self._indents = [_indent(line) for line in lines]

    def read(self) -> dict[str, Any]:
        root: dict[str, Any] = {}
        levels = [_Level(0, (), root)]
        at = self._next(0)
        while at < len(self._lines):
            at = self._entry(at, levels)
        if not root:
            raise NotPlain
        return root

    def _next(self, at: int) -> int:
        """The first line from `at` on that is not blank."""
        while at < len(self._lines) and self._indents[at] < 0:
            at += 1
        return at

    def _entry(self, at: int, levels: list[_Level]) -> int:
        """Read the entry of this line; returns the line after it."""
        indent = self._indents[at]
        while levels[-1].indent > indent:
            levels.pop()
        level = levels[-1]
        if level.indent != indent:
            raise NotPlain
        line = _LINE.fullmatch(self._lines[at])
        after = self._next(at + 1)
        deeper = after < len(self._lines) and self._indents[after] > indent
        if line is None or (deeper and line["value"] is not None) or not self._is_entry(after, level, deeper):
            return self._odd_entry(at, level)
        text = line["value"]
        if text is not None and text[0] in "{[":
            return self._flow_entry(line, at, level)
        path = self._key(line, at, level)
        if deeper:
            levels.append(_Level(self._indents[after], path, {}))
            level.values[path[-1]] = levels[-1].values
        else:
            level.values[path[-1]] = None if text is None else _scalar(text)
        return after

    def _flow_entry(self, line: re.Match[str], at: int, level: _Level) -> int:
        places: dict[Path, Place] = {}
        flow = _Flow(self._lines[at], at + 1, places)
        try:
            value = flow.read(line.start("value"), (*level.path, str(_scalar(line["key"]))))
        except NotPlain:
            return self._odd_entry(at, level)
        path = self._key(line, at, level)
        level.values[path[-1]] = value
        self._places |= places
        return self._next(at + 1)

    def _is_entry(self, after: int, level: _Level, deeper: bool) -> bool:
        """Whether the next line may follow: the first entry of a mapping, or one of a mapping that is open."""
        if after == len(self._lines) or not (deeper or self._indents[after] == level.indent):
            return True
        return _FIRST.match(self._lines[after]) is not None

    def _odd_entry(self, at: int, level: _Level) -> int:
        """An entry of another shape: all its lines, up to the next one that is no deeper, for the full reader."""
        line = _FIRST.match(self._lines[at])
        if line is None:
            raise NotPlain
        end = at + 1
        while end < len(self._lines) and not self._begins(end, level.indent):
            end += 1
        path = self._key(line, at, level)
        value = self._odd("\n".join(self._lines[at:end]) + "\n", level.path, at + 1)
        if not isinstance(value, dict) or list(value) != [path[-1]]:
            raise NotPlain
        level.values[path[-1]] = value[path[-1]]
        return self._next(end)

    def _begins(self, at: int, indent: int) -> bool:
        """Whether the line begins something else than the entry before it, which may have a list at its own indent."""
        if not 0 <= self._indents[at] <= indent:
            return False
        item = self._indents[at] == indent and self._lines[at][indent:].split(" ", 1)[0] == "-"
        return not item

    def _key(self, line: re.Match[str], at: int, level: _Level) -> Path:
        key = _scalar(line["key"])
        if not isinstance(key, str) or key in level.values or len(level.path) >= DEEPEST or len(key) > LONGEST_KEY:
            raise NotPlain
        path = (*level.path, key)
        self._places[path] = (at + 1, line.start("key") + 1)
        return path


class _Flow:
    """A mapping or a list in brackets, on one line."""

    def __init__(self, line: str, number: int, places: dict[Path, Place]) -> None:
        self._line, self._number, self._places = line, number, places

    def read(self, start: int, path: Path) -> Any:
        token, at = self._token(start)
        value, at = self._node(token, at, path)
        if not _REST.fullmatch(self._line, at):
            raise NotPlain
        return value

    def _token(self, at: int) -> tuple[re.Match[str], int]:
        token = _FLOW.match(self._line, at)
        if token is None:
            raise NotPlain
        return token, token.end()

    def _node(self, token: re.Match[str], at: int, path: Path) -> tuple[Any, int]:
        if len(path) > DEEPEST or token["colon"]:
            raise NotPlain
        match token["mark"]:
            case None:
                return _scalar(token["scalar"]), at
            case "{":
                return self._mapping(at, path)
            case "[":
                return self._sequence(at, path)
        raise NotPlain

    def _mapping(self, at: int, path: Path) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        token, at = self._token(at)
        if token["mark"] == "}":
            return values, at
        while True:
            if not token["colon"]:
                raise NotPlain
            key = _scalar(token["scalar"])
            if not isinstance(key, str) or key in values or len(key) > LONGEST_KEY:
                raise NotPlain
            self._places[(*path, key)] = (self._number, token.start("scalar") + 1)
            token, at = self._token(at)
            values[key], at = self._node(token, at, (*path, key))
            token, at = self._token(at)
            if token["mark"] == "}":
                return values, at
            token, at = self._comma(token, at)

    def _sequence(self, at: int, path: Path) -> tuple[list[Any], int]:
        items: list[Any] = []
        token, at = self._token(at)
        if token["mark"] == "]":
            return items, at
        while True:
            item = (*path, str(len(items)))
            self._places[item] = (self._number, token.start(token.lastgroup or 0) + 1)
            value, at = self._node(token, at, item)
            items.append(value)
            token, at = self._token(at)
            if token["mark"] == "]":
                return items, at
            token, at = self._comma(token, at)

    def _comma(self, token: re.Match[str], at: int) -> tuple[re.Match[str], int]:
        if token["mark"] != ",":
            raise NotPlain
        return self._token(at)


def _indent(line: str) -> int:
    """How far the line is indented; -1 where it is blank or a comment."""
    text = line.lstrip(" ")
    return len(line) - len(text) if text and text[0] != "#" else -1


def _scalar(text: str) -> Any:
    quoted = text[0] in "\"'"
    try:
        return resolve_scalar(text[1:-1] if quoted else text, plain=not quoted)
    except NotAllowed:
        raise NotPlain from None
