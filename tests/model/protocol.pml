/* The protocol of docs/protocol.md as a model that spin searches exhaustively: every order of steps, every place for a fault.
 * docs/model.md says what is in it and what is not; searches.py lists what is asked of it.
 *
 * One exclusive job. Runs 0..TICKS-1 are its ticks, the rest were asked for by hand. Each replica has one seat.
 * Every statement is one atomic step: it is one autocommit statement there. What happens inside a statement is not modelled.
 * Time is only an order: how old a lease is, and which deadline is over before which other. No step changes nothing, so the
 * graph has no cycles of its own: a search that finds one (mode `live`) has found something that may go on for ever.
 *
 * Which step stands for what:
 *   Ticker    claim         scheduler/store/sql/claim.sql          scheduler/runner/ticker.py
 *   Sweeper   dequeue       scheduler/store/sql/dequeue.sql        scheduler/runner/sweeper.py
 *   Sweeper   look          scheduler/store/sql/look.sql           scheduler/runner/reaper.py
 *   Sweeper   presence      scheduler/store/sql/watch_owners.sql   scheduler/runner/reaper.py
 *   Sweeper   take over     scheduler/store/sql/take_over.sql      scheduler/runner/reaper.py
 *   Sweeper   promote       scheduler/store/sql/promote.sql        scheduler/runner/sweeper.py
 *   Sweeper   end stale     scheduler/store/sql/end_stale.sql      scheduler/runner/sweeper.py
 *   Sweeper   end session   scheduler/store/sql/end_guards.sql     scheduler/runner/reaper.py
 *   Sweeper   end session   scheduler/store/sql/end_idle_guard.sql scheduler/runner/job_locks.py
 *   Orphans   read, adopt   scheduler/store/sql/read_mine.sql      scheduler/runner/sweeper.py
 *   Attempt   start         -                                      scheduler/runner/attempt.py
 *   Attempt   settle        scheduler/store/sql/settle.sql         scheduler/runner/settler.py
 *   Keeper    renew         scheduler/store/sql/renew.sql          scheduler/runner/keeper.py
 *   Keeper    read held     scheduler/store/sql/read_held.sql      scheduler/runner/keeper.py
 *   Keeper    stand         scheduler/store/sql/take_presence.sql  scheduler/runner/presence.py
 *   Zygote    kill          -                                      scheduler/pool/zygote.py
 *   Body      transaction   scheduler/store/sql/succeed_in_transaction.sql  scheduler/store/transaction.py
 *   Body      checkpoint    scheduler/store/sql/save_checkpoint.sql         scheduler/store/transaction.py
 *   Person    create run    scheduler/store/sql/create_run.sql     scheduler/cli/trigger.py
 *   Plan      apply         scheduler/store/sql/remove_jobs.sql    scheduler/store/apply.py
 *
 * -D flags. Size: REPLICAS TICKS MANUALS FAULTS FAILURES (bodies that raise). The scene: POOLED (no presence) LOCK (guard:
 * advisory_lock) AT_MOST_ONCE (after_crash: fail) CONTINUE (lost_contact) CHECKPOINT PLAIN_FENCE NEWER_FILE JOB_REMOVED EXEC_POD
 * RESTART JUMP FOR_EVER (what is frozen stays so). What is asked: ONE_BODY, ENDS (every run ends, if replica 0 has no fault).
 * BREAK_x takes one rule away: searches.py says which search then must fail.
 */

/* ---- size ------------------------------------------------------------------------------------------------------------- */
#ifndef REPLICAS
#define REPLICAS 2
#endif
#ifndef TICKS
#define TICKS 2
#endif
#ifndef MANUALS
#define MANUALS 0
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef FAILURES
#define FAILURES 0
#endif
#define RUNS (TICKS + MANUALS)
#define NOBODY 255

/* ---- the database ----------------------------------------------------------------------------------------------------- */
mtype = { absent, waiting, queued, running, succeeded, failed, timed_out, cancelled, lost, skipped }
/* A lease: renewed; its owner trusts it no longer; over by the database's clock. */
mtype = { fresh, untrusted, over }

