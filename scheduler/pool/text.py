"""Text that PostgreSQL can store, and the bounded end of an endless output."""

from __future__ import annotations

import logging
import time
from typing import Any

KEEP = 64 * 1024
_CONTINUATION = bytes(range(0x80, 0xC0))


def clean(text: str) -> str:
    """Without NUL and lone surrogates, which `text` and `jsonb` refuse; U+FFFD stands in their place."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clean_json(value: Any) -> Any:
    """The same for every string in a JSON value, keys too."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): clean_json(item) for key, item in value.items()}
    return value


def last(text: str, limit: int = KEEP) -> str:
    """The end of `text` that fits into `limit` bytes of UTF-8, cut at a character."""
    data = text.encode()
    return text if len(data) <= limit else data[-limit:].decode("utf-8", "ignore")


def log_form() -> logging.Formatter:
    """Time (UTC), level, logger and message."""
    form = logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    form.converter = time.gmtime
    return form


class Tail:
    """The last 64 KiB of an output and the number of all its bytes. For one thread at a time."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.total = 0

    def append(self, data: bytes) -> None:
        """More output. Memory stays bounded: 128 KiB and one piece."""
        self.total += len(data)
        self._data += data
        if len(self._data) > 2 * KEEP:
            del self._data[:-KEEP]

    def text(self, more: str = "") -> str:
        """What is kept, with `more` at its end, sanitised and at most 64 KiB."""
        if not (self._data or more):
            return ""
        data = bytes(self._data[-KEEP:])
        if self.total > len(data):  # do not begin in the middle of a character: it may lack up to 3 bytes
            data = data[:3].lstrip(_CONTINUATION) + data[3:]
        text = data.decode("utf-8", "replace")
        if more and text and not text.endswith("\n"):
            text += "\n"
        return last(clean(text + more))
