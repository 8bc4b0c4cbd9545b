"""Durations as people write them: `90s`, `15m`, `1h30m`, `30d`, `500ms`."""

from __future__ import annotations

import re

_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_SHAPE = re.compile(
    r"(?:(?P<d>[0-9]{1,9})d)?(?:(?P<h>[0-9]{1,9})h)?(?:(?P<m>[0-9]{1,9})m(?!s))?"
    r"(?:(?P<s>[0-9]{1,9})s)?(?:(?P<ms>[0-9]{1,9})ms)?"
)
_BARE = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_CLOCK = re.compile(r"[0-9]+:[0-9:.]+")
_WEEKS = re.compile(r"([0-9]{1,9})w")
_FORMS = "write whole numbers with units, the largest first: 500ms, 90s, 15m, 1h30m, 30d"
LONGEST = 3660 * 86400.0
"""Ten years and a little: nobody means more, and a slip of the unit stays visible."""


def parse_duration(text: str) -> float:
    """Seconds. Raises ValueError with a message for the person who wrote it (no unit, a colon, a sign, too long)."""
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    if _BARE.fullmatch(text):
        raise ValueError(f"{shown!r} has no unit: write {shown}s for seconds or {shown}m for minutes")
    if _CLOCK.fullmatch(text):
        # `1:30` is 90 seconds to some and 90 minutes to others, so nobody's reading is taken.
        raise ValueError(f"{shown!r} is not a duration: write 1h30m or 1m30s, not 1:30")
    if weeks := _WEEKS.fullmatch(text):
        raise ValueError(f"{shown!r} is not a duration: weeks are unknown, write {int(weeks[1]) * 7}d")
    found = _SHAPE.fullmatch(text)
    if found is None or not text:
        raise ValueError(f"{shown!r} is not a duration: {_FORMS}")
    seconds = sum(int(number) * _UNITS[unit] for unit, number in found.groupdict().items() if number)
    if seconds > LONGEST:
        raise ValueError(f"{shown!r} is longer than ten years")
    return round(seconds, 3)


def format_duration(seconds: float) -> str:
    """The shortest text that `parse_duration` reads as these seconds, to the millisecond: `1h30m`, `90ms`, `0s`."""
    left, parts = round(seconds * 1000), []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"
