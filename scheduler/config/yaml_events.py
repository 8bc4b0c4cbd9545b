"""The events of a YAML text: ruamel.yaml's, which are exact, or the same from libyaml, fifty times as fast.

libyaml reads YAML 1.1. Whatever the two versions may see differently (`may_differ`) is not for it; and it only answers
for files that are in order: where there is anything to say, ruamel.yaml reads again, and its words and places count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml import events as exact
from ruamel.yaml.events import Event

_UNLIKE = "\t\x85\u2028\u2029\ufeff"
_MAY_DIFFER = tuple(
    re.compile(pattern)
    for pattern in (
        "\r(?!\n)",
        "\n(?:---|\\.\\.\\.|%)",
        *(f"{before}[ ]*\\?(?:[ \r\n]|\\Z)" for before in ("\n", "{", ",", "\\[", "-")),
        *(f"{mark}[-+0-9]*[ ]*(?:#[^\n]*)?(?:\\Z|\r?\n(?![ ]+[^\\s#]))" for mark in ("\\|", ">")),
    )
)
"""Lone carriage returns, marks of documents and directives, complex keys, block texts whose first line is blank, not
indented, or looks like a comment. Each begins with one character, which is looked for at the speed of memory: a search
holds up every other thread, and one pattern for all of it took half a second for 10,000 jobs."""

_BARE: dict[type[Any], type[Event]] = {
    yaml.StreamStartEvent: exact.StreamStartEvent,
    yaml.StreamEndEvent: exact.StreamEndEvent,
    yaml.DocumentEndEvent: exact.DocumentEndEvent,
    yaml.SequenceEndEvent: exact.SequenceEndEvent,
    yaml.MappingEndEvent: exact.MappingEndEvent,
}


def exact_events(content: str) -> Iterator[Event]:
    """By ruamel.yaml, as YAML 1.2 has it. Raises whatever that raises."""
    yield from YAML(typ="safe", pure=True).parse(content)


def quick_events(content: str) -> Iterator[Event]:
    """By libyaml. Raises whatever that raises."""
    for event in yaml.parse(content, Loader=yaml.CLoader):
        yield _same(event)


def can_be_quick(content: str) -> bool:
    """Whether libyaml is there, and sees in this text what ruamel.yaml does."""
    return bool(yaml.__with_libyaml__) and not may_differ(content)


def may_differ(content: str) -> bool:
    """Whether YAML 1.1 may see anything else in this text: tabs and line ends that only one version knows, and more."""
    lines = "\n" + content  # so that each has its beginning
    return any(sign in content for sign in _UNLIKE) or any(odd.search(lines) for odd in _MAY_DIFFER)


def _same(event: Any) -> Event:
    start, end = event.start_mark, event.end_mark
    if isinstance(event, yaml.ScalarEvent):
        return exact.ScalarEvent(event.anchor, event.tag, event.implicit, event.value, start, end)
    bare = _BARE.get(type(event))
    if bare is not None:
        return bare(start, end)
    if isinstance(event, yaml.MappingStartEvent):
        return exact.MappingStartEvent(event.anchor, event.tag, event.implicit, start, end)
    if isinstance(event, yaml.SequenceStartEvent):
        return exact.SequenceStartEvent(event.anchor, event.tag, event.implicit, start, end)
    if isinstance(event, yaml.DocumentStartEvent):
        return exact.DocumentStartEvent(start, end, event.explicit, event.version, event.tags)
    assert isinstance(event, yaml.AliasEvent)
    return exact.AliasEvent(event.anchor, start, end)


Events = Callable[[str], Iterator[Event]]
