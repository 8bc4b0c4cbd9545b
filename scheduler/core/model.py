"""The nouns: job specs, ticks, runs, attempts and their outcomes. Frozen values; no behaviour but their own."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from scheduler.core.schedule import Schedule


SOLOIST = "soloist"
"""Who did what nobody asked for: the name that stands where else a person's does."""


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


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`attempts`: tries that may fail or time out (1 = no retry). `backoff`, `max`: seconds; doubles each time."""

    attempts: int = 1
    backoff: float = 60.0
    max: float = 3600.0


@dataclass(frozen=True, slots=True)
class Misfire:
    """What happens to ticks claimed late. `grace`, `within`: seconds; `limit`: rows or runs at the most."""

    policy: MisfirePolicy = MisfirePolicy.LATEST
    grace: float = 60.0
    within: float = 86400.0
    limit: int = 100
    first_sight: FirstSight = FirstSight.WAIT


PROSE = frozenset({"description", "owner", "runbook"})
LATER: dict[str, Any] = {"lost_contact": LostContact.STOP, "jitter": 0.0, "pause_after_failures": None}
"""Keys that came after the first schema, with their defaults. At those they are no part of the hash: while a new
version is rolled out, replicas of both must agree that a job is unchanged."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One entry of `jobs.yaml`, with every default filled in. Times are seconds; `timeout` None = no limit.

    `jitter`: by so much at the most an execution is put off, never the tick. `pause_after_failures`: runs in a row that
    end badly before the job is paused; None: it never is.
    """

    name: str
    schedule: Schedule | None
    call: str
    args: dict[str, Any] = field(default_factory=dict)
    timezone: str = "UTC"
    once_per: Period | None = None
    timeout: float | None = None
    retry: RetryPolicy = RetryPolicy()
    overlap: Overlap = Overlap.SKIP
    after_crash: AfterCrash = AfterCrash.RERUN
    crash_limit: int = 3
    misfire: Misfire = Misfire()
    isolation: Isolation = Isolation.PROCESS
    guard: Guard = Guard.RUN_ROW
    lost_contact: LostContact = LostContact.STOP
    jitter: float = 0.0
    pause_after_failures: int | None = None
    description: str = ""
    owner: str = ""
    runbook: str = ""
    _hash: str = field(default="", init=False, repr=False, compare=False)

    @property
    def exclusive(self) -> bool:
        """Whether the schema forbids a second active run of this job."""
        return self.overlap is not Overlap.ALLOW

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; what `job.spec` holds. `schedule` becomes {"cron": …} | {"every": …} | {"at": …} | None."""
        plain = {name: getattr(self, name) for name in self.__slots__ if not name.startswith("_")}
        plain["schedule"] = None if self.schedule is None else self.schedule.to_dict()
        plain["retry"] = {name: getattr(self.retry, name) for name in RetryPolicy.__slots__}
        plain["misfire"] = {name: getattr(self.misfire, name) for name in Misfire.__slots__}
        return plain

    @property
    def hash(self) -> str:
        """16 hex digits over what the job *does*: prose (description, owner, runbook) does not make a new spec."""
        if not self._hash:
            plain = {k: v for k, v in self.to_dict().items() if k not in PROSE and LATER.get(k) != v}
            text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            object.__setattr__(self, "_hash", hashlib.sha256(text.encode()).hexdigest()[:16])
        return self._hash


@dataclass(frozen=True, slots=True)
class Birth:
    """How one due tick comes into the world: as a run, or as a skipped row that says why.

    `run_key` is the run's (the period with `once_per`); `tick_key` the tick's own, which a skipped row keeps.
    `status`: `running` (wanted now), `queued`, or `skipped` with `skip_reason`.
    `if_blocked`: what the overlap index's refusal makes of it.
    `missed`: for the one row that stands for many, their number, from the tick `since` on; `capped`: or more, counting
    stopped there. `delay`: seconds after the tick before it may be executed (jitter).
    """

    scheduled_at: datetime
    run_key: str
    tick_key: str
    status: Status
    trigger: Trigger = Trigger.SCHEDULE
    skip_reason: SkipReason | None = None
    if_blocked: IfBlocked = IfBlocked.SKIPPED
    missed: int | None = None
    since: datetime | None = None
    capped: bool = False
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that this replica owns: what an attempt is made from. `attempt` is the fence.

    `trace_id`: what the asker gave, else the run's own id, which has a trace id's 32 hex digits.
    """

    id: UUID
    job: str
    run_key: str
    scheduled_at: datetime
    attempt: int
    retries_left: int
    crashes: int
    trigger: Trigger
    payload: dict[str, Any] | None = None
    checkpoint: Any = None
    trace_id: str = ""


def first_claim(spec: JobSpec, id: UUID, run_key: str, scheduled_at: datetime, trigger: Trigger) -> Claim:
    """What the claimer of a run that was born `running` owns: its first attempt."""
    return Claim(
        id=id,
        job=spec.name,
        run_key=run_key,
        scheduled_at=scheduled_at,
        attempt=1,
        retries_left=spec.retry.attempts - 1,
        crashes=0,
        trigger=trigger,
        trace_id=id.hex,
    )


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


@dataclass(frozen=True, slots=True)
class Ending:
    """An attempt's outcome with all that is known of it.

    `retry_after`: seconds asked for by `Retry`. `final`: no retry would help (`Fatal`). `started`: the body began
    (what never began costs nothing). `cpu`: seconds; `peak_rss`: bytes. `output_tail`: the last of stdout, stderr
    and logging, sanitised. `error_class`: dotted name.
    """

    outcome: Outcome
    error_class: str | None = None
    error_text: str | None = None
    result: Any = None
    retry_after: float | None = None
    final: bool = False
    started: bool = True
    exit_code: int | None = None
    cpu: float | None = None
    peak_rss: int | None = None
    output_tail: str = ""
    output_bytes: int = 0

    def with_output(self, tail: str, nbytes: int, cpu: float | None) -> Ending:
        """The same, with what was kept of the output. Each run passes here, and `replace` takes three times as long."""
        return Ending(
            self.outcome,
            self.error_class,
            self.error_text,
            self.result,
            self.retry_after,
            self.final,
            self.started,
            self.exit_code,
            cpu,
            self.peak_rss,
            tail,
            nbytes,
        )
