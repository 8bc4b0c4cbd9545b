"""What really happened, checked against what was promised. Pure: values in, findings out; no clock, file or database.

The evidence comes from four sides that cannot lie for each other: the bodies' own traces (on the machine's one
monotonic clock), the journals of the replicas, the rows in the end, and the ticks that a calendar would expect.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from chaos.evidence import Attempt, Body, Entry, History, Rules, Run

TERMINAL = frozenset({"succeeded", "failed", "timed_out", "cancelled", "lost", "skipped"})


class Breach(StrEnum):
    """What may be found."""

    TWO_EFFECTIVE = "two effective runs of one tick"
    LOST_TICK = "a tick without a row"
    STRAY_TICK = "a row for no tick of the schedule"
    DOUBLE_TICK = "two rows for one tick"
    UNENDED = "a run that never ended"
    UNSAID = "skipped, and nobody says why"
    OVERLAP = "two bodies side by side"
    FENCE = "attempts that do not rise by one"
    BEGUN_TWICE = "one attempt begun twice"
    ENDED_TWICE = "one attempt ended twice"
    BEGUN_AGAIN = "begun again, though a person was to decide"
    CHANGED = "a terminal state that changed"
    REFUSED_AND_KEPT = "a result refused to its owner, and kept"
    NO_EFFECT = "succeeded without its effect"
    COUNTERS = "counters that do not equal the history"
    STRANGER = "a trace of a run that has no row"


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken promise; `about`: which run, tick or replica."""

    breach: Breach
    about: str
    detail: str = ""


def check(history: History) -> list[Finding]:
    """All broken promises; none: []."""
    found = [*_ticks(history), *_rows(history), *_strangers(history), *_overlaps(history), *_counters(history)]
    for trail in _trails(history):
        for rule in (_effective, _attempts, _endings, _beginnings, _effects, _crashes):
            found.extend(rule(trail))
    return found


@dataclass(frozen=True, slots=True)
class Trail:
    """All that is known of one run. `effects`: rows of its transactions by attempt."""

    run: Run
    rules: Rules
    attempts: Sequence[Attempt]
    entries: Sequence[Entry]
    bodies: Sequence[Body]
    effects: Counter[int]

    def finding(self, breach: Breach, detail: object = "") -> Finding:
        return Finding(breach, f"{self.run.job} {self.run.run_key}", str(detail))

    def said(self, *events: str) -> Iterator[Entry]:
        return (entry for entry in self.entries if entry.event in events)


def _trails(history: History) -> Iterator[Trail]:
    attempts: dict[str, list[Attempt]] = defaultdict(list)
    entries: dict[str, list[Entry]] = defaultdict(list)
    bodies: dict[tuple[str, str], list[Body]] = defaultdict(list)
    effects: dict[str, Counter[int]] = defaultdict(Counter)
    for attempt in history.attempts:
        attempts[attempt.run].append(attempt)
    for entry in history.journal:
        entries[entry.run].append(entry)
    for body in history.bodies:
        bodies[body.job, body.run_key].append(body)
    for run_id, number in history.effects:
        effects[run_id][number] += 1
    for run in history.runs:
        mine = bodies[run.job, run.run_key]
        yield Trail(run, history.rules[run.job], attempts[run.id], entries[run.id], mine, effects[run.id])


def _ticks(history: History) -> Iterator[Finding]:
    """Each expected tick has a row, and one only; a row with a number stands for so many ticks up to its own."""
    for job, ticks in history.expected.items():
        place = {tick: index for index, tick in enumerate(sorted(ticks))}
        covered: Counter[int] = Counter()
        for run in history.runs:
            if run.job != job:
                continue
            if run.scheduled_at not in place:
                yield Finding(Breach.STRAY_TICK, f"{job} {run.run_key}", str(run.scheduled_at))
                continue
            last = place[run.scheduled_at]
            covered.update(range(max(0, last - run.missed + 1), last + 1))
        for tick, index in place.items():
            if not covered[index]:
                yield Finding(Breach.LOST_TICK, f"{job} {tick.isoformat()}")
            elif covered[index] > 1:
                yield Finding(Breach.DOUBLE_TICK, f"{job} {tick.isoformat()}", f"{covered[index]} rows")


def _rows(history: History) -> Iterator[Finding]:
    keys = Counter((run.job, run.run_key) for run in history.runs)
    for (job, key), times in keys.items():
        if times > 1:
            yield Finding(Breach.DOUBLE_TICK, f"{job} {key}", f"{times} rows")
    for run in history.runs:
        if run.status not in TERMINAL:
            yield Finding(Breach.UNENDED, f"{run.job} {run.run_key}", run.status)
        if run.status == "skipped" and not run.skip_reason:
            yield Finding(Breach.UNSAID, f"{run.job} {run.run_key}")


def _strangers(history: History) -> Iterator[Finding]:
    runs = {run.id for run in history.runs}
    keys = {(run.job, run.run_key) for run in history.runs}
    for job, key in sorted({(body.job, body.run_key) for body in history.bodies} - keys):
        yield Finding(Breach.STRANGER, f"{job} {key}", "a body")
    sides = {
        "an attempt": {attempt.run for attempt in history.attempts},
        "an event": {entry.run for entry in history.journal},
        "an effect": {run_id for run_id, _ in history.effects},
    }
    for what, named in sides.items():
        for run_id in sorted(named - runs):
            yield Finding(Breach.STRANGER, run_id, what)