mtype state[RUNS] = absent;
byte owner[RUNS] = NOBODY, attempt[RUNS];   /* claimed_by; the fence */
mtype lease[RUNS] = fresh;
byte watermark, now;                        /* ticks with a row; ticks that are due */
byte generation = 1;
bit removed;
byte lock = NOBODY;                         /* whose session holds the job's advisory lock */
bit busy[RUNS];                             /* handed back because of that lock, and the lock has not been freed since */
bit server = 1;                             /* 0: it refuses everybody */

/* ---- the replicas ----------------------------------------------------------------------------------------------------- */
mtype = { awake, stopped, suspended }       /* stopped: the replica's process alone; suspended: its machine, zygote and all */
/* A seat: reserved for a statement on its way; that statement's answer was lost; an orphan was found; ours, not begun; begun. */
mtype = { free, reserved, unclear, found, claimed, begun }
mtype = { none, working, returned, raised }      /* a body */
/* Its keeper's session: there; gone for less, for more than a renewal interval; gone because the server refuses everybody. */
mtype = { stands, grace, fallen, excused }

bit alive[REPLICAS] = 1, link[REPLICAS] = 1, session[REPLICAS] = 1, draining[REPLICAS];
mtype frozen[REPLICAS] = awake, seat[REPLICAS] = free, body[REPLICAS] = none, standing[REPLICAS] = stands;
byte seat_run[REPLICAS], seat_attempt[REPLICAS], spec[REPLICAS] = 1;
bit body_stopped[REPLICAS], distrust[REPLICAS];         /* distrust: the trust window of its run is over */
bit saw[REPLICAS * REPLICAS];               /* [observer, owner]: saw the presence lock on its own unbroken session */
bit decided[REPLICAS * RUNS];               /* [observer, run]: is to be taken over with the claimed_until that was seen */

/* ---- what is counted for the assertions, and the budgets ------------------------------------------------------------------ */
byte rows[RUNS], begins[RUNS], effects[RUNS], asked, faults = FAULTS, failures = FAILURES;
bit checkpointed[RUNS], planned;
hidden byte k, w;

#define terminal(s)     (s != absent && s != waiting && s != queued && s != running)
#define active(r)       (state[r] == queued || state[r] == running)
#define is_running(r)   (state[r] == running)
#define is_waiting(r)   (state[r] == waiting)
#define is_terminal(r)  (terminal(state[r]))
#if TICKS + MANUALS == 1
#define sum(p) (p(0))
#elif TICKS + MANUALS == 2
#define sum(p) (p(0) + p(1))
#else
#define sum(p) (p(0) + p(1) + p(2))
#endif
#ifdef BREAK_INDEX_WITHOUT_QUEUED
#define blocked         (sum(is_running) > 0)
#else
#define blocked         (sum(active) > 0)               /* the overlap index */
#endif

#define up(i)           (alive[i] && frozen[i] == awake)
#define reaches(i)      (up(i) && link[i] && server)
#define fenced(i, r, a) (state[r] == running && owner[r] == i && attempt[r] == a)
#define holds(i, r)     (seated(i) && seat_run[i] == r && fenced(i, r, seat_attempt[i]))
#define ended_it(i, r)  (state[r] == succeeded && owner[r] == i && attempt[r] == seat_attempt[i])   /* by ctx.transaction() */
#define works(i)        (reaches(i) && session[i] && standing[i] == stands && !draining[i])    /* may claim */
#define seated(i)       (seat[i] == claimed || seat[i] == begun)
#define executing(i)    (body[i] == working)
#define body_runs(i)    (executing(i) && !body_stopped[i] && frozen[i] != suspended)
/* renew.sql names the (id, attempt) pairs in the seats, never "all that is mine" */
#ifdef BREAK_RENEW_BY_OWNER
#define renews(r)       (up(owner[r]) && session[owner[r]])
#else
#define renews(r)       (up(owner[r]) && session[owner[r]] && standing[owner[r]] == stands && !distrust[owner[r]] && holds(owner[r], r))
#endif
#define owns(i, r)      (state[r] == running && owner[r] == i)
#if TICKS + MANUALS == 1
#define owns_none(i)    (!owns(i, 0))
#elif TICKS + MANUALS == 2
#define owns_none(i)    (!owns(i, 0) && !owns(i, 1))
#else
#define owns_none(i)    (!owns(i, 0) && !owns(i, 1) && !owns(i, 2))
#endif
#if REPLICAS == 2
#define bodies          (body_runs(0) + body_runs(1))
#else
#define bodies          (body_runs(0) + body_runs(1) + body_runs(2))
#endif
#ifdef ONE_BODY
#define check_bodies    assert(bodies <= 1)
#else
#define check_bodies    skip
#endif
#ifdef BREAK_NO_SPEC_HASH
#define spec_in_force(i) (1)
#else
#define spec_in_force(i) (spec[i] == generation && !removed)
#endif
#define at_work         (watermark < TICKS || sum(is_terminal) < RUNS)
#ifdef ENDS
#define fault(i)        (faults > 0 && at_work && i > 0)        /* replica 0 stays well */
#elif defined(NEWER_FILE) || defined(JOB_REMOVED)
#define fault(i)        (faults > 0 && at_work)
#else                                       /* the replicas are alike: the first fault may as well be another's than replica 0's */
#define fault(i)        (faults > 0 && at_work && (i > 0 || faults < FAULTS))
#endif

