"""What a crontab line does that its writer may not expect. Sentences; the line itself is valid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scheduler.core.crontab import read_crontab

_LONG_MONTHS = {31: (1, 3, 5, 7, 8, 10, 12), 30: (1, *range(3, 13)), 29: tuple(range(1, 13))}
_MONTHS: tuple[str, ...] = ("January", "February", "March", "April", "May", "June", "July", "August", "September")
_MONTHS += ("October", "November", "December")
_UNITS = (("minute", 60, "m", "hour"), ("hour", 24, "h", "day"))


def about_line(expression: str) -> Iterator[str]:
    """Steps that do not divide, the OR rule, days that some months lack."""
    minute, hour, day, _, weekday = expression.split()
    for text, (name, size, unit, whole) in zip((minute, hour), _UNITS, strict=True):
        yield from _steps(text, name, size, unit, whole)
    if not day.startswith("*") and not weekday.startswith("*"):
        yield (
            f"both day fields are set, and crontab takes either: it fires on day of month {day} and also on each day "
            f"of week {weekday}; write * in one of them to mean the other"
        )
    elif weekday.startswith("*"):
        yield from _missing_days(day, read_crontab(expression).months)


def _steps(text: str, name: str, size: int, unit: str, whole: str) -> Iterator[str]:
    for item in text.split(","):
        range_, _, step = item.partition("/")
        if range_ not in ("*", f"0-{size - 1}") or not step or size % int(step) == 0:
            continue
        values = range(0, size, int(step))
        at = f"{name}{'s' if len(values) > 1 else ''} {_listed([str(value) for value in values])}"
        yield (
            f"{name} {item} begins anew each {whole}: it fires at {at}; "
            f"for one tick each {step} {name}s write every: {step}{unit}"
        )


def _missing_days(text: str, months: frozenset[int]) -> Iterator[str]:
    """Days that are named one by one; a range such as 25-31 means what the month has."""
    for item in text.split(","):
        if not item.isdigit() or int(item) not in _LONG_MONTHS:
            continue
        day = int(item)
        if day == 29 and months == {2}:
            yield "29 February comes in leap years only"
        elif day == 29 and 2 in months:
            yield "February has a day 29 in leap years only"
        elif lacking := [_MONTHS[month - 1] for month in sorted(months) if month not in _LONG_MONTHS[day]]:
            yield f"there is no day {day} in {_listed(lacking)}: it does not fire then (day 28 is in every month)"


def _listed(words: Sequence[str]) -> str:
    if len(words) > 12:
        words = [*words[:11], "…"]
        return ", ".join(words)
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
