"""The primary dies while replicas claim, and its standby is promoted: nothing twice and nothing lost where commits are
kept; where they are not, what was forgotten is said.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import Postgres
from pooler import Pooler
from replicas import Fleet, Nursery, eventually, jobs_file, once
from sessions import NAMES, terminate_all
from side_by_side import side_by_side

JOBS = 4
STEP = 0.5
FORGET = ("DELETE FROM soloist.run", "UPDATE soloist.job SET watermark = watermark - interval '1 s'")


class Pair:
    """A primary with a streaming standby, and the address of whichever of the two takes writes."""

    def __init__(self, primary: Postgres, standby: Postgres) -> None:
        self.primary, self.standby = primary, standby
        # what the engine asks of a server is that it takes writes; a test that only looks has to ask for it itself
        self.url = f"postgresql://postgres@/postgres?host={primary.folder},{standby.folder}"

    def synchronous(self) -> None:
        """From now on a commit is acknowledged when the standby has it too."""
        self.primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        state = "SELECT sync_state FROM pg_stat_replication"
        eventually(lambda: self.primary.sql(state) in ([("sync",)], [("quorum",)]), "the standby is synchronous")
        self.standby.sql("ALTER SYSTEM SET synchronous_standby_names = ''")  # it has none of its own

    def level(self) -> None:
        """Wait until the standby has all that there is now."""
        ((here,),) = self.primary.sql("SELECT pg_current_wal_flush_lsn()::text")
        behind = f"SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '{here}') >= 0"
        eventually(lambda: self.standby.sql(behind) == [(True,)], "the standby has caught up")

    def lag(self) -> None:
        """From now on the standby hears nothing more; commits are acknowledged all the same."""
        self.standby.sql("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        eventually(lambda: not self.primary.sql("SELECT 1 FROM pg_stat_replication"), "nothing is sent any more")

    def fail_over(self) -> None:
        self.primary.stop("immediate")
        self.standby.promote()


@pytest.fixture
def pair(postgres: Postgres, cluster_folder: Callable[[], Path]) -> Iterator[Pair]:
    standby = postgres.standby(cluster_folder())
    yield Pair(postgres, standby)
    standby.close()


@pytest.fixture
def pair_fleet(nursery: Nursery, tmp_path: Path, pair: Pair) -> Iterator[Fleet]:
    """Its replicas follow the primary; what the test asks goes by the same way."""
    made = Fleet(nursery, tmp_path, f"{pair.url}&target_session_attrs=read-write")
    yield made
    made.close()


def _plan(fleet: Fleet) -> str:
    path = str(fleet.effects)
    tick = {"call": "effects:append", "every": "500ms", "overlap": "allow", "isolation": "thread"}
    tick |= {"args": {"path": path}, "misfire": {"policy": "all", "limit": 10_000}}
    hold = {"call": "effects:hold", **once(), "args": {"path": path, "gate": str(fleet.gate)}, "crash_limit": 100}
    return jobs_file(hold=hold, **{f"tick_{number}": tick for number in range(JOBS)})


def _daily(fleet: Fleet) -> str:
    daily = {"call": "effects:append", "every": "24h", "misfire": {"first_sight": "run"}, "isolation": "thread"}
    return jobs_file(daily={**daily, "args": {"path": str(fleet.effects)}})


def _ticks(fleet: Fleet, number: int) -> None:
    seen = len(_effects(fleet))
    eventually(lambda: len(_effects(fleet)) >= seen + number, f"{number} more ticks run")


def _effects(fleet: Fleet) -> list[tuple[str, str]]:
    """(job, run key) of each effect of a tick."""
    return [(line[0], line[1]) for line in fleet.lines() if line[0].startswith("tick-")]


def _rows_of_all_ticks(fleet: Fleet) -> None:
    for number in range(JOBS):
        ticks = fleet.sql(
            "SELECT extract(epoch FROM scheduled_at)::float8 FROM soloist.run JOIN soloist.job ON job.id = run.job"
            " WHERE name = %s ORDER BY 1",
            f"tick-{number}",
        )
        assert {after - before for (before,), (after,) in itertools.pairwise(ticks)} == {STEP}, "a tick has no row"


def _no_attempt_twice(fleet: Fleet) -> None:
    """No attempt of a tick has two effects; a tick may have a second attempt, when its owner was overtaken."""
    made = Counter((line[0], line[1], line[2]) for line in fleet.lines() if line[0].startswith("tick-"))
    assert [attempt for attempt, times in made.items() if times > 1] == []


def _forgotten(fleet: Fleet) -> set[tuple[str, str]]:
    """(job, run key) of what replicas found out to be forgotten."""
    events: list[dict[str, Any]] = [e for one in fleet.replicas for e in one.events("CommitForgotten")]
    return {(event["job"], event["run_key"]) for event in events}


def _start(fleet: Fleet, pair: Pair, replicas: int = 3) -> None:
    """By the address as a person writes it: to look for the primary is the engine's own affair."""
    plan = _plan(fleet)  # one file for all: with several, reading the plan anew would hide what a ticker does not learn
    for number in range(replicas):
        fleet.start(plan, f"r{number}", url=pair.url, lease=10.0).ready()
    eventually(lambda: fleet.lines("begin"), "the long body begins")
    _ticks(fleet, 2 * JOBS)
    pair.level()


