"""Columns written by hand arrive as they were."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from uuid import UUID

from scene import Scene

from scheduler.core.model import Status
from scheduler.store.arrays import instants, plain, texts

HARD = [
    "",
    "NULL",
    "null",
    " a ",
    "a,b",
    "{x}",
    '"',
    "\\",
    '\\"',
    "\\\\",
    "'",
    "a\nb\t",
    "ü€😀",
    "$1 %s",
    "()",
    "\x01\x7f",
]
ALPHABET = "aN\"\\{},' \n\t$%ü€😀\x01\x7f"


def test_texts_arrive_as_they_were(scene: Scene) -> None:
    for column in ([], [None], HARD, [None, *HARD, None]):
        assert scene.sql("SELECT %s::text[] AS found", texts(column)) == [{"found": column}]

    chance = random.Random(7)
    columns = [["".join(chance.choices(ALPHABET, k=chance.randrange(9))) for _ in range(40)] for _ in range(25)]
    for column in columns:
        assert scene.sql("SELECT %s::text[] AS found", texts(column)) == [{"found": column}]


def test_plain_values_arrive_as_they_were(scene: Scene) -> None:
    ids = [UUID(int=7), None, UUID(int=2**128 - 1)]
    floats = [0.1, -1e-300, None, 1e300, float("inf"), 3]
    (found,) = scene.sql(
        "SELECT %s::int[] AS a, %s::uuid[] AS b, %s::float8[] AS c, %s::boolean[] AS d, %s::text[] AS e",
        *map(plain, ([-1, None, 2**31 - 1], ids, floats, [True, None, False], [Status.TIMED_OUT, None])),
    )
    assert list(found.values()) == [[-1, None, 2**31 - 1], ids, floats, [True, None, False], ["timed_out", None]]


def test_instants_arrive_to_the_microsecond(scene: Scene) -> None:
    column = [datetime(2026, 11, 29, 3, 0, 0, 123456, tzinfo=UTC), datetime(1999, 12, 31, tzinfo=UTC)]
    column.append(column[0] + timedelta(microseconds=1))
    assert scene.sql("SELECT %s::timestamptz[] AS found", instants(column)) == [{"found": column}]
