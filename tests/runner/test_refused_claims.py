"""The database refuses exactly what proves ownership: without the proof nothing begins, and nothing goes on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from local import Local
from pooler import mode
from psycopg.conninfo import make_conninfo
from replicas import eventually, jobs_file, once
from scene import Scene

from scheduler.core.events import AttemptStarted, DatabaseLost, EngineFailed, TickWon

DEEDS = {
    "its session is ended": "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1);",
    "it is cancelled, as by a statement timeout": "PERFORM pg_cancel_backend(pg_backend_pid()); PERFORM pg_sleep(1);",
    "no space is left": "RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full';",
    "read-only after a failover": "RAISE EXCEPTION 'read-only' USING ERRCODE = 'read_only_sql_transaction';",
    "somebody has the lock": "RAISE EXCEPTION 'locked' USING ERRCODE = 'lock_not_available';",
    "the right was revoked": "RAISE EXCEPTION 'permission denied' USING ERRCODE = 'insufficient_privilege';",
    "a fault of the server's own": "RAISE EXCEPTION 'internal' USING ERRCODE = 'internal_error';",
}
ENDS_THE_REPLICA = ("the right was revoked", "a fault of the server's own")


class Sickbed:
    """A database with a role of its own, `who`, for whose sessions something can be made to fail."""

    def __init__(self, url: str) -> None:
        self.facts = Scene(url)
        ((row),) = self.facts.sql("SELECT current_database() AS name")
        self.who = f"sick_{row['name']}"
        self.url = make_conninfo(url, user=self.who)
        self.facts.sql(f"CREATE ROLE {self.who} LOGIN")
        self.facts.sql(f"GRANT USAGE ON SCHEMA soloist TO {self.who}")
        self.facts.sql(f"GRANT ALL ON ALL TABLES IN SCHEMA soloist TO {self.who}")
        self.facts.sql("CREATE SEQUENCE public.tries; GRANT ALL ON public.tries TO public")

    def refuse(self, event: str, when: str, deed: str) -> None:
        """From now on this befalls each of its inserts or updates of a run for which `when` holds."""
        self.facts.sql(
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f"  IF session_user = '{self.who}' AND {when} THEN PERFORM nextval('public.tries'); {deed} END IF;"
            "  RETURN NEW; END $$"
        )
        self.facts.sql(
            f"CREATE TRIGGER refuse BEFORE {event} ON soloist.run FOR EACH ROW EXECUTE FUNCTION public.refuse()"
        )

    def tries(self) -> int:
        """How often it was refused; a sequence keeps what a rollback undoes."""
        return int(
            self.facts.sql("SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS n FROM public.tries")[0]["n"]
        )

    def heal(self) -> None:
        self.facts.sql("DROP TRIGGER refuse ON soloist.run")

    def close(self) -> None:
        self.facts.sql(f"DROP OWNED BY {self.who}")
        self.facts.sql(f"DROP ROLE {self.who}")
        self.facts.leave()


@pytest.fixture
def sickbed(database_url: str) -> Iterator[Sickbed]:
    made = Sickbed(database_url)
    yield made
    made.close()


@pytest.fixture
def start(sickbed: Sickbed) -> Iterator[Callable[..., Local]]:
    made: list[Local] = []

    def begin(url: str, jobs: str, **settings: Any) -> Local:
        made.append(Local(url, jobs, **settings))
        return made[-1]

    yield begin
    for local in made:
        local.close()


Start = Callable[..., Local]


def _ticks(tmp_path: Path, **fields: Any) -> str:
    tick = {"call": "effects:append", "every": "250ms", "isolation": "thread", "args": {"path": str(tmp_path / "seen")}}
    return jobs_file(tick={**tick, "overlap": "allow", "misfire": {"policy": "all"}, **fields})


def _accounted(facts: Scene, tmp_path: Path) -> None:
    """Each tick has its row, and each row that ran has one effect."""
    rows = facts.rows("tick")
    steps = {(b["scheduled_at"] - a["scheduled_at"]).total_seconds() for a, b in itertools.pairwise(rows)}
    assert steps == {0.25}
    keys = [line.split()[1] for line in (tmp_path / "seen").read_text().splitlines()]
    assert len(keys) == len(set(keys)), "an effect was done twice"


@pytest.mark.case("C046")
@pytest.mark.parametrize("deed", DEEDS)
def test_a_claim_that_is_refused_begins_nothing(
    sickbed: Sickbed, start: Start, database_url: str, tmp_path: Path, deed: str
) -> None:
    jobs = _ticks(tmp_path)
    sickbed.refuse("INSERT", "true", DEEDS[deed])
    sick = start(sickbed.url, jobs, name="sick")
    eventually(lambda: sickbed.tries() >= 2 or sick.of(EngineFailed), "it has been refused again and again")
    well = start(database_url, jobs, name="well")
    eventually(lambda: len(well.of(AttemptStarted)) >= 6, "the other does the work")
    assert not sick.of(AttemptStarted)
    assert not sick.of(TickWon)
    assert bool(sick.of(EngineFailed)) == (deed in ENDS_THE_REPLICA), "what no waiting mends ends the replica"
    assert sick.service.stopping.is_set() == bool(sick.of(EngineFailed))
    sickbed.heal()
    well.close()
    if not sick.of(EngineFailed):
        eventually(lambda: sick.of(AttemptStarted), "once it is taken again, it begins")
    sick.close()
    _accounted(sickbed.facts, tmp_path)


@pytest.mark.case("C046")
@pytest.mark.parametrize("deed", DEEDS)
def test_a_queued_run_that_may_not_be_taken_begins_nothing(
    sickbed: Sickbed, start: Start, tmp_path: Path, deed: str
) -> None:
    sickbed.refuse("UPDATE", "OLD.status = 'queued' AND NEW.status = 'running'", DEEDS[deed])
    sick = start(sickbed.url, _ticks(tmp_path, every="24h"), name="sick")
    sickbed.facts.sql(
        "INSERT INTO soloist.run (id, job, run_key, scheduled_at, trigger, status, exclusive, ready_at)"
        " SELECT gen_random_uuid(), id, 'manual:1', now(), 'manual', 'queued', false, now() FROM soloist.job"
    )
    eventually(lambda: sickbed.tries() >= 2 or sick.of(EngineFailed), "it has been refused again and again")
    assert [(row["status"], row["attempt"]) for row in sickbed.facts.rows()] == [("queued", 0)]
    assert not sick.of(AttemptStarted)
    sickbed.heal()
    if not sick.of(EngineFailed):
        eventually(lambda: [row["status"] for row in sickbed.facts.rows()] == ["succeeded"], "it is taken after all")


def _held(tmp_path: Path, isolation: str = "thread") -> str:
    args = {"path": str(tmp_path / "seen"), "gate": str(tmp_path / "gate"), "slow": [1]}
    return jobs_file(work={"call": "effects:hold", **once(), "args": args, "isolation": isolation})


@pytest.mark.case("C046")
@pytest.mark.parametrize(
    ("deed", "isolation", "lease"),
    [(deed, "thread", 5.0) for deed in DEEDS] + [("it is cancelled, as by a statement timeout", "process", 8.0)],
)
def test_an_owner_whose_renewals_are_refused_stops_before_anybody_else_begins(
    sickbed: Sickbed, start: Start, database_url: str, tmp_path: Path, deed: str, isolation: str, lease: float
) -> None:
    """It may still read, and write outcomes: what it may not do is to believe."""
    jobs, seen = _held(tmp_path, isolation), tmp_path / "seen"
    sickbed.refuse("UPDATE", "OLD.status = 'running' AND NEW.status = 'running'", DEEDS[deed])
    sick = start(sickbed.url, jobs, name="sick", lease=lease)
    eventually(seen.exists, "its body begins")
    start(database_url, jobs, name="well", lease=lease)
    facts = sickbed.facts
    eventually(lambda: [row["status"] for row in facts.rows()] == ["succeeded"], "a later attempt succeeds")
    assert sickbed.tries() >= 1
    (row,) = facts.rows()
    assert row["attempt"] > 1
    words = [line.split() for line in seen.read_text().split("\n")[:-1]]  # the first body may still be writing
    assert not [word for word in words if word[0] == "end" and word[3] == "1"], "the first body did not come to its end"
    # in a child it may never begin: until that lives, the refused renewal is known
    beats = [n for n, word in enumerate(words) if word[0] == "beat" and word[3] == "1"]
    later = [n for n, word in enumerate(words) if word[0] == "begin" and word[3] != "1"]
    assert max(beats, default=-1) < later[0], "the second body began while the first was at work"
    assert sick.of(AttemptStarted)


@pytest.mark.case("C046")
def test_an_outcome_that_is_refused_for_a_while_is_written_once(sickbed: Sickbed, start: Start, tmp_path: Path) -> None:
    when = "OLD.status = 'running' AND NEW.finished_at IS NOT NULL AND nextval('public.tries') < 6"
    sickbed.refuse("UPDATE", when, DEEDS["it is cancelled, as by a statement timeout"])
    (tmp_path / "gate").touch()
    start(sickbed.url, _held(tmp_path), name="sick", lease=60.0)
    eventually(lambda: [r["status"] for r in sickbed.facts.rows()] == ["succeeded"], "it is written in the end")
    assert [row["attempt"] for row in sickbed.facts.rows()] == [1]
    assert sum(line.startswith("begin") for line in (tmp_path / "seen").read_text().splitlines()) == 1


@pytest.mark.case("C046")
@pytest.mark.skipif(mode() is not None, reason="a role's timeout reaches a start behind a pooler")
def test_a_roles_own_settings_do_not_reach_the_engine(sickbed: Sickbed, start: Start, tmp_path: Path) -> None:
    """A deadline of a millisecond, another isolation, another zone: sensible for somebody's reports, not for this."""
    for setting in (
        "statement_timeout = '1ms'",
        "lock_timeout = '1ms'",
        "idle_in_transaction_session_timeout = '1ms'",
        "default_transaction_isolation = 'serializable'",
        "search_path = 'nowhere'",
        "TimeZone = 'Asia/Tokyo'",
        "DateStyle = 'SQL, DMY'",
        "IntervalStyle = 'sql_standard'",
        "extra_float_digits = 0",
        "plan_cache_mode = 'force_custom_plan'",
    ):
        sickbed.facts.sql(f"ALTER ROLE {sickbed.who} SET {setting}")
    local = start(sickbed.url, _ticks(tmp_path))
    eventually(lambda: len(local.of(AttemptStarted)) >= 6, "it ticks and runs")
    local.close()
    assert not local.of(DatabaseLost)
    assert not local.of(EngineFailed)
    _accounted(sickbed.facts, tmp_path)
