"""The shape of jobs.yaml as pydantic models: strict types, no unknown keys. `jobs_file` makes specs of them."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from scheduler.config.callables import CallInvalid, split_call
from scheduler.core.bounds import read_day_off, read_days_off
from scheduler.core.dst import DstGap, DstOverlap
from scheduler.core.duration import parse_duration
from scheduler.core.instants import read_from, read_instant, read_until
from scheduler.core.model import AfterCrash, FirstSight, Guard, Isolation, LostContact, MisfirePolicy, Overlap, Period
from scheduler.core.schedule import parse_at, parse_cron, parse_every
from scheduler.core.zones import load_zone

JOB_NAME = "[a-z0-9](?:[a-z0-9-]{0,50}[a-z0-9])?"
LONGEST_TEXT = 1000
"""Of what is parsed: zones, schedules, durations, words. A schedule of a million commas must not cost a minute."""

Word = TypeVar("Word", bound=StrEnum)


def _text(value: Any, example: str) -> str:
    """`value` if it is a text of sane length. Raises ValueError that shows how to write it."""
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise ValueError(f"is longer than {LONGEST_TEXT:,} characters")
    if isinstance(value, str):
        return value
    if value is None:
        raise ValueError(f"is empty; write e.g. {example}")
    shown = str(value).lower() if isinstance(value, bool) else str(value)[:40]
    raise ValueError(f"must be a text such as {example}, not {shown}")


def _duration(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f"{value} has no unit: write {value}s for seconds or {value}m for minutes")
    return parse_duration(_text(value, "90s, 15m or 1h30m"))


def _positive(value: Any) -> float:
    seconds = _duration(value)
    if seconds == 0:
        raise ValueError("must be longer than nothing")
    return seconds


def _limit(value: Any) -> float | None:
    """A timeout: a duration, or `none`. Blank is refused, for it may be a slip that takes the limit away."""
    return None if value == "none" else _positive(value)


def _word(kind: type[Word]) -> Callable[[Any], Word]:
    def choose(value: Any) -> Word:
        known = [word.value for word in kind]
        text = _text(value, " or ".join(known))
        if text in known:
            return kind(text)
        near = difflib.get_close_matches(text, known, n=1)
        hint = f' (did you mean "{near[0]}"?)' if near else ""
        raise ValueError(f"{text[:40]!r} is not allowed{hint}; allowed: {', '.join(known)}")

    return choose


def _zone(value: Any) -> str:
    text = _text(value, "Europe/London")
    load_zone(text)
    return text


def _checked(value: Any, example: str, parse: Callable[[str], object]) -> str:
    """The text itself, once `parse` took it: what it means may depend on the job's zone."""
    text = _text(value, example)
    parse(text)
    return text


def _cron(value: Any) -> str:
    return _checked(value, '"0 3 * * *"', lambda text: parse_cron(text, "UTC", name="any"))


def _every(value: Any) -> str:
    _positive(value)
    return _checked(value, "15m", parse_every)


def _at(value: Any) -> str:
    return _checked(value, "2026-11-29T03:00:00+00:00", lambda text: parse_at(text, "UTC"))


def _anchor(value: Any) -> str:
    return _checked(value, "2026-01-01T03:00:00+00:00", lambda text: read_instant(text, "UTC"))


def _from(value: Any) -> str:
    return _checked(value, "2026-01-01 or 2026-01-01T03:00:00+00:00", lambda text: read_from(text, "UTC"))


def _until(value: Any) -> str:
    return _checked(value, "2026-12-31 or 2026-12-31T18:00:00+00:00", lambda text: read_until(text, "UTC"))


def _day_off(value: Any) -> str:
    return _checked(value, "2026-12-25, or 12-25 for each year", read_day_off)


def _days_off(value: Any) -> Any:
    if isinstance(value, str | int):
        raise ValueError("must be a list of dates, e.g. [2026-12-25, 01-01]")
    return value


def _year_left(days: list[str]) -> list[str]:
    read_days_off(tuple(days))
    return days


def _call(value: Any) -> str:
    text = _text(value, "jobs.registry:build")
    try:
        split_call(text)
    except CallInvalid as error:
        raise ValueError(str(error)) from None
    return text


