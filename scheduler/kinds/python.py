"""`isolation: process`: a body runs in a warm child process. Linux only."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from pathlib import Path

from scheduler.core.errors import SoloistError
from scheduler.core.model import Ending, Outcome
from scheduler.kinds import Body, MayBegin, Progress, Stop
from scheduler.kinds.verdict import OUTCOME, Why, of_answer, of_death, unbegun
from scheduler.pool.body import pack_info, unpack_ending
from scheduler.pool.channel import Message
from scheduler.pool.leash import Death, Leash, TimeIsUp
from scheduler.pool.nursery import CLOSED, ZYGOTE_DIED
from scheduler.pool.pool import Pool, PoolClosed
from scheduler.pool.words import boottime

_TRIES = 3  # children that may die before they take up the body
_CLEAN_UP = 10.0  # seconds that we wait for what a body left behind to be gone


@dataclass(frozen=True, slots=True)
class Graces:
    """Seconds. `cancel`: from the word to TERM. `term`: from TERM to KILL."""

    cancel: float = 10.0
    term: float = 2.0


class PythonKind:
    """Bodies in warm child processes.

    `root`: the folder in which callables are found. `database_url`: where `ctx.transaction()` leads to.
    `preload`: modules that every child finds imported. `seats`: how many bodies may run at once.
    Raises SoloistError on other systems than Linux.
    """

    def __init__(
        self,
        root: Path,
        *,
        database_url: str | None = None,
        preload: tuple[str, ...] = (),
        seats: int = 16,
        max_runs_per_child: int = 1000,
        graces: Graces = Graces(),
    ) -> None:
        self.pool = Pool(root, database_url=database_url, preload=preload, seats=seats, max_runs=max_runs_per_child)
        self._graces = graces

    def start(self, body: Body, trust: float, may_begin: MayBegin) -> PythonExecution:
        """Prepare one attempt; a child is obtained in `wait`, which then asks `may_begin`."""
        del trust  # what `may_begin` says is newer
        return PythonExecution(self.pool, body, may_begin, self._graces)

    def warm(self) -> None:
        """See `Pool.warm`."""
        self.pool.warm()

    def tidy(self) -> None:
        """See `Pool.tidy`."""
        self.pool.tidy()

    def watch(self, session: int, interval: float) -> None:
        """See `Pool.watch`."""
        self.pool.watch(session, interval)

    def lift(self) -> None:
        """See `Pool.lift`."""
        self.pool.lift()

    def close(self) -> None:
        """Children and zygote are gone when this returns; bodies at work are handed back."""
        self.pool.close()


class PythonExecution:
    """One body in a child. See `kinds.Execution`."""

    def __init__(self, pool: Pool, body: Body, may_begin: MayBegin, graces: Graces) -> None:
        self._pool = pool
        self._body = body
        self._may_begin = may_begin
        self._graces = graces
        self._lock = threading.Lock()
        self._leash: Leash | None = None  # only while the body may be at work in it
        self._why: Why | None = None
        self._said: Progress | None = None

    def wait(self) -> Ending:
        """Obtain a child, run the body in it, and say how it ended."""
        for _ in range(_TRIES):
            try:
                leash = self._pool.obtain()
            except PoolClosed:
                return unbegun(Outcome.HANDED_BACK, "the replica is shutting down")
            except SoloistError as error:
                return unbegun(Outcome.CRASHED, str(error))
            refusal = self._trust(leash)
            if refusal is not None:
                self._pool.give_back(leash)
                return refusal
            ending = self._run(leash)
            if ending is not None:
                return ending
        return unbegun(Outcome.CRASHED, f"{_TRIES} child processes died before they took up the body")

    def extend(self, until: float) -> None:
        """Trust the body until then: one store in shared memory."""
        with self._lock:
            if self._leash is not None:
                self._leash.extend(int(until * 1e9))

    def cancel(self) -> None:
        """`ctx.cancelled` becomes true; TERM after the grace, then KILL."""
        with self._lock:
            if self._leash is not None:
                self._leash.cancel()
            self._end(Why.CANCEL, self._graces.cancel, self._graces.cancel + self._graces.term)

    def stop(self, why: Stop) -> None:
        """LEASE_LOST: KILL. SHUTDOWN: TERM, and KILL after the grace. Always the whole group."""
        with self._lock:
            if why is Stop.LEASE_LOST:
                self._end(Why.LEASE_LOST, None, 0.0)
            else:
                self._end(Why.SHUTDOWN, 0.0, self._graces.term)

    def progress(self) -> Progress | None:
        """What the body last said, also after its end."""
        with self._lock:
            self._read_progress()
            return self._said

    def _trust(self, leash: Leash) -> Ending | None:
        """Ask whether the body may begin, and trust the child from here on; or the Ending: it must not."""
        until = self._may_begin()
        with self._lock:
            if self._why is not None:
                return unbegun(OUTCOME[self._why], f"{self._text()}; it had not begun")
            if until is None:
                return unbegun(Outcome.HANDED_BACK, "the lease was no longer sure when the body was to begin")
            leash.trust(int(until * 1e9))
            self._leash = leash
        return None

    def _run(self, leash: Leash) -> Ending | None:
        """None: the child died before it took up the body, through no fault of the body's."""
        body = self._body
        try:
            leash.begin({"info": pack_info(body.info), "call": body.call, "args": body.args})
            answer = self._answer(leash)
        except (TypeError, ValueError) as error:
            self._let_go(leash)
            self._pool.give_back(leash)
            return unbegun(Outcome.FAILED, f"the job's args or its run's payload are not JSON: {error}")
        except OSError:  # it died while it was idle
            answer = None
        self._let_go(leash)
        return self._conclude_death(leash) if answer is None else self._conclude(leash, answer)

    def _answer(self, leash: Leash) -> Message | None:
        timeout = self._body.timeout
        until = None if timeout is None else boottime() + int(timeout * 1e9)
        while True:
            try:
                return leash.answer(until)
            except TimeIsUp:
                until = None
                with self._lock:
                    self._end(Why.TIMEOUT, 0.0, self._graces.term)

    def _end(self, why: Why, term: float | None, kill: float) -> None:
        """Holds the lock."""
        if self._why is None or why is Why.LEASE_LOST:
            self._why = why
        if self._leash is not None:
            self._leash.end(self._why, term, kill)

    def _let_go(self, leash: Leash) -> None:
        """From here on no word of ours may reach the child: it may serve another body."""
        with self._lock:
            self._read_progress()
            self._leash = None
            leash.extend(0)

    def _read_progress(self) -> None:
        said = None if self._leash is None else self._leash.said()
        if said is not None:
            self._said = Progress(*said)

    def _conclude(self, leash: Leash, answer: Message) -> Ending:
        leash.last_output()
        tail = leash.tail
        if answer["left"] or self._why is not None:
            # All of it is dead before the run is called ended: no later attempt may meet it.
            self._pool.discard(leash, _CLEAN_UP)
        else:
            leash.cpu_before = answer["cpu_total"]
            self._pool.give_back(leash)
        ending = of_answer(
            unpack_ending(answer["ending"]),
            self._why,
            told=answer["told"],
            terminated=answer["terminated"],
            text=self._text(),
        )
        return ending.with_output(tail.text(ending.output_tail), tail.total, ending.cpu)

    def _conclude_death(self, leash: Leash) -> Ending | None:
        if not leash.gone.wait(1.0):  # it lives and will not answer: the body closed our channel
            leash.end("no answer", None, 0.0)
            leash.gone.wait()
        death = leash.death
        assert death is not None
        leash.last_output()
        begun, tail = leash.begun, leash.tail
        self._pool.discard(leash)
        ending = self._ending_of_death(death)
        if not begun:
            return None if ending.outcome is Outcome.CRASHED else replace(ending, started=False)
        return replace(
            ending,
            cpu=None if death.cpu is None else max(0.0, round(death.cpu - leash.cpu_before, 6)),
            peak_rss=death.peak_rss,
            output_tail=tail.text(),
            output_bytes=tail.total,
        )

    def _ending_of_death(self, death: Death) -> Ending:
        if death.why == "trust":
            text = "stopped at the trust deadline: the lease was not renewed in time"
            return of_death(death.code, Why.LEASE_LOST, text)
        if self._why is None and death.why == CLOSED:
            return of_death(death.code, Why.SHUTDOWN, "stopped: the replica is shutting down")
        if self._why is None and death.why == ZYGOTE_DIED:
            text = "the process that all children of this replica come from died, and they died with it"
            return Ending(Outcome.CRASHED, error_text=text)
        return of_death(death.code, self._why, self._text())

    def _text(self) -> str:
        """Why we ended it, in a sentence."""
        match self._why:
            case Why.TIMEOUT:
                return f"timed out after {self._body.timeout:g} s"
            case Why.CANCEL:
                return "cancelled on request"
            case Why.SHUTDOWN:
                return "stopped: the replica is shutting down"
            case Why.LEASE_LOST:
                return "stopped: the lease was lost"
            case None:
                return ""
