"""Everything that can go wrong and is somebody's to know.

SoloistError                 carries the exit code of the command line
├── ConfigInvalid       3    jobs.yaml or a setting is wrong: every problem at once, with its place
├── PlanSuperseded      3    a newer jobs file is in force, and has another spec of the job
├── NotFound            4    no such job, run or replica
├── AlreadyRunning      5    another replica has the tick, or the job's one active run is in the way
├── DatabaseUnreachable 8    what was tried, password masked
├── SchemaMismatch      8    the database's schema is not the one this version needs
└── LeaseLost           1    this attempt no longer owns its run: stop, and commit nothing

Signal                       raised by a job's own function to steer the engine
├── Retry(after=…)           this try failed; come again
├── Skip(reason)             nothing to do; the run ends as skipped
├── Fatal(reason)            failed, and no retry would help
└── Cancelled                raised by `ctx.raise_if_cancelled()`
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.core.redaction import printable


class SoloistError(Exception):
    """An error with an exit code and, where there is one, the next step."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a file. `line` and `column` count from 1; `path` is dotted (`jobs.nightly.timeout`).

    Line 0: not a place in a file. Then `path` names a setting (`SOLOIST_SEATS`); empty, the file itself is meant.
    """

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        """One line, whatever keys the file has."""
        if self.line == 0:
            return printable(f"{self.path or self.file}: {self.message}")
        where = f"{self.path}: " if self.path else ""
        return printable(f"{self.file}:{self.line}:{self.column}: {where}{self.message}")


class ConfigInvalid(SoloistError):
    """The configuration is invalid; `problems` holds every one of them, in file order."""

    exit_code = 3

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


class PlanSuperseded(SoloistError):
    """A newer jobs file is in force: this one may not run the job."""

    exit_code = 3


class NotFound(SoloistError):
    """The job, run or replica that was named does not exist."""

    exit_code = 4


class AlreadyRunning(SoloistError):
    """Another replica has it."""

    exit_code = 5


class DatabaseUnreachable(SoloistError):
    """PostgreSQL did not answer; the message says what was tried, with the password masked.

    `may_heal`: it may answer by itself in a while; a wrong password or name will not.
    """

    exit_code = 8

    def __init__(self, text: str, *, may_heal: bool = False) -> None:
        self.may_heal = may_heal
        super().__init__(text)


class PoolerInTheWay(SoloistError):
    """What was asked for needs a session of its own, and a pooler stands before the database."""

    exit_code = 8


class SchemaMismatch(SoloistError):
    """The database's schema is older, newer or incomplete; the message names what lacks and the command to run."""

    exit_code = 8


class LeaseLost(SoloistError):
    """The run is no longer this attempt's: whatever it wrote in the open transaction was rolled back."""


class Signal(Exception):
    """Base of what a job's function may raise to steer the engine."""


class Retry(Signal):
    """This try failed and the job should be tried again.

    `after`: seconds until the next try; None takes the job's backoff. It uses up one of `retry.attempts`.
    """

    def __init__(self, reason: str = "", *, after: float | None = None) -> None:
        self.reason = reason
        self.after = after
        super().__init__(reason)


class Skip(Signal):
    """There is nothing to do; the run ends as `skipped` with this reason."""


class Fatal(Signal):
    """The run failed and no retry would help."""


class Cancelled(Signal):
    """Somebody asked for this run to be cancelled."""
