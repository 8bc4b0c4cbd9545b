"""What the model is asked: searches that must hold, known limits, and rules whose absence must be found out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["safe", "ends", "live"]
Fails = Literal["rows", "watermark", "active", "terminal", "bodies", "begins", "effects", "spec", "lock", "account"]

FAILS: dict[Fails, str] = {
    "rows": "rows[",
    "watermark": "(state[t]!=",
    "active": "==8)||(state[",
    "terminal": "!(((((state[",
    "bodies": "body[",
    "begins": "begins[",
    "effects": "effects[",
    "spec": "spec[",
    "lock": "(lock==me)",
    "account": "watermark==",
}
"""What was violated -> what spin prints of that assertion and of no other."""


@dataclass(frozen=True, slots=True)
class Search:
    """`flags`: names for -D. `fails`: the assertion that must be violated; None: the search holds.

    Modes: `safe`: the assertions. `ends`: also, where nothing more can happen, every run has come to its end; replica 0
    suffers no fault. `live`: also, no order of steps goes on for ever. `big`: worth an optimiser.
    """

    name: str
    flags: str
    shows: str
    fails: Fails | None = None
    mode: Mode = "safe"
    big: bool = False


HOLDS = (
    Search("one_fault", "ONE_BODY", "one row a tick, one active run, one body, one effect"),
    Search("two_faults", "ONE_BODY FAULTS=2 TICKS=1", "the same, with any two faults"),
    Search("two_faults_two_ticks", "ONE_BODY FAULTS=2", "the same, with a run that may overlap", big=True),
    Search("three_faults", "ONE_BODY FAULTS=3 TICKS=1", "the same, with any three faults", big=True),
    Search("by_hand", "ONE_BODY MANUALS=1", "a run asked for by hand waits for the active one", big=True),
    Search("three_ticks", "ONE_BODY TICKS=3", "a claim of several ticks at once", big=True),
    Search("three_replicas", "ONE_BODY REPLICAS=3 TICKS=1", "two who would take over", big=True),
    Search("retry", "ONE_BODY FAILURES=1", "bodies that raise, and an answer to COMMIT that is lost"),
    Search("ends", "FAULTS=2 TICKS=1 FAILURES=1", "one healthy replica brings every run to its end", mode="live"),
    Search("ends_by_hand", "TICKS=1 MANUALS=1", "also those that waited", mode="live"),
    Search("ends_two_ticks", "FAULTS=2", "also with two ticks and two faults", mode="live", big=True),
    Search(
        "frozen_for_ever", "TICKS=1 MANUALS=1 FOR_EVER", "an owner that is frozen for good stops nobody", mode="live"
    ),
    Search("exec_pod", "TICKS=1 EXEC_POD ONE_BODY", "the same tick by another road", mode="live"),
    Search(
        "newer_file", "NEWER_FILE TICKS=1", "an older file's replica runs nothing that a newer one changed", mode="live"
    ),
    Search("newer_file_two_ticks", "NEWER_FILE", "the same with a tick on each side", mode="live", big=True),
    Search("job_removed", "JOB_REMOVED TICKS=1 MANUALS=1", "nothing of a removed job is left queued", mode="live"),
    Search("checkpoint", "CHECKPOINT FAULTS=2 TICKS=1 FAILURES=1", "transaction(checkpoint=): each step's effect once"),
    Search("pooled", "POOLED ONE_BODY FAULTS=2 TICKS=1", "without presence the lease alone keeps bodies apart"),
    Search("pooled_ends", "POOLED FAULTS=2 TICKS=1", "and brings runs to their end", mode="live"),
    Search("lock", "LOCK ONE_BODY FAULTS=2 TICKS=1", "guard advisory_lock: a lost lock stops the run"),
    Search("lock_two_ticks", "LOCK ONE_BODY", "the same with two ticks"),
    Search("lock_ends", "LOCK FAULTS=2 TICKS=1", "who found it held gets it later", mode="live"),
    Search("lock_frozen", "LOCK TICKS=2 FOR_EVER", "a frozen holder's session is ended, after its lease", mode="live"),
    Search("at_most_once", "AT_MOST_ONCE FAULTS=2 TICKS=1 FAILURES=1 ONE_BODY", "after_crash fail: a body begins once"),
    Search("at_most_once_ends", "AT_MOST_ONCE TICKS=1 MANUALS=1", "and its run ends", mode="live"),
    Search("at_most_once_lock", "AT_MOST_ONCE LOCK FAULTS=2 TICKS=1", "also when a lock is lost"),
    Search("continue", "CONTINUE FAULTS=2 TICKS=1", "lost_contact continue: bodies may overlap, effects do not"),
    Search("continue_ends", "CONTINUE FAULTS=2 TICKS=1", "and every run ends", mode="live"),
    Search("restart", "RESTART ONE_BODY FAULTS=2 TICKS=1", "a server that refuses everybody: the trust window decides"),
    Search("restart_ends", "RESTART FAULTS=2 TICKS=1", "and nobody is left behind", mode="live"),
    Search("clock_jump", "JUMP ONE_BODY", "a failover whose clock is ahead takes no living run"),
)

LIMITS = (
    Search("continue_overlaps", "CONTINUE ONE_BODY TICKS=1", "lost_contact continue does mean two bodies", "bodies"),
    Search(
        "half_open",
        "HALF_OPEN ONE_BODY TICKS=1",
        "a session that ended for the server alone: its owner must not wait long for an answer",
        "bodies",
    ),
    Search(
        "plain_fence",
        "PLAIN_FENCE TICKS=1",
        "why transaction() commits a success or a checkpoint: the fence alone does not make an effect happen once",
        "effects",
    ),
)

BREAKS = (
    Search(
        "settle_unfenced", "BREAK_UNFENCED_SETTLE CHECKPOINT TICKS=1", "settle does not ask for the fence", "terminal"
    ),
    Search(
        "transaction_unfenced",
        "BREAK_UNFENCED_TRANSACTION TICKS=1 FAULTS=2",
        "ctx.transaction() does not ask for the fence",
        "effects",
    ),
    Search(
        "watermark_alone", "BREAK_WATERMARK_ALONE FAULTS=0", "the watermark passes a tick without a row", "watermark"
    ),
    Search(
        "rescue_by_age",
        "BREAK_RESCUE_BY_AGE ONE_BODY FAULTS=0 TICKS=1",
        "an old run is taken, renewed or not",
        "bodies",
    ),
    Search(
        "takers_clock", "BREAK_TAKERS_CLOCK ONE_BODY TICKS=1", "the taker's clock says when a lease is over", "bodies"
    ),
    Search("no_unique_key", "BREAK_NO_UNIQUE_KEY EXEC_POD FAULTS=0 TICKS=1", "no UNIQUE (job, run_key)", "rows"),
    Search(
        "index_without_queued",
        "BREAK_INDEX_WITHOUT_QUEUED MANUALS=1 FAULTS=0",
        "the overlap index has running rows only",
        "active",
    ),
    Search(
        "no_sweeper",
        "BREAK_NO_SWEEPER TICKS=1 MANUALS=1",
        "nobody looks for runs that wait in vain",
        "account",
        mode="ends",
    ),
    Search(
        "claim_without_id",
        "BREAK_CLAIM_WITHOUT_ID ONE_BODY TICKS=1",
        "after a lost answer every claim is believed to be one's own",
        "bodies",
    ),
    Search("no_deadline", "BREAK_NO_DEADLINE POOLED ONE_BODY TICKS=1", "nobody kills when the trust is over", "bodies"),
    Search("renew_by_owner", "BREAK_RENEW_BY_OWNER TICKS=1", "renewals name all that is mine", "account", mode="ends"),
    Search(
        "no_spec_hash", "BREAK_NO_SPEC_HASH NEWER_FILE TICKS=1 FAULTS=0", "a claim does not ask for its spec", "spec"
    ),
    Search("lock_ignored", "BREAK_LOCK_IGNORED LOCK", "a body begins though another session holds the lock", "lock"),
    Search(
        "start_untrusted",
        "BREAK_START_UNTRUSTED POOLED ONE_BODY FAULTS=2 TICKS=1",
        "the trust is not asked for before the body starts",
        "bodies",
    ),
    Search("one_look", "BREAK_ONE_LOOK JUMP ONE_BODY TICKS=1", "a lease seen to be over once is taken", "bodies"),
    Search(
        "no_zygote_watch",
        "BREAK_NO_ZYGOTE_WATCH ONE_BODY FAULTS=2 TICKS=1",
        "only the replica watches its session",
        "bodies",
    ),
    Search(
        "presence_unbound", "BREAK_PRESENCE_UNBOUND ONE_BODY TICKS=1", "its session gone, the owner works on", "bodies"
    ),
    Search(
        "counts_from_notice",
        "BREAK_COUNTS_FROM_NOTICE ONE_BODY FAULTS=2 TICKS=1",
        "a machine that wakes up counts from when it sees the session's end, not from when it last saw it alive",
        "bodies",
    ),
    Search(
        "orphaned_child",
        "BREAK_ORPHANED_CHILD ONE_BODY TICKS=1",
        "a child outlives its killed replica until the trust is over",
        "bodies",
    ),
    Search(
        "stand_unrenewed",
        "BREAK_STAND_UNRENEWED ONE_BODY FAULTS=2 TICKS=1",
        "a new session is believed without a fenced renewal",
        "bodies",
    ),
    Search(
        "adopt_unasked",
        "BREAK_ADOPT_UNASKED ONE_BODY FAULTS=2 TICKS=1",
        "an orphan is adopted without asking the fence",
        "bodies",
    ),
    Search(
        "take_over_unrepeated",
        "BREAK_TAKE_OVER_UNREPEATED ONE_BODY FAULTS=2 TICKS=1",
        "take_over does not repeat the claimed_until that was seen",
        "bodies",
    ),
    Search(
        "never_seen",
        "BREAK_NEVER_SEEN RESTART ONE_BODY TICKS=1",
        "an observer trusts the absence of a lock that its session never saw",
        "bodies",
    ),
    Search(
        "hand_back_begun",
        "BREAK_HAND_BACK_BEGUN AT_MOST_ONCE TICKS=1",
        "after_crash fail: a begun body is handed back",
        "begins",
    ),
    Search(
        "retry_begun",
        "BREAK_RETRY_BEGUN AT_MOST_ONCE TICKS=1 FAULTS=0 FAILURES=1",
        "after_crash fail: a body that raised is tried again",
        "begins",
    ),
    Search(
        "no_end_stale",
        "BREAK_NO_END_STALE JOB_REMOVED TICKS=1 MANUALS=1",
        "nobody ends the queued runs of a removed job",
        "account",
        mode="ends",
    ),
    Search(
        "frozen_keeps_lock",
        "BREAK_FROZEN_KEEPS_LOCK LOCK TICKS=1 FOR_EVER",
        "nobody ends the session of a holder that is frozen for good",
        "account",
        mode="ends",
    ),
)

SEARCHES = (*HOLDS, *LIMITS, *BREAKS)

EVERY_TIME = frozenset(
    {
        *("two_faults", "ends_by_hand", "at_most_once", "lock", "restart", "newer_file", "continue"),
        *("settle_unfenced", "watermark_alone", "rescue_by_age", "index_without_queued", "renew_by_owner", "one_look"),
        *("no_zygote_watch", "counts_from_notice", "adopt_unasked", "take_over_unrepeated", "never_seen"),
        *("hand_back_begun", "frozen_keeps_lock"),
    }
)
"""What every run of the tests searches: each takes about two seconds of one core, most of them gcc's."""
