"""A storm: six replicas and nine jobs with a tick every half second, while everything around them goes wrong.

python -m chaos.storm --seconds 600 --seed 1     (what `make chaos` does)
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from chaos.agenda import Agenda
from chaos.evidence import History, Rules
from chaos.faults import Fault, Kind, Weather, forecast
from chaos.gather import Marks, gather, seen, watermarks
from chaos.history import Finding, check
from chaos.slot import Slot
from chaos.storm_jobs import EVERY, Job, at_rest, storm_jobs
from own_server import OwnServer
from patience import give_schema
from replicas import Fleet, Nursery, Replica, eventually, jobs_file


class Storm:
    """Runs faults against a fleet on a server of its own.

    `jobs`: those of `storm_jobs` that take part (none named: all). `statements`: a folder with `sql/*.sql` in place of
    the engine's.
    """

    def __init__(
        self,
        nursery: Nursery,
        folder: Path,
        server: OwnServer,
        weather: Weather,
        *,
        jobs: tuple[str, ...] = (),
        statements: Path | None = None,
    ) -> None:
        self.server, self._weather, self._statements = server, weather, statements
        give_schema(server.url)
        self.fleet = Fleet(nursery, folder, server.url)
        known = storm_jobs(self.fleet.effects)
        self.jobs: dict[str, Job] = {name: known[name] for name in jobs or known}
        self.faults: Counter[Kind] = Counter()
        self.deaths: list[str] = []
        self._agenda = Agenda()
        self._slots: list[Slot] = []

    def rage(self, faults: Iterable[Fault]) -> History:
        """All of it: calm, storm, calm; then what is owed is worked off, and the evidence is gathered."""
        self.fleet.sql("CREATE TABLE public.effect (run uuid NOT NULL, attempt int NOT NULL)")
        self.fleet.apply(self._file())
        before = watermarks(self.fleet)
        try:
            for number in range(self._weather.slots):
                self._slots.append(Slot(number, self.server.url, self._agenda, self.start, self._bury))
            for slot in self._slots:
                slot.replica.ready()
            for fault in faults:
                self._agenda.after(fault.at, lambda fault=fault: self._strike(fault))
            self._agenda.after(self._weather.seconds, lambda: None)
            self._agenda.follow()
            self._end()
            after = self._work_off()
            return gather(self.fleet, self._rules(), EVERY, before, after)
        finally:
            self.close()

    def start(self, name: str, url: str, jobs: str | None = None) -> Replica:
        settings = {"lease": self._weather.lease, "drain": 2.0, "seats": 16}
        return self.fleet.start(jobs or self._file(), name, url=url, statements=self._statements, **settings)

    def close(self) -> None:
        self.fleet.close()
        for slot in self._slots:
            slot.proxy.close()

    def _file(self) -> str:
        return jobs_file(**{name: entry for name, (entry, _) in self.jobs.items()})

    def _rules(self) -> dict[str, Rules]:
        return {name: rules for name, (_, rules) in self.jobs.items()}

    def _end(self) -> None:
        for slot in self._slots:
            slot.end()
        for slot in self._slots:
            self._await_end(slot.replica)

    def _work_off(self) -> Marks:
        """Put a plan without ticks in force: every tick owed gets its row, and whatever is queued is run."""
        calm = jobs_file(**{name: at_rest(entry) for name, (entry, _) in self.jobs.items()})
        self.fleet.apply(calm)
        marks = watermarks(self.fleet)
        last = [self.start(f"last{number}", self.server.url, jobs=calm).ready() for number in range(2)]
        live = (
            "SELECT name, run_key, status FROM soloist.run JOIN soloist.job ON job.id = job WHERE finished_at IS NULL"
        )
        with suppress(pytest.fail.Exception):  # the checker says better what has not ended
            eventually(lambda: not self.fleet.sql(live), "all runs have ended", 60)
        for replica in last:
            with suppress(ProcessLookupError):  # how it ended is said when it is buried
                replica.signal(signal.SIGTERM)
        for replica in last:
            self._await_end(replica)
        return marks

    def _await_end(self, replica: Replica) -> None:
        with suppress(pytest.fail.Exception):  # said below
            replica.ended()
        self._bury(replica)

    def _bury(self, replica: Replica) -> None:
        """Whoever was not killed must have gone in good order."""
        if replica.exit_code != 0:
            self.deaths.append(f"{replica.name}: exit {replica.exit_code}\n{replica.said()[-1500:]}")

    def _strike(self, fault: Fault) -> None:
        if fault.kind is Kind.RESTART:
            self.server.restart("fast" if fault.chance < 0.5 else "immediate")
        elif fault.kind is Kind.TERMINATE:
            self._terminate(fault.chance)
        elif not self._slots[fault.slot].strike(fault):
            return
        self.faults[fault.kind] += 1

    def _terminate(self, chance: float) -> None:
        engines = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'soloist %' ORDER BY backend_start, pid"
        found = [pid for (pid,) in self.fleet.sql(engines)]
        if found:
            self.fleet.sql("SELECT pg_terminate_backend(%s)", found[int(chance * len(found))])


@dataclass(frozen=True, slots=True)
class Report:
    """What a storm showed."""

    findings: list[Finding]
    deaths: list[str]
    seen: Counter[str]
    faults: Counter[Kind]

    def __str__(self) -> str:
        facts = ", ".join(f"{what}: {number}" for what, number in self.seen.items())
        faults = ", ".join(f"{kind}: {number}" for kind, number in sorted(self.faults.items()))
        found = "\n".join(f"  {finding.breach}: {finding.about}: {finding.detail}" for finding in self.findings)
        deaths = "\n".join(self.deaths)
        return f"faults: {faults}\nseen: {facts}\nfindings: {len(self.findings)}\n{found}\n{deaths}".rstrip()


def report(storm: Storm, history: History) -> Report:
    failed = [str(event) for replica in storm.fleet.replicas for event in replica.events("EngineFailed")]
    return Report(check(history), storm.deaths + failed, seen(storm.fleet), storm.faults)


def main() -> int:
    """0: nothing was found."""
    parser = argparse.ArgumentParser(prog="chaos.storm", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}, {chosen.seconds:g} s", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="storm-"))
    nursery, server = Nursery(), OwnServer(folder)
    weather = Weather(chosen.seconds, slots=6)
    try:
        storm = Storm(nursery, folder, server, weather)
        said = report(storm, storm.rage(forecast(chosen.seed, weather)))
        print(said)
    finally:
        nursery.close()
        server.close()
    if said.findings or said.deaths:
        print(f"the traces are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
