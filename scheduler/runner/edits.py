"""An edit of the jobs file under a running replica: what it is, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.config.effective import effective_entry
from scheduler.core.diff import changed_keys
from scheduler.core.duration import format_duration
from scheduler.core.events import JobEdited, PlanReloaded
from scheduler.core.model import JobSpec
from scheduler.core.words import NoTick
from scheduler.runner.plan import PlanInForce
from scheduler.runner.room import Room
from scheduler.store.apply import Applied

TOLD = 50  # jobs that are told of one by one
LONGEST = 80  # letters of a value that are told


@dataclass(frozen=True, slots=True)
class Edited:
    """Another content of the file, sound. `content`: its text; `config_hash`: of its bytes; `retention`: as stored."""

    file: str
    content: str
    config_hash: str
    jobs: tuple[JobSpec, ...]
    retention: dict[str, float]


@dataclass(frozen=True, slots=True)
class Former:
    """What the content before had: its jobs by name, and its `retention` as stored."""

    jobs: Mapping[str, JobSpec]
    retention: Mapping[str, float]


def say_edit(room: Room, plan: PlanInForce, edit: Edited, former: Former, applied: Applied) -> None:
    """One event for the edit, with the file's own keys that differ, and one for each job that it concerns."""
    events = _edits(room, plan, edit, former.jobs)
    room.bus.publish(
        PlanReloaded(
            replica=room.owner.name,
            file=edit.file,
            config_hash=edit.config_hash,
            generation=applied.generation,
            in_force=applied.in_force,
            differing=len(events),
            what=_retention(former.retention, edit.retention),
        )
    )
    for event in events[:TOLD]:
        room.bus.publish(event)


def _edits(room: Room, plan: PlanInForce, edit: Edited, before: Mapping[str, JobSpec]) -> list[JobEdited]:
    after = {spec.name: spec for spec in edit.jobs}
    planned = {job.spec.name: job for job in plan.jobs().values()}
    events = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        what = _differences(old, new) if old is not None and new is not None else ()
        change = "removed" if new is None else "added" if old is None else "changed"
        next_tick, no_tick = None, NoTick.ABSENT if new is not None else None
        if name in planned:
            next_tick, no_tick = planned[name].next, planned[name].no_tick
        facts = {"job": name, "change": change, "what": what, "next_tick": next_tick, "no_tick": no_tick}
        events.append(JobEdited(replica=room.owner.name, **facts))  # type: ignore[arg-type]
    return events


def _retention(old: Mapping[str, float], new: Mapping[str, float]) -> tuple[str, ...]:
    """How long history is kept: no job's key, and a shorter time deletes some."""
    said = []
    for change in changed_keys(old, new):
        text = f"retention.{change.key}: {format_duration(change.old)} → {format_duration(change.new)}"
        said.append(f"{text}, and what is older goes with the next purge" if change.new < change.old else text)
    return tuple(said)


def _differences(old: JobSpec, new: JobSpec) -> tuple[str, ...]:
    """`key: old → new` in the words of the file."""
    changes = changed_keys(effective_entry(old), effective_entry(new))
    return tuple(f"{change.key}: {_shown(change.old)} → {_shown(change.new)}" for change in changes)


def _shown(value: object) -> str:
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
