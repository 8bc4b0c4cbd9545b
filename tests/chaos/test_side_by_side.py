"""The judge of bodies side by side, on planted lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from replicas import Fleet
from side_by_side import side_by_side


def _body(attempt: int, *beats: float, ended: bool = True) -> list[str]:
    words = ["begin", *("beat" for _ in beats[1:-1]), "end" if ended else "beat"]
    return [f"{word} work key {attempt} {attempt}00 {at}" for word, at in zip(words, beats, strict=True)]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([*_body(1, 1.0, 1.5, 2.0), *_body(2, 2.1, 3.0)], 0),
        ([*_body(1, 1.0, 1.5, 2.2), *_body(2, 2.1, 3.0)], 1),
        ([*_body(1, 1.0, 2.0, ended=False), *_body(2, 2.1, 3.0)], 0),
        ([*_body(1, 1.0, 9.0, ended=False), *_body(2, 2.0, 3.0), *_body(3, 4.0, 5.0)], 2),
        ([*_body(2, 2.1, 3.0), *_body(1, 1.0, 2.0)], 0),
        (["append key 1 7", *_body(1, 1.0, 2.0), "begin other key 1 900 1.5"], 0),
    ],
    ids=["one after another", "a late last line", "killed in time", "a zombie beside two", "order", "another job's"],
)
def test_planted(tmp_path: Path, lines: list[str], found: int) -> None:
    nobody: Any = None
    fleet = Fleet(nobody, tmp_path, "")
    fleet.effects.write_text("".join(f"{line}\n" for line in lines))
    assert len(side_by_side(fleet)) == found
