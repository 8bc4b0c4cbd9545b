"""What a long history costs: claims, ends and every list, with 0, 1 and 5 million finished runs.

    python -m benchmarks.history [--rows 0 1000000 5000000] [--jobs 1000] [--repeats 60]

The rows are made by generate_series and spread over the jobs; one in 499 failed, each has its attempt. `claim_1_us` and
`end_1_us`: one run in a statement; `claim_250_us` and `end_250_us`: for one run of 250 in a statement; floor and
Soloist take turns. `list_…_ms`: the queries behind `soloist runs` and the start of a replica. All figures are the tenth
percentile: what it costs while nobody else takes the core. Prints the ratio to the smallest history. Fails when a claim
did not win all it asked for.
"""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from benchmarks import floor
from benchmarks.ground import Figures, Ground, Work, ground, percentile, ratios, report
from benchmarks.history_lists import lists
from benchmarks.replica import replica_of
from scheduler.core.model import Birth, Ending, Outcome, Status
from scheduler.core.policy import Decision
from scheduler.runner.clock import SystemClock, new_id
from scheduler.runner.plan import Planned
from scheduler.runner.service import Parts
from scheduler.store import claims, runs
from scheduler.store.claims import Owner, Want
from scheduler.store.engine import Session
from scheduler.store.visit import visit_session

SPACING = 6.0  # seconds between two finished runs: 5 million reach back a year
FILL = (
    """CREATE TEMP TABLE made AS
SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(i %% 4096), 3, '0') || '8'
        || lpad(to_hex(i), 15, '0'))::uuid AS id, i, at,
       (SELECT min(id) FROM soloist.job) + i %% %(jobs)s::int AS job,
       CASE WHEN i %% 499 = 0 THEN 'failed' ELSE 'succeeded' END AS status
FROM generate_series(%(first)s::int, %(last)s::int) i, LATERAL (
    SELECT now() - interval '2 h' - make_interval(secs => (%(most)s::int - i) * %(spacing)s::float8) AS at) instant""",
    """INSERT INTO soloist.run (id, job, run_key, scheduled_at, created_at, trigger, status, exclusive, attempt,
    claimed_by, claimed_until, started_at, finished_at, spec_hash, last_error)
SELECT id, job, 'k' || i, at, at, 'schedule', status, true, 1, %(me)s, at + interval '15 s', at, at + interval '1 s',
    '0123456789abcdef', CASE status WHEN 'failed' THEN 'ValueError: no' END FROM made""",
    """INSERT INTO soloist.attempt (run, number, replica, replica_name, started_at, finished_at, outcome, output_tail,
    output_bytes) SELECT id, 1, %(me)s, 'r0', at, at + interval '1 s', status, '', 0 FROM made""",
    """INSERT INTO floor.run (job, due, status, started, finished)
SELECT 'j' || i %% %(jobs)s::int, at, CASE status WHEN 'failed' THEN 3 ELSE 2 END, at, at FROM made""",
    "DROP TABLE made",
)


def fill(place: Ground, owner: Owner, span: tuple[int, int, int], jobs: int) -> None:
    """Finished runs number `span[0]` to `span[1]` of `span[2]`, on both sides."""
    first, last, most = span
    words = {"first": first, "last": last, "most": most, "jobs": jobs, "me": owner.id, "spacing": SPACING}
    place.connection.execute("SET session_replication_role = replica")  # no foreign key is asked for each row
    for begin in range(first, last + 1, 500_000):
        words |= {"first": begin, "last": min(last, begin + 499_999)}
        for statement in FILL:
            place.connection.execute(statement, words if "%" in statement else None)
    place.connection.execute("SET session_replication_role = origin")
    place.sql("VACUUM ANALYZE")
    place.sql("CHECKPOINT")


class Soloist:
    """The protocol's own statements, on one session."""

    def __init__(self, session: Session, owner: Owner, jobs: Sequence[Planned]) -> None:
        self._session, self._owner, self._jobs = session, owner, jobs
        self._marks = {job.id: job.watermark for job in jobs}
        self._turn = 0

    def claim(self, size: int) -> list[uuid.UUID]:
        """Claim one tick of each of the next `size` jobs."""
        chosen = [self._jobs[(self._turn + i) % len(self._jobs)] for i in range(size)]
        self._turn += size
        wants = []
        for job in chosen:
            at = self._marks[job.id] + timedelta(milliseconds=1)
            birth = Birth(at, f"bench:{at.isoformat()}", f"bench:{at.isoformat()}", Status.RUNNING)
            wants.append(Want(job.id, job.spec_hash, self._marks[job.id], ((new_id(), birth),)))
            self._marks[job.id] = at
        answer = claims.claim(self._session, self._owner, wants)
        return [made.id for made in answer.made if made.status is Status.RUNNING]

    def end(self, ids: Sequence[uuid.UUID]) -> int:
        """Write that they succeeded."""
        done = Decision(Status.SUCCEEDED)
        ends = [runs.Settlement(id_, 1, done, Ending(Outcome.SUCCEEDED)) for id_ in ids]
        return len(runs.settle(self._session, self._owner, ends))


