"""The checker of histories finds each planted breach by its own name, and nothing in a good history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from chaos.evidence import Body, Entry
from chaos.history import Breach, breaches, check
from chaos.story import NOON, Story, good_story, tick
from hypothesis import given, settings
from hypothesis import strategies as st


def test_a_good_history_has_no_findings() -> None:
    assert check(good_story().told()) == []


def test_bodies_that_nobody_stops_may_overlap_and_a_killed_replica_may_have_counted_less() -> None:
    story = good_story()
    body = next(body for body in story.bodies if body.job == "thread")
    story.bodies[story.bodies.index(body)] = replace(body, last=body.last + 1000)
    told = story.told()
    counts = [replace(told.counts[0], fenced_writes=0, final=False), told.counts[1]]
    assert check(replace(told, counts=counts)) == []


def test_a_commit_that_wins_over_the_crash_of_its_body_isgood_story() -> None:
    """The body was killed after its COMMIT: the replica says crashed, and recognises what is recorded."""
    story = good_story()
    run = story.run("ledger", ["succeeded"])
    story.journal[-1] = replace(story.journal[-1], outcome="crashed")
    story.bodies[-1] = replace(story.bodies[-1], finished=False)
    assert run.status == "succeeded"
    assert check(story.told()) == []


_outcomes = st.tuples(
    st.lists(st.sampled_from(["failed", "crashed", "lease_lost", "handed_back", "timed_out"]), max_size=4),
    st.sampled_from(["succeeded", "failed", "timed_out"]),
).map(lambda both: [*both[0], both[1]])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["plain", "wide", "thread", "ledger"]), _outcomes | st.none()), max_size=25))
def test_generated_good_histories_have_no_findings(told: list[tuple[str, list[str] | None]]) -> None:
    story = Story()
    for job, outcomes in told:
        if outcomes is None:
            story.skip(job, "missed")
        else:
            story.run(job, outcomes)
    assert check(story.told()) == []


# -- planted breaches: each takes a good story, spoils it, and may spoil what is told of it


def _spoil_entry(story: Story, event: str, **facts: object) -> None:
    entry = next(entry for entry in story.journal if entry.event == event)
    story.journal.append(replace(entry, **facts))  # type: ignore[arg-type]


def _zombie_settles_too(story: Story) -> None:
    """Attempt 1 was taken over, and its owner wrote its end all the same."""
    run = next(run for run in story.runs if run.attempt == 2)
    story.journal.append(Entry("a", "AttemptEnded", run.id, 1, "succeeded", "succeeded"))


def _zombie_is_recorded(story: Story) -> None:
    run = next(run for run in story.runs if run.attempt == 2)
    place = next(i for i, a in enumerate(story.attempts) if (a.run, a.number) == (run.id, 1))
    story.attempts[place] = replace(story.attempts[place], outcome="succeeded")


def _effect_committed_twice(story: Story) -> None:
    story.effects.append((next(run.id for run in story.runs if run.job == "ledger"), 1))


def _effect_of_one_attempt_twice(story: Story) -> None:
    story.effects.append(story.effects[0])


def _effect_of_a_failed_run(story: Story) -> None:
    story.effects.append((next(run.id for run in story.runs if run.status == "timed_out"), 1))


def _success_without_its_commit(story: Story) -> None:
    story.effects.clear()


def _success_without_a_body(story: Story) -> None:
    story.bodies = [body for body in story.bodies if (body.job, body.run_key) != ("plain", "k0")]


def _body_without_its_end(story: Story) -> None:
    story.bodies[0] = replace(story.bodies[0], finished=False)


def _row_says_failed(story: Story) -> None:
    story.runs[0] = replace(story.runs[0], status="failed")


def _bodies_of_a_job_overlap(story: Story) -> None:
    story.bodies[0] = replace(story.bodies[0], last=story.bodies[1].begun + 0.01)


def _bodies_of_a_run_overlap(story: Story) -> None:
    first, second = (body for body in story.bodies if body.job == "ledger" and body.run_key == "k0")
    story.bodies[story.bodies.index(first)] = replace(first, last=second.last)


def _a_long_body_overlaps_the_one_after_the_next(story: Story) -> None:
    first, _, third = (body for body in story.bodies if body.job == "wide" and body.run_key == "k0")
    story.bodies[story.bodies.index(first)] = replace(first, last=third.begun)


def _two_bodies_of_one_attempt(story: Story) -> None:
    story.bodies.append(replace(story.bodies[0], begun=9000.0, last=9001.0))


def _two_starts_of_one_attempt(story: Story) -> None:
    _spoil_entry(story, "AttemptStarted", replica="b")


def _begun_again(story: Story) -> None:
    run = next(run for run in story.runs if run.status == "lost")
    story.bodies.append(Body(run.job, run.run_key, 2, 9000.0, 9001.0, True))


def _a_gap_in_the_fences(story: Story) -> None:
    run = next(run for run in story.runs if run.attempt == 3)
    story.attempts = [a for a in story.attempts if (a.run, a.number) != (run.id, 2)]


def _an_attempt_recorded_twice(story: Story) -> None:
    story.attempts.append(story.attempts[0])


def _an_attempt_beyond_the_row(story: Story) -> None:
    _spoil_entry(story, "AttemptStarted", attempt=9)


def _terminal_state_changes(story: Story) -> None:
    _spoil_entry(story, "AttemptEnded", attempt=1, status="failed", outcome="failed")


def _refused_and_kept(story: Story) -> None:
    run = story.runs[0]
    story.journal.append(Entry("b", "WriteFenced", run.id, 1, "succeeded"))


def _no_row(story: Story) -> None:
    gone = story.runs.pop(0)
    story.runs.insert(0, replace(gone, job="wide", run_key="k99", scheduled_at=tick(2)))


def _still_running(story: Story) -> None:
    story.runs[0] = replace(story.runs[0], status="running")


def _skipped_for_nothing(story: Story) -> None:
    story.runs[2] = replace(story.runs[2], skip_reason=None)


def _off_the_grid(story: Story) -> None:
    story.runs[0] = replace(story.runs[0], scheduled_at=NOON - timedelta(microseconds=1))


def _two_rows_of_one_tick(story: Story) -> None:
    story.runs[-2] = replace(story.runs[-2], scheduled_at=tick(0))


def _one_key_twice(story: Story) -> None:
    story.runs[1] = replace(story.runs[1], run_key="k0")


def _crashes_not_counted(story: Story) -> None:
    place = next(i for i, run in enumerate(story.runs) if run.crashes == 3)
    story.runs[place] = replace(story.runs[place], crashes=2)


def _a_body_of_no_run(story: Story) -> None:
    story.bodies.append(Body("wide", "never", 1, 9000.0, 9001.0, True))


def _an_effect_of_no_run(story: Story) -> None:
    story.effects.append(("nobody", 1))


def _an_event_of_no_run(story: Story) -> None:
    story.journal.append(Entry("a", "TickWon", "nobody", 1))


PLANTED: list[tuple[Callable[[Story], None], Breach]] = [
    (_zombie_settles_too, Breach.TWO_EFFECTIVE),
    (_zombie_settles_too, Breach.ENDED_TWICE),
    (_zombie_is_recorded, Breach.TWO_EFFECTIVE),
    (_effect_committed_twice, Breach.TWO_EFFECTIVE),
    (_effect_of_one_attempt_twice, Breach.TWO_EFFECTIVE),
    (_effect_of_a_failed_run, Breach.NO_EFFECT),
    (_success_without_its_commit, Breach.NO_EFFECT),
    (_success_without_a_body, Breach.NO_EFFECT),
    (_body_without_its_end, Breach.NO_EFFECT),
    (_row_says_failed, Breach.NO_EFFECT),
    (_row_says_failed, Breach.CHANGED),
    (_bodies_of_a_job_overlap, Breach.OVERLAP),
    (_bodies_of_a_run_overlap, Breach.OVERLAP),
    (_a_long_body_overlaps_the_one_after_the_next, Breach.OVERLAP),
    (_two_bodies_of_one_attempt, Breach.BEGUN_TWICE),
    (_two_starts_of_one_attempt, Breach.BEGUN_TWICE),
    (_begun_again, Breach.BEGUN_AGAIN),
    (_a_gap_in_the_fences, Breach.FENCE),
    (_an_attempt_recorded_twice, Breach.FENCE),
    (_an_attempt_beyond_the_row, Breach.FENCE),
    (_terminal_state_changes, Breach.CHANGED),
    (_terminal_state_changes, Breach.ENDED_TWICE),
    (_refused_and_kept, Breach.REFUSED_AND_KEPT),
    (_no_row, Breach.LOST_TICK),
    (_still_running, Breach.UNENDED),
    (_skipped_for_nothing, Breach.UNSAID),
    (_off_the_grid, Breach.STRAY_TICK),
    (_two_rows_of_one_tick, Breach.DOUBLE_TICK),
    (_one_key_twice, Breach.DOUBLE_TICK),
    (_crashes_not_counted, Breach.COUNTERS),
    (_a_body_of_no_run, Breach.STRANGER),
    (_an_effect_of_no_run, Breach.STRANGER),
    (_an_event_of_no_run, Breach.STRANGER),
]


@pytest.mark.parametrize(("spoil", "breach"), PLANTED, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_planted_breach_is_found(spoil: Callable[[Story], None], breach: Breach) -> None:
    story = good_story()
    told = story.told()
    spoil(story)
    spoilt = story.told()
    found = check(replace(spoilt, expected=told.expected, counts=told.counts))
    assert breach in breaches(found), found


@pytest.mark.parametrize(
    ("field", "off"), [("fenced_writes", 1), ("takeovers", 1), ("leases_lost", 1), ("takeovers", -1)]
)
def test_a_replica_that_counts_otherwise_than_its_journal_is_found(field: str, off: int) -> None:
    told = good_story().told()
    taker = told.counts[1]
    counts = [told.counts[0], replace(taker, **{field: getattr(taker, field) + off})]
    assert breaches(check(replace(told, counts=counts))) == {Breach.COUNTERS}


def test_every_breach_is_planted() -> None:
    assert {breach for _, breach in PLANTED} == set(Breach)
