"""The grammar of one crontab line, as crontab(5) and Debian's cron have it, in ASCII, five fields.

cronsim, which knows which days a line means, reads more than we promise (six fields, `L`, `#`) and a few things
otherwise (`5-5/2` steps on to the end). So every field is read here first, and cronsim is given plain lists of numbers.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from typing import NoReturn

from cronsim import CronSim

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_LONGEST = 1000
_LONGEST_MONTH_DAYS = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_PREFIX = re.compile(r"(?:CRON_)?TZ=", re.IGNORECASE)
_ITEM = re.compile(r"(?P<range>\*|[0-9a-z]+(?:-[0-9a-z]+)?)(?:/(?P<step>[0-9]{1,4}))?")
_HASHED = re.compile(r"h(?![a-z])")
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_STEP = re.compile(r"\*/([0-9]{1,2})")
_QUARTZ = re.compile(r"[0-9]*(?:l|w|lw)")


@dataclass(frozen=True, slots=True)
class Crontab:
    """A line that was read. `text`: its five fields, macros replaced; `plain`: the same for cronsim, numbers only.

    `fixed`: neither minute nor hour begins with `*`. Debian's cron moves such jobs out of a gap and runs them once in
    a repeated hour; the others follow the wall clock's own minutes. `minutes`: those of a day, ascending.
    """

    text: str
    plain: str
    fixed: bool
    minutes: tuple[int, ...]
    months: frozenset[int]
    _days: CronSim = field(repr=False, compare=False)

    def has_day(self, day: date) -> bool:
        """Whether the line ticks on this day of one of its months (day of month OR weekday; AND with a star)."""
        return self._days.match_day(day)


@dataclass(frozen=True, slots=True)
class Field:
    """One of the five: its values, and the words that stand for some of them."""

    name: str
    low: int
    high: int
    words: tuple[str, ...] = ()

    def values(self, text: str) -> list[int]:
        """Every value of the field, in the order written. Raises ValueError."""
        found: list[int] = []
        for item in text.lower().split(","):
            if not item:
                self.refuse(text, "a list has an empty item; take out the extra comma")
            found += self._item(text, item)
        return found

    def _item(self, text: str, item: str) -> list[int]:
        shape = _ITEM.fullmatch(item)
        if _HASHED.match(item):
            self.refuse(text, self._why_not_hashed(text))
        if shape is None:
            self.refuse(text, self._why_not(item))
        start, dash, end = shape["range"].partition("-")
        step = None if shape["step"] is None else int(shape["step"])
        if step == 0:
            self.refuse(text, "a step of 0 never moves")
        if start == "*":
            return list(range(self.low, self.high + 1, step or 1))
        first = self.number(text, start)
        if not dash and step is not None:
            self.refuse(text, f"a step needs a range: {first}-{self.high}/{step} or */{step}")
        last = self.number(text, end) if dash else first
        if last < first:
            self.refuse(
                text,
                f"the range {shape['range']} runs backwards and does not wrap; write {self._wrapped(start, end, step)}",
            )
        return list(range(first, last + 1, step or 1))

    def number(self, text: str, word: str) -> int:
        """The value of a number or a name (in lower case). Raises ValueError."""
        if word in self.words:
            return self.words.index(word) + self.low
        if not word.isdigit():
            self.refuse(text, self._unknown_word(word))
        number = int(word[:100])
        if len(word) > 4 or not self.low <= number <= self.high:
            shown = word if len(word) <= 20 else f"{word[:20]}…"
            if len(word) <= 100 and self.low <= number <= self.high:
                self.refuse(text, f"{shown} has too many leading zeros: write {number}")
            self.refuse(text, f"{shown} is not in {self.low}-{self.high}")
        return number

    def _unknown_word(self, word: str) -> str:
        if _QUARTZ.fullmatch(word):
            return "`L`, `W` and `#` are not in crontab"
        if not self.words:
            return f"{word!r} is not a number"
        short = word[:3] if word[:3] in self.words else None
        hint = f' (did you mean "{short}"?)' if short else f" (names are {', '.join(self.words)})"
        return f"{word!r} is neither a number nor a name{hint}"

    def _why_not(self, item: str) -> str:
        if "?" in item:
            return "`?` is not in crontab; write `*`"
        if "#" in item:
            return "`L`, `W` and `#` are not in crontab"
        if item.startswith("/"):
            return f"a step needs a range: *{item}"
        return f"{item!r} is not a number, a range a-b, `*`, or one of the last two with /step"

    def _why_not_hashed(self, text: str) -> str:
        """`H` is resolved before a line comes here; what is left of it is wrong."""
        if re.search(r"(?:^|,)h", text):
            return "`H` for a value made of the job's name is written in upper case"
        return "`H` is made of a job's name, and here is none"

    def _wrapped(self, start: str, end: str, step: int | None) -> str:
        """What the writer of a reversed range meant, as a list."""
        top = min(self.high, self.low + len(self.words) - 1) if self.words else self.high
        first, last = self.number(start, start), self.number(end, end)
        around = [*range(first, top + 1), *range(self.low, last + 1)][:: step or 1]
        if start in self.words:
            return ",".join(self.words[value - self.low].upper() for value in around)
        if step is None and len(around) > 7:
            head = f"{first}-{top}" if first < top else f"{first}"
            return f"{head},{self.low}-{last}" if last > self.low else f"{head},{self.low}"
        return ",".join(str(value) for value in around)

    def refuse(self, text: str, why: str) -> NoReturn:
        """Raise ValueError that says which field it is about."""
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        raise ValueError(f"{self.name} {shown!r}: {why if len(why) <= 300 else f'{why[:300]}…'}")


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
FIELDS = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day of month", 1, 31),
    Field("month", 1, 12, _MONTHS),
    Field("day of week", 0, 7, _DAYS),
)


@lru_cache(maxsize=8192)
def read_crontab(expression: str) -> Crontab:
    """Read one line. Raises ValueError whose message says which field is wrong and what to write instead."""
    parts = split_fields(expression)
    values = [part_of.values(part) for part_of, part in zip(FIELDS, parts, strict=True)]
    _refuse_never(parts, days=values[2], months=values[3])
    plain = " ".join(_plain(part, numbers) for part, numbers in zip(parts, values, strict=True))
    return Crontab(
        text=" ".join(parts),
        plain=plain,
        fixed=not parts[0].startswith("*") and not parts[1].startswith("*"),
        minutes=tuple(sorted({hour * 60 + minute for hour in values[1] for minute in values[0]})),
        months=frozenset(values[3]),
        _days=CronSim(plain, datetime(2000, 1, 1)),  # noqa: DTZ001 - only its days are asked, never its walk
    )


def split_fields(expression: str) -> list[str]:
    """The five fields, macros replaced. Raises ValueError."""
    text = expression.strip(" \t\r\n")
    if len(text) > _LONGEST:
        raise ValueError(f"the expression has {len(text)} characters; {_LONGEST} hold every list that there can be")
    odd = next((mark for mark in text if not (" " <= mark <= "~" or mark == "\t")), None)
    if odd is not None:
        raise ValueError(f"{odd!r} (U+{ord(odd):04X}) is not allowed: a cron expression is plain ASCII{_plainer(odd)}")
    if _PREFIX.match(text):
        raise ValueError("a zone inside the expression is not allowed: use the `timezone:` key")
    if text.startswith("@"):
        text = _macro(text)
    parts = text.split()
    if len(parts) == 5:
        return parts
    raise ValueError(_wrong_count(parts))


def _plainer(odd: str) -> str:
    """What to write for a character that a word processor or a web page put there."""
    plain = unicodedata.normalize("NFKC", odd)
    kind = unicodedata.category(odd)
    if kind == "Pd" or odd == "\u2212":
        return "; write -"
    if kind in ("Zs", "Zl", "Zp"):
        return "; write a space"
    if kind == "Nd":
        return f"; write {unicodedata.digit(odd)}"
    if kind == "Cf":
        return "; it is invisible, delete it"
    return f"; write {plain}" if len(plain) == 1 and "!" <= plain <= "~" else ""


def _wrong_count(parts: list[str]) -> str:
    if not parts:
        return "the expression is empty; write five fields, e.g. 0 3 * * * for 03:00 every day"
    why = f"expected 5 fields (minute hour day month weekday), got {len(parts)}"
    if len(parts) > 5:
        step = _STEP.fullmatch(parts[0])
        seconds = step[1] if step and 0 < int(step[1]) < 60 else "10"
        why += f"; there is no field for seconds or years (for seconds use `every:`, e.g. every: {seconds}s)"
    if len(parts) == 1 and (clock := _CLOCK.fullmatch(parts[0])):
        why += f"; for {parts[0]} every day write {int(clock[2])} {int(clock[1])} * * *"
    return why


def _macro(text: str) -> str:
    name = text.split(maxsplit=1)[0]
    if text in MACROS:
        return MACROS[text]
    if name == "@reboot":
        raise ValueError("@reboot has no meaning among replicas; use a schedule, or run the job by hand")
    if name == "@every":
        raise ValueError(
            f"@every is not a cron expression; use the `every:` key, e.g. every: {text[6:].strip() or '5m'}"
        )
    if text.lower() in MACROS:
        raise ValueError(f"{text}: write it in lower case, {text.lower()}")
    near = difflib.get_close_matches(text.lower()[:20], MACROS, n=1)
    hint = f'did you mean "{near[0]}"?' if near else "known are " + ", ".join(MACROS)
    raise ValueError(f"{text[:40]} is not known ({hint})")


def _refuse_never(parts: list[str], *, days: list[int], months: list[int]) -> None:
    """The day fields are ANDed when one of them begins with a star; only then can a date be impossible.

    29 February with a weekday is fine: over the years it falls on each of them.
    """
    either = not parts[2].startswith("*") and not parts[4].startswith("*")
    if not either and min(days) > max(_LONGEST_MONTH_DAYS[month] for month in months):
        raise ValueError(f"never fires: no month {parts[3]!r} has a day {min(days)}")


def _plain(part: str, values: list[int]) -> str:
    """Numbers for cronsim. It takes the AND of the day fields from a leading star, so that one must stay."""
    numbers = ",".join(str(value) for value in sorted(set(values)))
    if not part.startswith("*"):
        return numbers
    star = part.partition(",")[0]
    return star if part == star else f"{star},{numbers}"