class Floor:
    """The floor's, on another."""

    def __init__(self, place: Ground, jobs: int) -> None:
        self._place, self._jobs = place, jobs
        self._due = time.time() + 1e6

    def claim(self, size: int) -> list[int]:
        """As above."""
        self._due += 1
        names = [f"j{i % self._jobs}" for i in range(size)]
        rows = self._place.connection.execute(floor.CLAIM, (self._due, 0, names), prepare=True).fetchall()
        return [id_ for id_, _ in rows]

    def end(self, ids: Sequence[int]) -> int:
        """As above."""
        return self._place.connection.execute(floor.FINISH, (ids,), prepare=True).rowcount


def measure_writes(sides: dict[str, Any], repeats: int, wrong: list[str]) -> dict[str, Figures]:
    """What it costs while nobody else takes the core (the tenth percentile), the sides in turns."""
    taken: dict[str, dict[str, list[float]]] = {side: {} for side in sides}
    for size in (1, 250):
        for turn in range(repeats + 5):
            for side, player in sides.items():
                begin = time.perf_counter()
                ids = player.claim(size)
                middle = time.perf_counter()
                ended = player.end(ids)
                end = time.perf_counter()
                if len(ids) != size or ended != size:
                    wrong.append(f"{side}: {len(ids)} of {size} claimed, {ended} ended")
                if turn >= 5:  # the first ones are planned
                    taken[side].setdefault(f"claim_{size}_us", []).append((middle - begin) / size * 1e6)
                    taken[side].setdefault(f"end_{size}_us", []).append((end - middle) / size * 1e6)
    return {side: {name: percentile(found, 0.1) for name, found in by.items()} for side, by in taken.items()}


def measure_lists(named: Iterator[tuple[str, Callable[[], object]]], repeats: int) -> Figures:
    """Of each, in ms, as above; fewer repeats of what is slow."""
    found = {}
    for name, query in named:
        taken: list[float] = []
        query()
        while len(taken) < repeats and sum(taken) < 3000:
            begin = time.perf_counter()
            query()
            taken.append((time.perf_counter() - begin) * 1e3)
        found[f"list_{name}_ms"] = percentile(taken, 0.1)
    return found


def prepare(place: Ground, jobs: int) -> Parts:
    """The schema and a plan of so many jobs, on both sides, with an hour's room for ticks."""
    place.sql(floor.DDL)
    far = datetime.now(UTC) + timedelta(hours=12)
    parts, _ = replica_of(Work("soloist", "history", place.url, jobs=jobs, due=far.timestamp())).wire()
    parts.follower.start()
    place.sql("UPDATE soloist.job SET watermark = now() - interval '1 hour'")
    parts.follower.take()
    return cast("Parts", parts)


def main() -> int:
    """Run it; 1 when something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[0, 1_000_000, 5_000_000])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=60)
    options = parser.parse_args()
    wrong: list[str] = []
    with ground() as place:
        parts = prepare(place, options.jobs)
        owner, jobs = parts.room.owner, sorted(parts.plan.jobs().values(), key=lambda job: job.id)
        first: Figures = {}
        have = 0
        with visit_session(place.url, "bench", SystemClock()) as session:
            sides = {"floor": Floor(place, options.jobs), "soloist": Soloist(session, owner, jobs)}
            for rows in sorted(options.rows):
                if rows > have:
                    fill(place, owner, (have + 1, rows, max(options.rows)), options.jobs)
                    have = rows
                found = measure_writes(sides, options.repeats, wrong)
                found["soloist"] |= measure_lists(lists(place, session, parts, rows), options.repeats)
                first = first or found["soloist"]
                cell = {"rows": rows, "jobs": options.jobs, "repeats": options.repeats}
                report(place, "history", cell, found, wrong)
                print(f"history {rows}: × {min(options.rows)} rows: {ratios(found['soloist'], first)}", flush=True)
        for kind in parts.kinds.values():
            kind.close()
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
