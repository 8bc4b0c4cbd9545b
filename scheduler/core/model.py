"""The nouns: job specs, ticks, runs, attempts and their outcomes. Frozen values; no behaviour but their own."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from scheduler.core.words import (
    TERMINAL,
    AfterCrash,
    FirstSight,
    Guard,
    IfBlocked,
    Isolation,
    LostContact,
    MisfirePolicy,
    Outcome,
    Overlap,
    Period,
    SkipReason,
    Status,
    Trigger,
)

if TYPE_CHECKING:
    from scheduler.core.schedule import Schedule


SOLOIST = "soloist"
"""Who did what nobody asked for: the name that stands where else a person's does."""


__all__ = [
    "LATER",
    "PROSE",
    "SOLOIST",
    "TERMINAL",
    "AfterCrash",
    "Birth",
    "Claim",
    "Ending",
    "FirstSight",
    "Guard",
    "IfBlocked",
    "Isolation",
    "JobSpec",
    "LostContact",
    "Misfire",
    "MisfirePolicy",
    "Outcome",
    "Overlap",
    "Period",
    "RetryPolicy",
    "SkipReason",
    "Status",
    "Trigger",
    "first_claim",
]


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
    stopped there. Its `tick_key` names that stretch, for where the tick has a row of its own.
    `delay`: seconds after the tick before it may be executed (jitter).
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
