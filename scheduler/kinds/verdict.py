"""Whose word counts for an outcome: the body's own, ours if we ended it, or the kernel's if its process died."""

from __future__ import annotations

import signal
from dataclasses import replace
from enum import StrEnum

from scheduler.core.model import Ending, Outcome


class Why(StrEnum):
    """Why we end a body. The first reason stands; only LEASE_LOST overrides it."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease_lost"


OUTCOME = {
    Why.TIMEOUT: Outcome.TIMED_OUT,
    Why.CANCEL: Outcome.CANCELLED,
    Why.SHUTDOWN: Outcome.HANDED_BACK,
    Why.LEASE_LOST: Outcome.LEASE_LOST,
}


def unbegun(outcome: Outcome, text: str) -> Ending:
    """The body never began."""
    return Ending(outcome, error_text=text, started=False)


def of_answer(ending: Ending, why: Why | None, *, told: bool, terminated: bool, text: str) -> Ending:
    """What a body that came to its end by itself has come to.

    `why`: what we meant to end it for; `told`: it asked `ctx.cancelled` and heard yes; `terminated`: our TERM reached
    it; `text`: our words for it. A body that returned before it felt any of this has succeeded. One that returned
    after it was told has stopped because of it, which is no success.
    """
    if why is None or (not terminated and _own_word_counts(ending, why, told)):
        return ending
    own = ending.error_text if not terminated and ending.outcome is not Outcome.SUCCEEDED else None
    return _ended(ending, why, own or text, ending.error_class if own else None)


def _own_word_counts(ending: Ending, why: Why, told: bool) -> bool:
    if why is Why.LEASE_LOST:
        return False
    if ending.outcome is Outcome.SUCCEEDED:
        return not told
    return ending.outcome in (Outcome.SKIPPED, Outcome.LEASE_LOST)


def of_death(code: int | None, why: Why | None, text: str) -> Ending:
    """What the death of a body's process means. `code`: exit code or minus the signal; None: not known."""
    ending = Ending(Outcome.CRASHED, error_text=_death_text(code), exit_code=code)
    return ending if why is None else _ended(ending, why, text, None)


def _ended(ending: Ending, why: Why, text: str, error_class: str | None) -> Ending:
    return replace(
        ending, outcome=OUTCOME[why], error_class=error_class, error_text=text, retry_after=None, final=False
    )


def _death_text(code: int | None) -> str:
    if code is None:
        return "the child process is gone and its exit code is not known"
    if code >= 0:
        return f"the child process left by itself with exit code {code} before the function returned (os._exit?)"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "a real-time signal"
    text = f"killed by signal {-code} ({name})"
    return f"{text}, not by Soloist: out of memory?" if -code == signal.SIGKILL else text