/* ---- steps inside statements --------------------------------------------------------------------------------------------- */
/* claimed_until is another one now: what an observer has decided by the old one finds nothing. */
inline stamp(r) {
#ifdef BREAK_TAKE_OVER_UNREPEATED
  skip
#else
  k = 0; do :: k < REPLICAS -> decided[k * RUNS + r] = 0; k++ :: else -> break od; k = 0
#endif
}

inline become(r, s) {
  assert(!terminal(state[r]));              /* the trigger that keeps terminal states */
  state[r] = s; lease[r] = fresh; stamp(r);
  if :: s != running -> busy[r] = 0 :: else fi;
  if :: s == queued || s == waiting || s == skipped -> owner[r] = NOBODY :: else fi;
  assert(sum(active) <= 1)                  /* never two active runs of an exclusive job */
}

inline insert(r, s) {
  rows[r]++; assert(rows[r] == 1);          /* one row per (job, run key) */
  become(r, s)
}

inline own(i, r) { owner[r] = i; attempt[r]++ }

inline unlock(i) {
  if :: lock == i -> lock = NOBODY; k = 0; do :: k < RUNS -> busy[k] = 0; k++ :: else -> break od; k = 0 :: else fi
}

inline session_ends(i) {
  session[i] = 0;
#ifndef POOLED
  standing[i] = grace;
#endif
  k = 0; do :: k < REPLICAS -> saw[i * REPLICAS + k] = 0; k++ :: else -> break od;
  unlock(i)
}

/* Observers are taken to have seen at once what there is to see: that is the most that they may do. */
inline session_begins(i) {
  session[i] = 1;
  k = 0;
  do
  :: k < REPLICAS -> if :: session[k] -> saw[i * REPLICAS + k] = 1; saw[k * REPLICAS + i] = 1 :: else fi; k++
  :: else -> break
  od;
  k = 0
}

inline leave_seat(i) {
  seat[i] = free; distrust[i] = 0;
  if :: body[i] == none -> seat_run[i] = 0; seat_attempt[i] = 0 :: else fi
}
inline kill(i) { body[i] = none; body_stopped[i] = 0 }

/* settle.sql: fenced by (id, attempt, owner). Zero rows: it is told apart from one's own earlier commit; nothing is written. */
inline settle(i, r, s) {
#ifdef BREAK_UNFENCED_SETTLE
  become(r, s)
#else
  if :: fenced(i, r, seat_attempt[i]) -> become(r, s) :: else fi
#endif
}