def _overlaps(history: History) -> Iterator[Finding]:
    """Where bodies are stopped in time: no sign of life of one after the next of its run, or exclusive job, began."""
    rows: dict[tuple[str, ...], list[Body]] = defaultdict(list)
    for body in history.bodies:
        rules = history.rules[body.job]
        if rules.stopped:
            rows[(body.job,) if rules.exclusive else (body.job, body.run_key)].append(body)
    for bodies in rows.values():
        bodies.sort(key=lambda body: body.begun)
        latest = bodies[0]
        for body in bodies[1:]:
            if body.begun <= latest.last:
                both = f"{latest.run_key} attempt {latest.attempt} until {latest.last:.3f}, then {body.begun:.3f}"
                yield Finding(Breach.OVERLAP, f"{body.job} {body.run_key} attempt {body.attempt}", both)
            latest = max(latest, body, key=lambda body: body.last)


def _effective(trail: Trail) -> Iterator[Finding]:
    """An attempt is effective when its success was accepted: recorded, acknowledged, or committed with its effect."""
    numbers = {attempt.number for attempt in trail.attempts if attempt.outcome == "succeeded"}
    numbers |= {entry.attempt for entry in trail.said("AttemptEnded") if entry.outcome == "succeeded"}
    numbers |= set(trail.effects)
    if len(numbers) > 1 or trail.effects.total() > 1:
        yield trail.finding(
            Breach.TWO_EFFECTIVE, f"attempts {sorted(numbers)}, {trail.effects.total()} committed effects"
        )
    for entry in trail.said("WriteFenced"):
        if entry.outcome == "succeeded" and entry.attempt in numbers:
            yield trail.finding(Breach.REFUSED_AND_KEPT, f"attempt {entry.attempt} of {entry.replica}")


def _attempts(trail: Trail) -> Iterator[Finding]:
    numbers = sorted(attempt.number for attempt in trail.attempts)
    if numbers != list(range(1, trail.run.attempt + 1)):
        yield trail.finding(Breach.FENCE, f"recorded {numbers}, the row says {trail.run.attempt}")
    seen = {entry.attempt for entry in trail.said("AttemptStarted", "AttemptEnded")}
    beyond = {number for number in seen | {body.attempt for body in trail.bodies} if number > trail.run.attempt}
    if beyond:
        yield trail.finding(Breach.FENCE, f"attempts {sorted(beyond)}, the row says {trail.run.attempt}")


def _endings(trail: Trail) -> Iterator[Finding]:
    ends = Counter(entry.attempt for entry in trail.said("AttemptEnded", "RunTakenOver"))
    for number, times in ends.items():
        if times > 1:
            yield trail.finding(Breach.ENDED_TWICE, f"attempt {number}")
    last = {entry.status for entry in trail.said("AttemptEnded", "RunTakenOver") if entry.status in TERMINAL}
    if last and last != {trail.run.status}:
        yield trail.finding(Breach.CHANGED, f"said {sorted(map(str, last))}, is {trail.run.status}")


def _beginnings(trail: Trail) -> Iterator[Finding]:
    begun = Counter(body.attempt for body in trail.bodies)
    started = Counter(entry.attempt for entry in trail.said("AttemptStarted"))
    for number in sorted(begun | started):
        if max(begun[number], started[number]) > 1:
            yield trail.finding(Breach.BEGUN_TWICE, f"attempt {number}")
    if trail.rules.at_most_once and len(trail.bodies) > 1:
        yield trail.finding(Breach.BEGUN_AGAIN, f"{len(trail.bodies)} bodies")


def _effects(trail: Trail) -> Iterator[Finding]:
    """Success and effect go together: both ways with a transaction, one way without."""
    right = {attempt.number for attempt in trail.attempts if attempt.outcome == "succeeded"}
    if trail.rules.transactional:
        if set(trail.effects) != right:
            yield trail.finding(Breach.NO_EFFECT, f"succeeded {sorted(right)}, committed {sorted(trail.effects)}")
    elif right - {body.attempt for body in trail.bodies if body.finished}:
        yield trail.finding(Breach.NO_EFFECT, f"attempt {sorted(right)}")
    if (trail.run.status == "succeeded") != bool(right):
        yield trail.finding(Breach.NO_EFFECT, f"{trail.run.status}, and attempts {sorted(right)} succeeded")


def _crashes(trail: Trail) -> Iterator[Finding]:
    """A lost lease is a crash where another wrote it, and none where its owner did; the history does not say which."""
    outcomes = Counter(attempt.outcome for attempt in trail.attempts)
    least, most = outcomes["crashed"], outcomes["crashed"] + outcomes["lease_lost"]
    if not least <= trail.run.crashes <= most:
        yield trail.finding(Breach.COUNTERS, f"crashes {trail.run.crashes}, in the history {least} to {most}")


def _counters(history: History) -> Iterator[Finding]:
    """A replica that went in good order has counted all that its journal says; a killed one no more than that."""
    said = Counter((entry.replica, entry.event) for entry in history.journal)
    for count in history.counts:
        for event, counted in (
            ("WriteFenced", count.fenced_writes),
            ("LeaseLostEvent", count.leases_lost),
            ("RunTakenOver", count.takeovers),
        ):
            told = said[count.replica, event]
            if counted > told or (count.final and counted != told):
                yield Finding(Breach.COUNTERS, count.replica, f"{event}: counted {counted}, said {told}")


def breaches(findings: Iterable[Finding]) -> set[Breach]:
    """The kinds among them."""
    return {finding.breach for finding in findings}
