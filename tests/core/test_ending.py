"""An Ending with its output: the same but for that."""

from __future__ import annotations

from dataclasses import fields, replace

from scheduler.core.model import Ending, Outcome


def test_all_else_stays() -> None:
    """Written out field by field, for speed: a field that is added later must not be forgotten there."""
    words = {field.name: f"the {field.name}" for field in fields(Ending)}
    full = Ending(**{**words, "outcome": Outcome.FAILED})  # type: ignore[arg-type]
    wanted = replace(full, output_tail="tail", output_bytes=7, cpu=0.5)
    assert full.with_output("tail", 7, 0.5) == wanted