/* ---- Ticker: decide, then claim --------------------------------------------------------------------------------------------- */
proctype Ticker(byte me) {
  byte seen, upto, t;
  mtype wanted = absent, refused = absent;
  bit won;
  do
  :: atomic { works(me) && watermark < now && spec_in_force(me) && seat[me] != unclear && seat[me] != found ->
       seen = watermark; upto = now;        /* policy.decide_tick: of the missed ticks the latest runs */
       if :: seat[me] == free && body[me] == none -> seat[me] = reserved; wanted = running :: else -> wanted = queued fi;
       if :: refused = skipped :: refused = waiting fi   /* on time, or late */
     }
     atomic { reaches(me) ->
       if
       :: watermark == seen && spec_in_force(me) ->     /* `won`: the job row as it was seen */
          assert(!removed && (spec[me] == generation)); /* an old pod does not run what a newer file changed or removed */
          t = seen;
          do
          :: t < upto ->
             if
#ifndef BREAK_NO_UNIQUE_KEY
             :: state[t] != absent
#endif
             :: else ->
                if
                :: t < upto - 1 -> d_step { insert(t, skipped) }
                :: else ->
                   if
                   :: !blocked -> d_step { insert(t, wanted); if :: wanted == running -> own(me, t); won = 1 :: else fi }
#ifdef BREAK_WATERMARK_ALONE
                   :: blocked                           /* the row that the index refused is not recorded */
#else
                   :: blocked -> d_step { insert(t, refused) }
#endif
                   fi
                fi
             fi;
             assert(state[t] != absent);                /* `moved`: only where each due tick has a row */
             t++
          :: else -> break
          od;
          watermark = upto
       :: else                                          /* losers write nothing */
       fi;
       if
       :: wanted == running ->
          if
          :: won -> seat[me] = claimed; seat_run[me] = upto - 1; seat_attempt[me] = 1
          :: !won -> seat[me] = free
#ifdef BREAK_CLAIM_WITHOUT_ID
          :: fault(me) -> faults--; seat[me] = claimed; seat_run[me] = upto - 1; seat_attempt[me] = 1   /* "it was mine" */
#else
          :: fault(me) -> faults--; seat[me] = unclear  /* the answer is lost */
#endif
          fi
       :: else
       fi;
       seen = 0; upto = 0; t = 0; wanted = absent; refused = absent; won = 0
     }
  od
}

/* ---- Sweeper: one for each pair of a replica and a run --------------------------------------------------------------------------- */
#define others(i, r)    (state[r] == running && owner[r] != i)
#define orphaned(i, r)  (state[r] == running && owner[r] == i && seat[i] == free)
/* guard advisory_lock: runs whose lock is held by their owner's own session are passed over */
#ifdef LOCK
#define passed_over(r)  (lock == owner[r])
#else
#define passed_over(r)  (0)
#endif
#ifdef BREAK_NEVER_SEEN
#define presence_gone(i, o) (!session[o] && session[i])
#else
#define presence_gone(i, o) (!session[o] && session[i] && saw[i * REPLICAS + o])
#endif

#if TICKS + MANUALS == 1
#define none_older(r)   1
#elif TICKS + MANUALS == 2
#define none_older(r)   (r == 0 || state[0] != waiting)
#else
#define none_older(r)   (r == 0 || (state[0] != waiting && (r == 1 || state[1] != waiting)))
#endif

proctype Sweeper(byte me; byte r) {
  do
  /* dequeue. Handed back because of a lock, it is tried each second: while the lock is held that changes nothing */
  :: atomic { works(me) && seat[me] == free && body[me] == none && state[r] == queued && !busy[r] &&
              spec_in_force(me) ->
       d_step { become(r, running); own(me, r) };
       if
       :: seat[me] = claimed; seat_run[me] = r; seat_attempt[me] = attempt[r]
       :: fault(me) -> faults--; seat[me] = unclear
       fi }

  /* look: the lease was seen to be over, and again three renewals later: a living owner has renewed in between */
#ifdef BREAK_ONE_LOOK
  :: d_step { reaches(me) && lease[r] == over && (others(me, r) || orphaned(me, r)) && !decided[me * RUNS + r] ->
       decided[me * RUNS + r] = 1 }
#elif defined(BREAK_TAKERS_CLOCK)
  :: d_step { reaches(me) && others(me, r) && !renews(r) && !decided[me * RUNS + r] ->
       decided[me * RUNS + r] = 1 }
#elif defined(BREAK_RESCUE_BY_AGE)
  :: d_step { reaches(me) && others(me, r) && !decided[me * RUNS + r] -> decided[me * RUNS + r] = 1 }
#else
  :: d_step { reaches(me) && lease[r] == over && (others(me, r) || orphaned(me, r)) && !renews(r) &&
              !decided[me * RUNS + r] -> decided[me * RUNS + r] = 1 }
#endif
#ifndef POOLED
  /* presence: the lock that this session saw is gone, and claimed_until stays the same for two of the owner's renewal
   * intervals; by then the owner's one interval is over */
  :: d_step { reaches(me) && others(me, r) && presence_gone(me, owner[r]) && !decided[me * RUNS + r] &&
              (!alive[owner[r]] || standing[owner[r]] != grace) -> decided[me * RUNS + r] = 1 }
#endif
  :: d_step { reaches(me) && decided[me * RUNS + r] && state[r] == running && !passed_over(r) ->
       decided[me * RUNS + r] = 0;
#ifdef AT_MOST_ONCE
       become(r, lost)
#else
       become(r, queued)
#endif
     }

#ifndef BREAK_NO_SWEEPER
  /* the settler sends the same statement at once; it may die before */
  :: d_step { reaches(me) && state[r] == waiting && !blocked && none_older(r) -> become(r, queued) }
#endif
#ifndef BREAK_NO_END_STALE
  :: d_step { reaches(me) && removed && (state[r] == queued || state[r] == waiting) -> become(r, skipped) }
#endif
#if defined(LOCK) && !defined(BREAK_FROZEN_KEEPS_LOCK)
  /* the lease is over, or the holder owns no running row: pg_terminate_backend(the holder's session) */
  :: d_step { reaches(me) && lock != NOBODY && lock != me && state[r] == running && owner[r] == lock && decided[me * RUNS + r] ->
       w = lock; session_ends(w) }
  :: d_step { reaches(me) && lock != NOBODY && lock != me && busy[r] && owns_none(lock) -> w = lock; session_ends(w) }
#endif
  od
}