Duration = Annotated[float, BeforeValidator(_duration)]
PositiveDuration = Annotated[float, BeforeValidator(_positive)]
Zone = Annotated[str, BeforeValidator(_zone)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RetrySection(_Section):
    """`retry:`"""

    attempts: int = Field(default=1, ge=1, le=1000)
    backoff: Duration = 60.0
    max: Duration = 3600.0


class MisfireSection(_Section):
    """`misfire:`"""

    policy: Annotated[MisfirePolicy, BeforeValidator(_word(MisfirePolicy))] = MisfirePolicy.LATEST
    grace: Duration = 60.0
    within: PositiveDuration = 86400.0
    limit: int = Field(default=100, ge=1, le=10_000)
    first_sight: Annotated[FirstSight, BeforeValidator(_word(FirstSight))] = FirstSight.WAIT


class DstSection(_Section):
    """`dst:`"""

    gap: Annotated[DstGap, BeforeValidator(_word(DstGap))] = DstGap.SHIFT
    overlap: Annotated[DstOverlap, BeforeValidator(_word(DstOverlap))] = DstOverlap.FIRST


class RetentionSection(_Section):
    """`retention:`"""

    succeeded: PositiveDuration = 30 * 86400.0
    failed: PositiveDuration = 180 * 86400.0
    skipped: PositiveDuration = 7 * 86400.0


class DefaultsSection(_Section):
    """`defaults:` — what each job may leave out. `retry`, `misfire` and `dst` are merged key by key."""

    timeout: Annotated[float | None, BeforeValidator(_limit)] = None
    retry: RetrySection = RetrySection()
    overlap: Annotated[Overlap, BeforeValidator(_word(Overlap))] = Overlap.SKIP
    after_crash: Annotated[AfterCrash, BeforeValidator(_word(AfterCrash))] = AfterCrash.RERUN
    crash_limit: int = Field(default=3, ge=1, le=1000)
    misfire: MisfireSection = MisfireSection()
    dst: DstSection = DstSection()
    lost_contact: Annotated[LostContact, BeforeValidator(_word(LostContact))] = LostContact.STOP
    jitter: Duration = 0.0
    pause_after_failures: Annotated[int | None, Field(ge=1, le=1000)] = None
    isolation: Annotated[Isolation, BeforeValidator(_word(Isolation))] = Isolation.PROCESS
    owner: str = ""
    runbook: str = ""


class JobSection(DefaultsSection):
    """One entry of `jobs:`."""

    call: Annotated[str, BeforeValidator(_call)]
    args: dict[str, Any] = Field(default_factory=dict)
    description: str = ""
    schedule: Annotated[str | None, BeforeValidator(_cron)] = None
    every: Annotated[str | None, BeforeValidator(_every)] = None
    at: Annotated[str | None, BeforeValidator(_at)] = None
    anchor: Annotated[str | None, BeforeValidator(_anchor)] = None
    from_: Annotated[str | None, BeforeValidator(_from)] = Field(default=None, alias="from")
    until: Annotated[str | None, BeforeValidator(_until)] = None
    except_: Annotated[
        list[Annotated[str, BeforeValidator(_day_off)]], BeforeValidator(_days_off), AfterValidator(_year_left)
    ] = Field(default_factory=list, alias="except")
    timezone: Annotated[str | None, BeforeValidator(_zone)] = None
    once_per: Annotated[Period | None, BeforeValidator(_word(Period))] = None
    guard: Annotated[Guard, BeforeValidator(_word(Guard))] = Guard.RUN_ROW


def _version(value: Any) -> Any:
    if value != 1 or isinstance(value, bool | float):
        raise ValueError("must be 1, the one version there is")
    return value


class FileSection(_Section):
    """The whole file; each job is read by itself, so that one bad job hides no other's problems."""

    version: Annotated[Literal[1], BeforeValidator(_version)]
    timezone: Zone = "UTC"
    defaults: DefaultsSection = DefaultsSection()
    retention: RetentionSection = RetentionSection()
    jobs: dict[str, Any]
