"""The closed vocabularies: each word stands so in Python, SQL, jobs.yaml, logs and metrics."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """The states of a run. Those of `TERMINAL` never change again."""

    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOST = "lost"
    SKIPPED = "skipped"


TERMINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.TIMED_OUT, Status.CANCELLED, Status.LOST, Status.SKIPPED})


class SkipReason(StrEnum):
    """Why a run was born skipped (or, `JOB`, why its own function ended it so)."""

    OVERLAP = "overlap"
    MISSED = "missed"
    PAUSED = "paused"
    STALE_CONFIG = "stale_config"
    JOB = "job"


class Trigger(StrEnum):
    """What made a run."""

    SCHEDULE = "schedule"
    CATCH_UP = "catch_up"
    MANUAL = "manual"
    BACKFILL = "backfill"
    CRONJOB = "cronjob"
    RETRY = "retry"


class Overlap(StrEnum):
    """What a tick does while its job's earlier run is active.

    `skip`: it leaves a skipped row. `queue`: it waits its turn, one at the most; `queue_all`: each waits, in order.
    `replace`: the earlier run is cancelled for it. `allow`: both run.
    """

    SKIP = "skip"
    QUEUE = "queue"
    QUEUE_ALL = "queue_all"
    REPLACE = "replace"
    ALLOW = "allow"


class IfBlocked(StrEnum):
    """What becomes of a run that the overlap index refuses. `one`: it waits, unless a tick of its job waits already."""

    SKIPPED = "skipped"
    WAITING = "waiting"
    ONE = "one"


class AfterCrash(StrEnum):
    """What an unclear death means for a run: do it again (at least once) or ask a person (at most once)."""

    RERUN = "rerun"
    FAIL = "fail"


class MisfirePolicy(StrEnum):
    """Which of the missed ticks run."""

    LATEST = "latest"
    ALL = "all"
    SKIP = "skip"


class FirstSight(StrEnum):
    """Whether a job seen for the first time also does the tick just before."""

    WAIT = "wait"
    RUN = "run"


class Period(StrEnum):
    """`once_per`: the run key is the period, so an edited time cannot run a job twice in it."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class NoTick(StrEnum):
    """Why a job has no next tick. `superseded`, `absent`: the file in force has another spec of it, or no such job.

    `over`: its schedule has no tick to come. `at_rest`: it was found not to be ours to tick, and is to be read again.
    """

    BY_HAND = "by_hand"
    OVER = "over"
    PAUSED = "paused"
    SUPERSEDED = "superseded"
    ABSENT = "absent"
    SICK = "sick"
    AT_REST = "at_rest"


class Isolation(StrEnum):
    """Where a Python body runs: in a warm child process, or in a thread of the replica."""

    PROCESS = "process"
    THREAD = "thread"


class Guard(StrEnum):
    """What protects a run while it executes: the lease on its row, or that and a session advisory lock of its job."""

    RUN_ROW = "run_row"
    ADVISORY_LOCK = "advisory_lock"


class LostContact(StrEnum):
    """What a body does while its replica cannot renew its lease.

    `stop`: it ends with the owner's trust, so there are never two bodies. `continue`: it goes on; if another replica
    took the run meanwhile, both were at work, and the fence discards this one's result.
    """

    STOP = "stop"
    CONTINUE = "continue"


class Outcome(StrEnum):
    """How an attempt ended, as a fact; what becomes of the run is `policy.decide_outcome`'s to say."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    CRASHED = "crashed"
    HANDED_BACK = "handed_back"
    LEASE_LOST = "lease_lost"