/* ---- Orphans: what a claim or dequeue took whose answer was lost ------------------------------------------------------------------ */
proctype Orphans(byte me) {
  byte r;
  do
  :: d_step { reaches(me) && seat[me] == unclear ->     /* read_mine.sql */
#ifdef BREAK_RENEW_BY_OWNER
       leave_seat(me)
#else
       r = 0; do :: r < RUNS && !owns(me, r) -> r++ :: else -> break od;
       if
       :: r < RUNS -> seat[me] = found; seat_run[me] = r; seat_attempt[me] = attempt[r]
       :: else -> leave_seat(me)
       fi;
       r = 0
#endif
     }
  /* adopted while its lease is trusted, and only when the fence says that it is still ours: a renewal by (id, attempt) */
  :: d_step { reaches(me) && seat[me] == found && session[me] && standing[me] == stands && !distrust[me] && !draining[me] ->
       r = seat_run[me];
       if
#ifdef BREAK_ADOPT_UNASKED
       :: true -> seat[me] = claimed
#else
       :: fenced(me, r, seat_attempt[me]) -> seat[me] = claimed; lease[r] = fresh; stamp(r)
       :: else -> leave_seat(me)
#endif
       fi;
       r = 0 }
  :: d_step { reaches(me) && seat[me] == found && (distrust[me] || draining[me]) ->     /* else handed back, at no cost */
       settle(me, seat_run[me], queued); leave_seat(me) }
  od
}

/* ---- Attempt: the seat's thread -------------------------------------------------------------------------------------------------- */
#if defined(AT_MOST_ONCE) && !defined(BREAK_HAND_BACK_BEGUN)
#define handed_back     lost                /* it has begun, so it must not begin again */
#else
#define handed_back     queued
#endif

#ifdef BREAK_START_UNTRUSTED
#define may_trust(i)    1
#else
#define may_trust(i)    (!distrust[i])
#endif

