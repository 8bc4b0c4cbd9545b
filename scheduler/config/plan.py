"""What jobs.yaml says, read and checked: the jobs with every default filled in."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from scheduler.core.advice import advise
from scheduler.core.errors import Problem
from scheduler.core.model import JobSpec
from scheduler.core.retention import Retention


@dataclass(frozen=True, slots=True)
class Plan:
    """One content of the file.

    `content`: the file's text; `content_hash`: 16 hex digits of its bytes' SHA-256. `root`: the folder where callables
    are looked for, and where relative `{file: …}` paths begin. `name`: the file as messages show it. `places`: line and
    column of each entry by its dotted path.
    """

    version: int
    timezone: str
    jobs: tuple[JobSpec, ...]
    retention: Retention
    content_hash: str
    root: Path
    content: str
    name: str = "jobs.yaml"
    places: Mapping[str, tuple[int, int]] = field(default_factory=lambda: MappingProxyType({}), compare=False)

    def problem(self, path: str, message: str) -> Problem:
        """A problem at `path`, or at the nearest entry above it that the file has."""
        return Problem(self.name, *nearest_place(self.places, path), path, message)

    def advice(self, now: datetime) -> tuple[Problem, ...]:
        """What its writer may not expect of it at this time, in file order. Not errors, for all their type."""
        return in_file_order(self.problem(one.path, one.message) for one in advise(self.jobs, now, self.places))


@dataclass(frozen=True, slots=True)
class Called:
    """What a job's entry calls, whatever else is wrong with it. `args`: None where they are not known."""

    job: str
    call: str
    args: Mapping[str, Any] | None


def among(paths: list[str], path: str) -> bool:
    """Whether the path, or one below it, is among the sorted ones."""
    at, below = bisect_left(paths, path), bisect_left(paths, f"{path}.")
    return paths[at : at + 1] == [path] or (below < len(paths) and paths[below].startswith(f"{path}."))


def in_file_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Sorted by line and column; those of one place stay as they come."""
    return tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))


def nearest_place(places: Mapping[str, tuple[int, int]], path: str) -> tuple[int, int]:
    """Where `path` stands, or the nearest entry above it: something that is missing has no place of its own."""
    while path and path not in places:
        path = path.rpartition(".")[0]
    return places.get(path, (1, 1))
