"""An edit of the jobs file under a running replica: what it is, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.config.effective import effective_entry
from scheduler.core.diff import changed_keys
from scheduler.core.events import JobEdited, PlanReloaded
from scheduler.core.model import JobSpec
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


def say_edit(room: Room, plan: PlanInForce, edit: Edited, before: Mapping[str, JobSpec], applied: Applied) -> None:
    """One event for the edit, and one for each job that it concerns. `before`: the jobs of the former content."""
    after = {spec.name: spec for spec in edit.jobs}
    planned = {job.spec.name: job for job in plan.jobs().values()}
    events = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        what = _differences(old, new) if old is not None and new is not None else ()
        change = "removed" if new is None else "added" if old is None else "changed"
        next_tick = planned[name].next if name in planned else None
        events.append(
            JobEdited(replica=room.owner.name, job=name, change=change, what=what, next_tick=next_tick)  # type: ignore[arg-type]
        )
    room.bus.publish(
        PlanReloaded(
            replica=room.owner.name,
            file=edit.file,
            config_hash=edit.config_hash,
            generation=applied.generation,
            in_force=applied.in_force,
            differing=len(events),
        )
    )
    for event in events[:TOLD]:
        room.bus.publish(event)


def _differences(old: JobSpec, new: JobSpec) -> tuple[str, ...]:
    """`key: old → new` in the words of the file."""
    changes = changed_keys(effective_entry(old), effective_entry(new))
    return tuple(f"{change.key}: {_shown(change.old)} → {_shown(change.new)}" for change in changes)


def _shown(value: object) -> str:
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