proctype Attempt(byte me) {
  byte r;
  do
  /* start: asked just before the body begins */
  :: atomic { up(me) && seat[me] == claimed && body[me] == none && !draining[me] && standing[me] == stands && may_trust(me) ->
#ifdef LOCK
       if
#ifdef BREAK_LOCK_IGNORED
       :: lock == NOBODY -> lock = me
       :: lock != NOBODY                    /* held or not */
#else
       :: session[me] && (lock == NOBODY || lock == me) -> lock = me
       :: session[me] && lock != NOBODY && lock != me && reaches(me) ->     /* skipped for now: another replica runs it */
          d_step { r = seat_run[me]; settle(me, r, queued); if :: state[r] == queued -> busy[r] = 1 :: else fi; leave_seat(me); r = 0 };
          goto next
#endif
       fi;
       assert(lock == me);                  /* who is frozen after its run has ended still holds it */
#endif
       seat[me] = begun; body[me] = working; check_bodies;
#ifdef AT_MOST_ONCE
       begins[seat_run[me]]++; assert(begins[seat_run[me]] <= 1);
#endif
next:  skip }
  :: atomic { reaches(me) && seat[me] == begun && body[me] == returned ->
       d_step { unlock(me); settle(me, seat_run[me], succeeded) };
       if
       :: d_step { true -> kill(me); leave_seat(me) }
       :: fault(me) -> faults--             /* the answer is lost: sent again */
       fi }
  :: atomic { reaches(me) && seat[me] == begun && body[me] == raised ->
       if
       :: d_step { true -> unlock(me); settle(me, seat_run[me], failed); kill(me); leave_seat(me) }
#if !defined(AT_MOST_ONCE) || defined(BREAK_RETRY_BEGUN)
       :: d_step { true -> unlock(me); settle(me, seat_run[me], queued); kill(me); leave_seat(me) }   /* tries are left */
#endif
       fi }
  /* its body was killed, or died */
  :: d_step { reaches(me) && seat[me] == begun && body[me] == none -> unlock(me); settle(me, seat_run[me], handed_back); leave_seat(me) }
  :: d_step { reaches(me) && seat[me] == claimed && distrust[me] -> settle(me, seat_run[me], queued); leave_seat(me) }
  /* SIGTERM: what does not end within the drain is handed back */
  :: d_step { reaches(me) && draining[me] && (seat[me] == free || seated(me)) ->
       if
       :: seat[me] == begun -> kill(me); settle(me, seat_run[me], handed_back)
       :: seat[me] == claimed -> settle(me, seat_run[me], queued)
       :: else
       fi;
       leave_seat(me); session_ends(me); alive[me] = 0; link[me] = 0; draining[me] = 0 }
  od
}

/* ---- Keeper, and the zygote that keeps its deadlines also while the replica is stopped --------------------------------------------- */
#ifdef CONTINUE
#define may_outlive     1
#else
#define may_outlive     0
#endif
#ifdef POOLED
#define gone_noticed(i) 1
#else
#define gone_noticed(i) (standing[i] != stands)
#endif
#define refused(i)      (up(i) && link[i] && !server)   /* the server itself says no, to everybody */
#ifdef BREAK_PRESENCE_UNBOUND
#define kept(i)         0
#elif defined(BREAK_NO_ZYGOTE_WATCH)
#define kept(i)         (up(i))
#else
#define kept(i)         (frozen[i] != suspended)        /* the zygote watches the session's socket itself */
#endif
#ifdef BREAK_NO_DEADLINE
#define obeyed(r)       1
#else
#define obeyed(r)       (!(body_runs(owner[r]) && seat_run[owner[r]] == r && seat_attempt[owner[r]] == attempt[r]))
#endif

proctype Keeper(byte me) {
  do
  /* read_held.sql: a renewal that named the run came back without it */
  :: d_step { up(me) && session[me] && seated(me) && !holds(me, seat_run[me]) && !ended_it(me, seat_run[me]) ->
       kill(me); unlock(me); leave_seat(me) }
  /* a new session trusts nothing before a fenced renewal was acknowledged on it */
  :: d_step { reaches(me) && !session[me] && gone_noticed(me) && !draining[me] ->
       session_begins(me); standing[me] = stands;
       if
#ifndef BREAK_STAND_UNRENEWED
       :: seated(me) && !holds(me, seat_run[me]) && !ended_it(me, seat_run[me]) -> kill(me); unlock(me); leave_seat(me)
       :: seated(me) && holds(me, seat_run[me]) && !distrust[me] -> lease[seat_run[me]] = fresh; stamp(seat_run[me])
#endif
       :: else
       fi;
#ifdef LOCK
       if :: executing(me) -> kill(me) :: else fi       /* a lost lock is not taken again: the run is stopped */
#endif
     }
  od
}