def test_no_commit_is_lost_and_nothing_is_done_twice(pair_fleet: Fleet, pair: Pair) -> None:
    """Synchronous replication: what was acknowledged is there after the failover."""
    fleet = pair_fleet
    pair.synchronous()
    _start(fleet, pair)
    pair.fail_over()
    _ticks(fleet, 5 * JOBS)
    fleet.gate.touch()
    eventually(lambda: [status for status, _ in fleet.statuses("hold")] == ["succeeded"], "the long run succeeds")
    attempts = Counter((line[0], line[1], line[2]) for line in fleet.lines() if line[0].startswith("tick-"))
    assert [made for made, times in attempts.items() if times > 1] == []
    retried = {made[:2] for made in attempts if made[2] != "1"}
    assert len(_effects(fleet)) - len(set(_effects(fleet))) <= len(retried), (
        "a tick was done twice by two first attempts"
    )
    _rows_of_all_ticks(fleet)
    assert not _forgotten(fleet)
    for replica in fleet.replicas:
        assert replica.exit_code is None, replica.said()
        assert len(eventually(lambda r=replica: r.events("DatabaseLost"), "each has seen it")) <= 3


@pytest.mark.case("C091")
def test_what_an_asynchronous_failover_forgot_is_said(pair_fleet: Fleet, pair: Pair) -> None:
    """Acknowledged claims and outcomes are gone: their ticks are free again, and run twice. Each is reported."""
    fleet = pair_fleet
    _start(fleet, pair)
    pair.lag()
    before = set(_effects(fleet))
    _ticks(fleet, 4 * JOBS)
    lost = set(_effects(fleet)) - before
    pair.fail_over()
    _ticks(fleet, 5 * JOBS)

    def repeated() -> set[tuple[str, str]]:
        return {made for made, times in Counter(_effects(fleet)).items() if times > 1}

    eventually(lambda: len(repeated() & lost) >= JOBS, "the ticks that nobody remembers are made up for")
    eventually(lambda: repeated() <= _forgotten(fleet), "each repeated tick is reported")
    fleet.gate.touch()
    eventually(lambda: [status for status, _ in fleet.statuses("hold")] == ["succeeded"], "the long run succeeds")
    assert side_by_side(fleet, "hold") == [], "it was claimed before: nothing of it is forgotten"
    _rows_of_all_ticks(fleet)
    for replica in fleet.replicas:
        assert replica.exit_code is None, replica.said()


@pytest.mark.own_session
@pytest.mark.case("C091")
def test_a_claim_that_is_forgotten_while_its_body_works(fleet: Fleet) -> None:
    """As after such a failover: the row of a running run is gone. Its owner says so, and stops; nobody begins anew."""
    plan = _plan(fleet)
    fleet.start(plan, lease=15.0).ready()
    fleet.start(plan, lease=15.0).ready()
    eventually(lambda: fleet.lines("begin"), "the body begins")
    owner = fleet.owner_of("hold")
    fleet.sql("DELETE FROM soloist.run WHERE job = (SELECT id FROM soloist.job WHERE name = 'hold')")
    terminate_all(fleet, *NAMES)
    found = eventually(lambda: owner.events("CommitForgotten", job="hold"), "its owner says so")
    assert found[0]["status"] == "running"
    eventually(lambda: fleet.lines("beat")[-1] == (threading.Event().wait(1), fleet.lines("beat")[-1])[1], "it stops")
    assert len(fleet.lines("begin")) == 1
    assert len(owner.events("CommitForgotten", job="hold")) == 1


@pytest.mark.own_session
@pytest.mark.case("C091")
def test_a_forgotten_tick_is_made_up_for_long_before_the_next_one(fleet: Fleet) -> None:
    """As after such a failover: the watermark is back, and the run is gone. By memory nothing is due for a day."""
    for _ in range(2):
        fleet.start(_daily(fleet)).ready()
    eventually(lambda: fleet.statuses("daily") == [("succeeded", 1)], "it runs")
    for statement in FORGET:
        fleet.sql(statement)
    terminate_all(fleet, *NAMES)
    eventually(lambda: fleet.statuses("daily") == [("succeeded", 1)], "and once more")
    assert len(fleet.lines("daily")) == 2
    assert len({line[1] for line in fleet.lines("daily")}) == 1, "the same tick"


@pytest.mark.case("C091")
def test_behind_a_pooler_the_server_tells_that_it_is_another_one(
    nursery: Nursery, tmp_path: Path, postgres: Postgres, cluster_folder: Callable[[], Path]
) -> None:
    """The sessions stand all the while: it is the pooler that goes over."""
    folder = cluster_folder()
    folder.chmod(0o755)  # for the account that PgBouncer runs as
    between = Pooler(postgres.url, folder)
    fleet = Fleet(nursery, tmp_path, between.url_of(postgres.url))
    try:
        for _ in range(2):
            fleet.start(_daily(fleet)).ready()
        eventually(lambda: fleet.statuses("daily") == [("succeeded", 1)], "it runs")
        between.ask("PAUSE")
        postgres.sql(*FORGET)
        postgres.restart()
        between.ask("RESUME")
        eventually(lambda: fleet.statuses("daily") == [("succeeded", 1)], "and once more")
        assert len(fleet.lines("daily")) == 2
        eventually(lambda: _forgotten(fleet), "it is said")
    finally:
        fleet.close()
        between.close()


@pytest.mark.full
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("number", range(10))
def test_failovers_one_after_another(pair_fleet: Fleet, pair: Pair, number: int) -> None:
    """Another moment of the claim and the settlement each time."""
    fleet = pair_fleet
    pair.synchronous()
    _start(fleet, pair)
    threading.Event().wait(0.05 * number)
    pair.fail_over()
    _ticks(fleet, 5 * JOBS)
    _no_attempt_twice(fleet)
    _rows_of_all_ticks(fleet)
    assert not _forgotten(fleet)
