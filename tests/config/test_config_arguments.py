"""Args against signatures: names, strict types, references, and the conversion for the call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pydantic import BaseModel

from scheduler.config.callables import CallInvalid, bind_args, check_args

if TYPE_CHECKING:
    from somewhere import Unknown

    from scheduler import RunContext


class Colour(Enum):
    RED = "red"


class Plain:
    """No type that pydantic knows."""


@dataclass
class Window:
    start: date
    days: int = 1


class Model(BaseModel):
    name: str


def build(
    ctx: RunContext,
    directory: Path,
    count: int = 1,
    day: date | None = None,
    *,
    mode: Literal["fast", "slow"] = "fast",
    wait: timedelta = timedelta(seconds=1),
    names: list[str] | None = None,
    ratio: float = 1.0,
    dry: bool = False,
    pair: tuple[int, int] = (1, 2),
    colour: Colour = Colour.RED,
    window: Window | None = None,
    model: Model | None = None,
    plain: Plain | None = None,
    unknown: Unknown | None = None,
    at: datetime | None = None,
    table: dict[str, int] | None = None,
    free=None,  # type: ignore[no-untyped-def]
) -> None:
    """A job."""


def test_values_are_converted_to_the_annotated_types() -> None:
    bound = bind_args(
        build,
        {
            "directory": "var/x",
            "count": 3,
            "day": "2026-11-29",
            "mode": "slow",
            "wait": "1h30m",
            "names": ["a"],
            "ratio": 2,
            "pair": [3, 4],
            "colour": "red",
            "window": {"start": "2026-11-29"},
            "model": {"name": "n"},
            "at": "2026-11-29T03:00:00+00:00",
            "table": {"a": 1},
            "free": [1, {"a": None}],
            "plain": 5,
            "unknown": "x",
        },
    )
    assert bound == {
        "directory": Path("var/x"),
        "count": 3,
        "day": date(2026, 11, 29),
        "mode": "slow",
        "wait": timedelta(minutes=90),
        "names": ["a"],
        "ratio": 2.0,
        "pair": (3, 4),
        "colour": Colour.RED,
        "window": Window(date(2026, 11, 29), 1),
        "model": Model(name="n"),
        "at": datetime.fromisoformat("2026-11-29T03:00:00+00:00"),
        "table": {"a": 1},
        "free": [1, {"a": None}],
        "plain": 5,
        "unknown": "x",
    }


WRONG = [
    ({}, "directory: missing"),
    ({"directry": "x"}, 'directry: unknown argument (did you mean "directory"?)'),
    ({"directory": "x", "zzz": 1}, "zzz: unknown argument (the function takes: directory, count, "),
    ({"directory": "x", "ctx": 1}, "ctx: unknown argument"),
    ({"directory": 5}, "directory: "),
    ({"directory": "x", "count": "5"}, "count: input should be a valid integer"),
    ({"directory": "x", "count": True}, "count: input should be a valid integer"),
    ({"directory": "x", "count": 1.5}, "count: "),
    ({"directory": "x", "count": None}, "count: input should be a valid integer"),
    ({"directory": "x", "dry": 1}, "dry: input should be a valid boolean"),
    ({"directory": "x", "dry": "yes"}, "dry: input should be a valid boolean"),
    ({"directory": "x", "ratio": "1.0"}, "ratio: input should be a valid number"),
    ({"directory": "x", "day": "tomorrow"}, "day: input should be a valid date"),
    ({"directory": "x", "mode": "quick"}, "mode: input should be 'fast' or 'slow'"),
    ({"directory": "x", "wait": "15"}, "wait: not a duration such as 90s"),
    ({"directory": "x", "names": ["a", 1]}, "names: 1: input should be a valid string"),
    ({"directory": "x", "names": "a"}, "names: input should be a valid array"),
    ({"directory": "x", "pair": [1]}, "pair: 1: field required"),
    ({"directory": "x", "window": {"days": 1}}, "window: start: field required"),
    ({"directory": "x", "table": {"a": "1"}}, "table: a: input should be a valid integer"),
]


@pytest.mark.parametrize(("args", "said"), WRONG)
def test_what_does_not_fit_is_named(args: dict[str, Any], said: str) -> None:
    found = check_args(build, args)
    assert any(problem.startswith(said) for problem in found), found
    with pytest.raises(CallInvalid, match=r"^args\."):
        bind_args(build, args)


def test_all_of_it_at_once() -> None:
    assert len(check_args(build, {"directry": "x", "count": "5", "mode": "q"})) == 4


REFERENCE = {"env": "NAME"}


@pytest.mark.parametrize("name", ["directory", "day", "mode", "colour", "free", "plain", "at"])
def test_a_reference_counts_as_text(name: str) -> None:
    assert check_args(build, {"directory": "x", name: REFERENCE}) == []


ALMOST = [{"env": "A", "file": "B"}, {"envv": "A"}, {"File": "/run/x"}, {"env": 5}, {"files": "x"}]


@pytest.mark.parametrize("value", ALMOST)
def test_what_looks_like_a_reference_is_told_how_to_be_one(value: Any) -> None:
    (problem,) = check_args(build, {"directory": value})
    assert problem.endswith("; a reference is {env: NAME} or {file: PATH}")


@pytest.mark.parametrize("value", [{"name": "x"}, {}, {"env": "A", "file": "B", "x": "y"}, 5])
def test_what_does_not_is_not(value: Any) -> None:
    assert "reference" not in check_args(build, {"directory": value})[0]


def test_a_reference_inside_a_list_counts_as_text() -> None:
    assert check_args(build, {"directory": "x", "names": ["a", {"file": "/run/x"}]}) == []


@pytest.mark.parametrize("name", ["count", "dry", "names", "ratio", "pair", "table"])
def test_a_reference_cannot_be_a_number_or_a_list(name: str) -> None:
    assert len(check_args(build, {"directory": "x", name: REFERENCE})) == 1


def no_context() -> None: ...


def only_keyword(*, ctx: object) -> None: ...


def positional_only(ctx: object, directory: str, /) -> None: ...


def anything(ctx: object, **rest: Any) -> None: ...


def stars(*everything: object) -> None: ...


async def coroutine(ctx: object, n: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (no_context, "must take the RunContext as its first parameter"),
        (only_keyword, "must take the RunContext as its first parameter"),
        (positional_only, "'directory' cannot be given by name"),
        (dict.fromkeys, ""),
    ],
)
def test_functions_that_cannot_be_jobs(function: Callable[..., Any], said: str) -> None:
    (problem,) = check_args(function, {}) or [""]
    assert said in problem


def generator(ctx: Any) -> Any:
    yield 1


async def stream(ctx: Any) -> Any:
    yield 1


class Called:
    def __call__(self, ctx: Any) -> Any:
        yield 1


@pytest.mark.parametrize("function", [generator, stream, Called(), Called().__call__, functools.partial(generator)])
def test_a_generator_is_no_job(function: Callable[..., Any]) -> None:
    """It would fail at every run, with a complaint about its result."""
    (problem,) = check_args(function, {})
    assert problem == "the function is a generator (it has a yield), so a call runs none of it: return instead"


def test_what_wraps_a_generator_may_run_it() -> None:
    @functools.wraps(generator)
    def runs(*args: Any) -> None:
        list(generator(*args))

    assert check_args(runs, {}) == []


def test_other_kinds_of_functions() -> None:
    assert bind_args(anything, {"x": {"y": 1}}) == {"x": {"y": 1}}
    assert bind_args(stars, {}) == {}
    assert bind_args(coroutine, {"n": 1}) == {"n": 1}
    assert bind_args(functools.partial(build, count=5), {"directory": "x"}) == {"directory": Path("x")}


def test_a_decorated_function_keeps_its_types() -> None:
    @functools.wraps(build)
    def wrapped(*args: Any, **kwargs: Any) -> None: ...

    assert bind_args(wrapped, {"directory": "x"}) == {"directory": Path("x")}


def test_no_value_is_quoted() -> None:
    with pytest.raises(CallInvalid) as caught:
        bind_args(build, {"directory": "x", "count": "hunter2", "wait": "hunter2", "mode": "hunter2", "day": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_what_json_cannot_hold_is_refused() -> None:
    assert check_args(build, {"directory": "x", "free": {1, 2}}) == ["free: not a value that JSON can hold"]