proctype Zygote(byte me) {
  do
#ifndef BREAK_NO_DEADLINE
  :: d_step { executing(me) && distrust[me] && frozen[me] != suspended -> kill(me) }
#endif
  /* nobody renews a run that is another's by now: its trust window ends without a word */
  :: d_step { alive[me] && seated(me) && !distrust[me] && !holds(me, seat_run[me]) && !ended_it(me, seat_run[me]) &&
              !(up(me) && session[me]) && !may_outlive -> distrust[me] = 1 }
#ifdef HALF_OPEN
  :: d_step { alive[me] && !session[me] && standing[me] == stands -> standing[me] = grace }
#endif
#ifndef POOLED
  :: d_step { alive[me] && standing[me] == grace && refused(me) -> standing[me] = excused }
  :: d_step { alive[me] && standing[me] == excused && up(me) && !link[me] -> standing[me] = grace }
  /* one renewal interval has passed since the session's end */
  :: d_step { alive[me] && standing[me] == grace && !refused(me) ->
       standing[me] = fallen;
       if :: executing(me) && kept(me) && !may_outlive -> kill(me) :: else fi }
#endif
  od
}

/* The lease of one run grows older only while nobody renews it. */
proctype Lease(byte r) {
  do
  :: d_step { state[r] == running && lease[r] == fresh && !renews(r) ->
       lease[r] = untrusted;
       if
       :: seat[owner[r]] != reserved && (seat[owner[r]] != free || body[owner[r]] != none) &&
          !(may_outlive && seat[owner[r]] == begun) -> distrust[owner[r]] = 1
       :: else
       fi }
  /* the margin of the trust window: by now the zygote, unless it is suspended with its child, has killed */
  :: d_step { state[r] == running && lease[r] == untrusted && !renews(r) && (may_outlive || obeyed(r)) -> lease[r] = over }
  :: d_step { state[r] == running && lease[r] != fresh && renews(r) -> lease[r] = fresh; stamp(r) }
  od
}

/* ---- Body: the job's own function, in a child ------------------------------------------------------------------------------------------ */
#define body_acts(i)    (body_runs(i))

proctype Body(byte me) {
  byte r;
  do
  /* ctx.transaction(): the fence is its last act, the success or a checkpoint commits with the effect. Zero rows: LeaseLost */
  :: atomic { body_acts(me) && server ->
       r = seat_run[me];
       if
#ifdef BREAK_UNFENCED_TRANSACTION
       :: true ->
#else
       :: fenced(me, r, seat_attempt[me]) ->
#endif
#if defined(CHECKPOINT)
          if :: !checkpointed[r] -> effects[r]++; checkpointed[r] = 1 :: else fi;
#elif defined(PLAIN_FENCE)
          effects[r]++;
#else
          d_step { effects[r]++; assert(effects[r] <= 1); become(r, succeeded) };
#endif
          assert(effects[r] <= 1);
          if :: body[me] = returned :: failures > 0 -> failures--; body[me] = raised fi     /* the answer to COMMIT may be lost */
#ifndef BREAK_UNFENCED_TRANSACTION
       :: else -> body[me] = raised
#endif
       fi;
       r = 0 }
  :: d_step { body_acts(me) -> body[me] = returned }    /* one without a transaction */
  :: d_step { body_runs(me) && failures > 0 -> failures--; body[me] = raised }
  od
}

/* ---- Faults ------------------------------------------------------------------------------------------------------------------------------ */
#ifdef BREAK_NO_DEADLINE
#define over_for(i)     (standing[i] == fallen && !may_outlive)
#else
#define over_for(i)     ((distrust[i] || standing[i] == fallen) && !may_outlive)
#endif

/* What wakes up: the zygote acts before the child does, or so we assume where one body is asked for. The fence holds without that.
 * The session's end counts from when the session last answered, not from when it is noticed. */
#ifdef ONE_BODY
#define zygote_first    1
#else
#define zygote_first    0
#endif
inline thaw(i) {
  if
#ifdef BREAK_COUNTS_FROM_NOTICE
  :: frozen[i] == suspended && standing[i] == fallen && !distrust[i] -> standing[i] = grace
#endif
  :: frozen[i] == suspended && over_for(i) && executing(i) && zygote_first -> kill(i)
  :: else
  fi
}

