"""Sentences about the jobs file: its edits, and what the database made of them."""

from __future__ import annotations

import logging

from scheduler.core.events import (
    FileInForce,
    FileSuperseded,
    JobEdited,
    JobSick,
    PlanChanged,
    PlanDelayed,
    PlanRefused,
    PlanReloaded,
    PlanRestored,
    PlanUnread,
    ZoneDataDiffers,
)
from scheduler.core.redaction import cut
from scheduler.edges.words.wording import LONGEST_ERROR, Said, coming, count, say, seconds

_LONGEST_PROBLEMS = 1500


@say.register
def _plan_changed(event: PlanChanged) -> Said:
    groups = {"added": event.added, "changed": event.changed, "removed": event.removed}
    parts = [f"{word} {', '.join(names)}" for word, names in groups.items() if names]
    return Said(logging.INFO, f"jobs {'; '.join(parts)}" if parts else "jobs: nothing changed")


@say.register
def _plan_reloaded(event: PlanReloaded) -> Said:
    what = f"{count(event.differing, 'job')} concerned" if event.differing else "no job differs"
    text = f"{event.file} was edited: {'; '.join([*event.what, what])}; generation {event.generation}"
    if not event.in_force:
        return Said(logging.WARNING, f"{text} is not the newest one: this replica stands back where the two differ")
    return Said(logging.INFO, f"{text} is in force")


@say.register
def _job_edited(event: JobEdited) -> Said:
    text = f"{event.change}: {'; '.join(event.what)}" if event.what else str(event.change)
    if event.change == "removed":
        return Said(logging.INFO, f"{text}; it ticks no more, a run that is active goes on")
    return Said(logging.INFO, f"{text}; {coming(event.next_tick, event.no_tick)}")


@say.register
def _job_sick(event: JobSick) -> Said:
    error = cut(event.error, LONGEST_ERROR)
    return Said(logging.ERROR, f"nobody can say when it ticks ({error}): it stands still here, the others tick on")


@say.register
def _plan_refused(event: PlanRefused) -> Said:
    number = count(len(event.problems), "problem")
    text = f"{event.file} was edited and is not taken, the former plan goes on: {number}: {'; '.join(event.problems)}"
    return Said(logging.ERROR, cut(text, _LONGEST_PROBLEMS))


@say.register
def _plan_delayed(event: PlanDelayed) -> Said:
    error = cut(event.error, LONGEST_ERROR)
    text = f"{event.file} was edited and is in order, but cannot be put in force yet ({error}): it is tried on and on"
    return Said(logging.WARNING, text)


@say.register
def _plan_unread(event: PlanUnread) -> Said:
    text = (
        f"{event.file}: a look at it has lasted {seconds(event.after)} so far: its disk does not answer, or a module "
        "that it names does not finish its import; the former plan goes on, and no edit is seen until the look ends"
    )
    return Said(logging.WARNING, text)


@say.register
def _plan_restored(event: PlanRestored) -> Said:
    return Said(logging.INFO, f"{event.file} is again what this replica works by")


@say.register
def _file_superseded(event: FileSuperseded) -> Said:
    """INFO: each roll-out has it."""
    what = f"a newer jobs file is in force, generation {event.newest}; this replica's is generation {event.generation}"
    return Said(logging.INFO, f"{what}: it runs only the jobs that both files have alike")


@say.register
def _file_in_force(event: FileInForce) -> Said:
    return Said(logging.INFO, f"this replica's jobs file is in force again, generation {event.generation}")


@say.register
def _zone_data_differs(event: ZoneDataDiffers) -> Said:
    others = ", ".join(event.others)
    text = f"zone data {event.mine} here, {others} elsewhere: where they differ, a tick runs when the first sees it"
    return Said(logging.WARNING, text)
