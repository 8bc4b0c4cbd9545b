"""What every event is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A fact. `replica` is the name of the one that saw it."""

    replica: str
