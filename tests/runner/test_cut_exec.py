"""The connection of an `exec` is cut while it claims its run: it knows the run as its own, and leaves none lying."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from proxy import Proxy
from proxy_pair import Cut, Towards
from replicas import HERE, jobs_file
from scene import Scene

from scheduler.app import Soloist
from scheduler.config.jobs_file import parse
from scheduler.config.settings import Settings
from scheduler.core.schedule import latest_upto
from scheduler.runner.single import Single, tick_of


@pytest.fixture
def proxy(database_url: str) -> Iterator[Proxy]:
    with Proxy(database_url) as made:
        yield made


class Pod:
    """One `exec`, started and about to claim: its session stands, on the far side of the proxy."""

    def __init__(self, proxy: Proxy, seen: Path) -> None:
        entry = {"call": "effects:append", "every": "1h", "isolation": "thread", "args": {"path": str(seen)}}
        plan = parse(jobs_file(a=entry).encode(), "jobs.yaml", HERE / "bodies")
        settings = Settings(replica="pod", lease=20.0, drain=1.0, seats=1)
        parts, service = Soloist(settings, plan, proxy.url).wire(only="a")
        at = latest_upto(plan.jobs[0].schedule, parts.room.clock.now() - timedelta(seconds=1))  # type: ignore[arg-type]
        assert at is not None
        self.proxy, self.tick, self.cut = proxy, tick_of(plan.jobs[0], at), None
        self.length = 0
        self._single, self._start = Single(service, parts, lambda _: None), service.start
        service.start = self._started  # type: ignore[method-assign]
        self._planned: tuple[int, Towards] | None = None

    def run(self, nbytes: int | None, towards: Towards) -> Cut | None:
        """To its end, which has to be a good one; the cut that was planned for the claim's exchange."""
        self._planned = None if nbytes is None else (nbytes, towards)
        assert self._single.run(self.tick) == 0
        return self.cut

    def _started(self) -> None:
        self._start()
        if self._planned is not None:
            self.cut = self.proxy.cut_after(*self._planned, matching=b"soloist worker")


@pytest.mark.parametrize("towards", ["server", "client"])
def test_an_exec_whose_claim_is_cut_runs_it_once(proxy: Proxy, facts: Scene, tmp_path: Path, towards: Towards) -> None:
    happened = 0
    for nbytes in (0, 1, 40, 90, 120, 200, 400, 1200, 2400):
        seen = tmp_path / f"seen{nbytes}"
        facts.sql("DELETE FROM soloist.attempt")
        facts.sql("DELETE FROM soloist.run")
        cut = Pod(proxy, seen).run(nbytes, towards)
        proxy.forget_cuts()
        assert cut is not None
        happened += cut.happened.is_set()
        assert len(seen.read_text().splitlines()) == 1, nbytes
        (row,) = facts.rows("a")
        assert (row["status"], row["attempt"], row["crashes"]) == ("succeeded", 1, 0), nbytes
    assert happened > 3
