"""Time zones from the pinned tzdata package, never from the host: replicas on different images must agree.

`zoneinfo.ZoneInfo(name)` would look at the host's files (and at PYTHONTZPATH) first; two replicas could then compute
two instants for one tick. So the package's own files are read, and its list of names decides what exists, exactly as
spelt: whether `europe/berlin` is found must not depend on a file system's case.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cache, lru_cache
from importlib import metadata, resources
from zoneinfo import ZoneInfo

FIRST_YEAR = 1900
LAST_YEAR = 2999
"""Ticks are looked for in these years only, so that no search can run without end."""

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_MIDNIGHT = time()
_STRIDE = timedelta(hours=12)
_NOT_ZONES = frozenset({"Factory", "localtime", "posixrules"})


def tzdata_version() -> str:
    """The version of the tzdata package, e.g. `2026.1`: what replicas compare."""
    return metadata.version("tzdata")


@cache
def _names() -> frozenset[str]:
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8")
    return frozenset(listed.split()) - _NOT_ZONES


@lru_cache(maxsize=1024)
def load_zone(name: str) -> ZoneInfo:
    """The zone of this exact IANA name. Raises ValueError that says what to write instead."""
    if name not in _names():
        raise ValueError(_no_such_zone(name))
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def _no_such_zone(name: str) -> str:
    shown = name if len(name) <= 60 else name[:60] + "…"
    if name.lower() in ("local", "localtime", "system"):
        return f"timezone {shown!r} differs from host to host: name a zone, e.g. Europe/London, or UTC"
    bare = name.strip().strip("'\"")
    if bare != name and bare in _names():
        return f"timezone {shown!r}: write it without the quotes or blanks inside the name: {bare}"
    guess = _closest(bare)
    hint = f' (did you mean "{guess}"?)' if guess else " (names are those of the IANA list, e.g. Europe/London)"
    return f"unknown timezone {shown!r}{hint}"


@cache
def _by_fold() -> dict[str, str]:
    return {known.casefold(): known for known in sorted(_names())}


def _closest(name: str) -> str | None:
    by_fold = _by_fold()
    wanted = name.casefold().replace(" ", "_")
    if wanted in by_fold:
        return by_fold[wanted]
    cities = [known for fold, known in by_fold.items() if fold.rpartition("/")[2] == wanted]
    if wanted and cities:
        return cities[0]
    near = difflib.get_close_matches(wanted[:60], by_fold, n=1, cutoff=0.75)
    return by_fold[near[0]] if near else None


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time in which a zone's offset stays the same. `start` (in) and `end` (out) are naive UTC.

    `jump`: how far the wall clock was moved at `start`; positive leaves a gap, negative repeats an hour, zero where a
    year merely begins.
    """

    start: datetime
    end: datetime
    offset: timedelta
    jump: timedelta


def spans(name: str, instant: datetime, *, reverse: bool = False) -> Iterator[Span]:
    """The zone's spans from the one that holds `instant` (naive UTC) onwards, or backwards with `reverse`."""
    years = range(instant.year, FIRST_YEAR - 1, -1) if reverse else range(instant.year, LAST_YEAR + 1)
    for year in years:
        of_year = _year_spans(name, year)
        for span in reversed(of_year) if reverse else of_year:
            if (span.start <= instant) if reverse else (instant < span.end):
                yield span


def day_begins(name: str, day: date) -> datetime:
    """The first instant (naive UTC) at which the zone shows this date or, where it is left out, a later one."""
    midnight = datetime.combine(day, _MIDNIGHT)
    for span in spans(name, midnight - 2 * _DAY):
        first = max(span.start, midnight - span.offset)
        if first < span.end:
            return first
    raise ValueError(f"{day} is not before the year {LAST_YEAR + 1}")


def local_day(name: str, instant: datetime) -> tuple[date, datetime, datetime]:
    """(date, begin, end): a stretch (in, out; naive UTC) around `instant` in which the zone shows one date.

    A change of the offset or of the UTC year may cut it short of the whole day.
    """
    span = next(spans(name, instant))
    day = (instant + span.offset).date()
    midnight = datetime.combine(day, _MIDNIGHT) - span.offset
    return day, max(span.start, midnight), min(span.end, midnight + _DAY)


@lru_cache(maxsize=8192)
def _year_spans(name: str, year: int) -> tuple[Span, ...]:
    """One UTC year, cut at every change of the offset.

    ZoneInfo does not tell its transitions, so the year is probed every 12 hours and each difference narrowed down to
    the second. (A zone that left its offset and came back to it within 12 hours would be missed; tzdata has none.)
    """
    zone = load_zone(name)
    start, end = datetime(year, 1, 1), datetime(year + 1, 1, 1)  # noqa: DTZ001 - naive UTC, as in all of this file
    cuts = [start]
    at, offset = start, _offset(zone, start)
    while at < end:
        upto = min(at + _STRIDE, end - _SECOND)
        while offset != (reached := _offset(zone, upto)):
            at = _change(zone, at, upto)
            cuts.append(at)
            offset = _offset(zone, at) if at < upto else reached
        at = upto if upto < end - _SECOND else end
    return tuple(
        Span(cut, later, _offset(zone, cut), _offset(zone, cut) - _offset(zone, cut - _SECOND))
        for cut, later in zip(cuts, [*cuts[1:], end], strict=True)
    )


def _change(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    """The first second in (low, high] whose offset is not low's."""
    before = _offset(zone, low)
    while high - low > _SECOND:
        middle = low + timedelta(seconds=(high - low) // _SECOND // 2)
        if _offset(zone, middle) == before:
            low = middle
        else:
            high = middle
    return high


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    offset = zone.fromutc(instant.replace(tzinfo=zone)).utcoffset()
    assert offset is not None
    return offset
