"""A place in the fleet of a storm: a proxy, and whoever lives behind it at present."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from chaos.agenda import Agenda
from chaos.faults import Fault, Kind
from chaos.storm_jobs import EVERY
from proxy import Proxy
from replicas import Replica

UNREACHABLE = 8  # the exit code of a replica that came while the server was away
CLAIMS, SETTLES = b"soloist worker", b"soloist settler"  # the sessions whose answers are worth losing


class Slot:
    """`busy`: a fault is at work on it, or its replica is not up yet; there is one at a time.

    `start` makes a replica of this name behind this proxy's address; `bury` is told of one that went by itself.
    """

    def __init__(
        self,
        number: int,
        url: str,
        agenda: Agenda,
        start: Callable[[str, str], Replica],
        bury: Callable[[Replica], None],
    ) -> None:
        self._number, self._agenda, self._start, self._bury = number, agenda, start, bury
        self._lives = itertools.count()
        self.proxy = Proxy(url)
        self.busy = False
        self.replica = self._born()

    def gone(self) -> bool:
        """Whether nobody lives here."""
        return self.replica.exit_code is not None

    def strike(self, fault: Fault) -> bool:
        """Begin the fault, and see to its end; False: not now."""
        if self.busy:
            return False
        if self.gone():
            self._go()
            return False
        self.busy = True
        self._begin(fault)
        return True

    def end(self) -> None:
        """Ask whoever lives here to go."""
        self._send(signal.SIGTERM)

    def _send(self, number: signal.Signals) -> None:
        """One that has just gone by itself, or goes while it is frozen, is found at the next look."""
        if not self.gone():
            with suppress(ProcessLookupError):
                self.replica.signal(number)

    def _begin(self, fault: Fault) -> None:
        match fault.kind:
            case Kind.FREEZE:
                self._send(signal.SIGSTOP)
                self._mend(fault.lasts, lambda: self._send(signal.SIGCONT))
            case Kind.KILL:
                self._send(signal.SIGKILL)
                self._agenda.after(fault.lasts, self._again)
            case Kind.TERM:
                self._send(signal.SIGTERM)
                self._agenda.when(self.gone, self._go)
            case Kind.STALL:
                self.proxy.stall()
                self._mend(fault.lasts, self.proxy.flow)
            case Kind.CUT:
                self.proxy.cut()
                self._mend(fault.lasts, lambda: None)
            case Kind.REFUSE:
                self.proxy.refuse()
                self.proxy.cut()
                self._mend(fault.lasts, self.proxy.admit)
            case Kind.LOSE_ANSWER:
                self._lose_answer(fault)

    def _lose_answer(self, fault: Fault) -> None:
        """Of a settlement, or of a claim: then just before a tick, when the next answer is most likely a claim's."""
        nbytes = int(fault.chance * 1000) % 40  # nothing of the answer, or its beginning
        session = SETTLES if fault.chance < 0.5 else CLAIMS
        wait = 0.0 if session is SETTLES else EVERY - (time.time() + 0.01) % EVERY
        self._agenda.after(wait, lambda: self.proxy.cut_after(nbytes, "client", session))
        self._mend(wait + fault.lasts, self.proxy.forget_cuts)

    def _mend(self, seconds: float, mend: Callable[[], None]) -> None:
        def over() -> None:
            mend()
            self.busy = False

        self._agenda.after(seconds, over)

    def _born(self) -> Replica:
        return self._start(f"r{self._number}.{next(self._lives)}", self.proxy.url)

    def _go(self) -> None:
        self._bury(self.replica)
        self._again()

    def _again(self) -> None:
        """Another replica in place of one that is gone."""
        self.busy = True
        self.replica = self._born()
        self._agenda.when(lambda: self.gone() or bool(self.replica.events("ReplicaStarted")), self._up)

    def _up(self) -> None:
        if self.gone():
            if self.replica.exit_code != UNREACHABLE:
                self._bury(self.replica)
            self._agenda.after(0.3, self._again)  # as an orchestrator would
        else:
            self.busy = False