proctype Faults(byte me) {
  do
  /* kill -9: its session and its child end with it */
  :: d_step { fault(me) && alive[me] ->
       faults--; session_ends(me); alive[me] = 0; link[me] = 0; frozen[me] = awake; draining[me] = 0;
#ifndef BREAK_ORPHANED_CHILD
       kill(me);
#endif
       leave_seat(me) }
  :: d_step { fault(me) && up(me) -> faults--; frozen[me] = stopped }
  :: d_step { fault(me) && up(me) && body_runs(me) -> faults--; frozen[me] = suspended }
  :: d_step { fault(me) && body_runs(me) -> faults--; body_stopped[me] = 1 }
  /* contact lost; where it is back at once, a session reset by a proxy or by pg_terminate_backend */
  :: atomic { fault(me) && alive[me] && link[me] && session[me] ->
       d_step { faults--; link[me] = 0; session_ends(me) };
#ifdef HALF_OPEN
       if :: standing[me] = stands :: true fi           /* and the owner's side hangs: it has noticed nothing */
#endif
     }
  :: d_step { fault(me) && up(me) && !draining[me] -> faults--; draining[me] = 1 }          /* SIGTERM */
  /* and they pass */
  :: d_step { alive[me] && !link[me] -> link[me] = 1 }
#ifndef FOR_EVER
  :: d_step { alive[me] && frozen[me] != awake -> thaw(me); frozen[me] = awake; check_bodies }
#endif
  :: d_step { body_stopped[me] -> if :: over_for(me) && zygote_first -> kill(me) :: else fi; body_stopped[me] = 0; check_bodies }
  od
}

proctype Server() {
  do
#ifdef RESTART
  :: d_step { faults > 0 && server ->
       faults--; server = 0;
       session_ends(0); session_ends(1) }
  :: d_step { !server -> server = 1 }
#endif
#ifdef JUMP
  :: d_step { faults > 0 && state[0] == running && lease[0] != over -> faults--; lease[0] = over }  /* a failover's clock is ahead */
#endif
  :: d_step { now < TICKS -> now++ }
  od
}

/* ---- Person and Plan ---------------------------------------------------------------------------------------------------------------------- */
#if MANUALS > 0 || defined(EXEC_POD)
proctype Person() {
  do
#if MANUALS > 0
  :: d_step { server && asked < MANUALS && !removed ->
       if :: !blocked -> insert(TICKS + asked, queued) :: else -> insert(TICKS + asked, waiting) fi; asked++ }
#endif
#ifdef EXEC_POD
  :: d_step { server && now > 0 && state[0] == absent && !blocked -> insert(0, queued) }    /* the same tick by another road */
#endif
  od
}

#endif

#if defined(NEWER_FILE) || defined(JOB_REMOVED)
/* Replica 1 brings a newer file. What the old one still owed gets its rows in the same transaction. */
proctype Plan() {
  do
  :: d_step { !planned && reaches(1) ->
       planned = 1;
       do
       :: watermark < now -> if :: state[watermark] == absent -> insert(watermark, skipped) :: else fi; watermark++
       :: else -> break
       od;
#ifdef JOB_REMOVED
       removed = 1;
#endif
       generation = 2; spec[1] = 2 }
#ifndef JOB_REMOVED
  :: d_step { generation == 2 && !alive[1] -> generation = 1 }  /* the last newer replica is gone: the older file is in force again */
#endif
  od
}
#endif

/* ---- What must have become of it all ---------------------------------------------------------------------------------------------------------- */
#ifdef JOB_REMOVED
#define is_settled(r)   (terminal(state[r]) || (removed && state[r] == absent))
#define ticks_done      (removed || watermark == TICKS)
#else
#define is_settled(r)   (terminal(state[r]))
#define ticks_done      (watermark == TICKS)
#endif

#ifdef ENDS
proctype Judge() { atomic { timeout -> assert(ticks_done && sum(is_settled) == RUNS) } }
#endif

init {
  byte i, r;
  atomic {
    i = 0;
    do
    :: i < REPLICAS * REPLICAS -> saw[i] = 1; i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < REPLICAS ->
       run Ticker(i); run Orphans(i); run Attempt(i); run Keeper(i); run Zygote(i); run Body(i); run Faults(i);
       r = 0;
       do :: r < RUNS -> run Sweeper(i, r); r++ :: else -> break od;
       i++
    :: else -> break
    od;
    r = 0;
    do :: r < RUNS -> run Lease(r); r++ :: else -> break od;
    run Server();
#if MANUALS > 0 || defined(EXEC_POD)
    run Person();
#endif
#if defined(NEWER_FILE) || defined(JOB_REMOVED)
    run Plan();
#endif
#ifdef ENDS
    run Judge();
#endif
    i = 0; r = 0
  }
}
