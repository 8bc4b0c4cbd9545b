"""Made-up histories for the checker's own tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from chaos.evidence import Attempt, Body, Count, Entry, History, Rules, Run

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
RULES = {
    "plain": Rules(),
    "wide": Rules(exclusive=False),
    "thread": Rules(exclusive=False, stopped=False),
    "once": Rules(exclusive=False, at_most_once=True),
    "ledger": Rules(exclusive=False, transactional=True),
}


def tick(number: int) -> datetime:
    return NOON + timedelta(seconds=number / 2)


class Story:
    """A history, told run by run."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.attempts: list[Attempt] = []
        self.bodies: list[Body] = []
        self.effects: list[tuple[str, int]] = []
        self.journal: list[Entry] = []
        self._now = 100.0

    def run(self, job: str, outcomes: list[str], status: str | None = None) -> Run:
        """One run whose attempts end so; the last decides."""
        number = sum(run.job == job for run in self.runs)
        run = Run(f"{job}-{number}", job, f"k{number}", tick(number), status or outcomes[-1], len(outcomes))
        crashes = 0
        for fence, outcome in enumerate(outcomes, 1):
            over = fence == len(outcomes)
            self._attempt(run, fence, outcome, run.status if over else "queued")
            crashes += outcome in ("crashed", "lease_lost")
        self.runs.append(replace(run, crashes=crashes))
        return self.runs[-1]

    def _attempt(self, run: Run, fence: int, outcome: str, status: str) -> None:
        begun = self._now = self._now + 1.0
        self._now += 0.5
        self.journal.append(Entry("a", "AttemptStarted", run.id, fence))
        self.bodies.append(Body(run.job, run.run_key, fence, begun, self._now, outcome == "succeeded"))
        self.attempts.append(Attempt(run.id, fence, outcome, "a"))
        if outcome == "lease_lost":
            self.journal.append(Entry("b", "RunTakenOver", run.id, fence, None, status))
            self.journal.append(Entry("a", "WriteFenced", run.id, fence, "succeeded"))
        else:
            self.journal.append(Entry("a", "AttemptEnded", run.id, fence, outcome, status))
        if RULES[run.job].transactional and outcome == "succeeded":
            self.effects.append((run.id, fence))

    def skip(self, job: str, reason: str, missed: int = 1) -> Run:
        number = sum(run.missed for run in self.runs if run.job == job) + missed - 1
        made = Run(f"{job}-s{number}", job, f"k{number}", tick(number), "skipped", 0, 0, reason, missed)
        self.runs.append(made)
        return made

    def told(self) -> History:
        """With the ticks that a calendar expects, and counters as the journal has them."""
        expected = {
            job: [tick(number) for number in range(sum(run.missed for run in self.runs if run.job == job))]
            for job in RULES
        }
        counts = [
            Count(
                name,
                *(
                    sum((entry.replica, entry.event) == (name, event) for entry in self.journal)
                    for event in ("WriteFenced", "LeaseLostEvent", "RunTakenOver")
                ),
                final=True,
            )
            for name in ("a", "b")
        ]
        return History(RULES, expected, self.runs, self.attempts, self.bodies, self.effects, self.journal, counts)


def good_story() -> Story:
    story = Story()
    story.run("plain", ["succeeded"])
    story.run("plain", ["lease_lost", "succeeded"])
    story.skip("plain", "overlap")
    story.run("wide", ["failed", "failed", "succeeded"])
    story.run("wide", ["crashed", "crashed", "crashed"], "failed")
    story.run("thread", ["handed_back", "succeeded"])
    story.run("once", ["lease_lost"], "lost")
    story.run("once", ["succeeded"])
    story.run("ledger", ["lease_lost", "succeeded"])
    story.run("ledger", ["timed_out"])
    story.skip("thread", "missed", missed=7)
    return story
