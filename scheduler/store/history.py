"""Reads of the history, for people and faces. Each is bounded: by a page, by one run, or by the number of jobs.

Rows come as plain dicts whose keys are the words of `-o json`: that is a contract. Instants are aware, UTC; durations
and ages are seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BindParameter,
    Boolean,
    ColumnElement,
    Connection,
    Float,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    case,
    cast,
    extract,
    func,
    lateral,
    null,
    select,
    true,
    union_all,
)

from scheduler.core.errors import NotFound
from scheduler.core.model import SkipReason, Status
from scheduler.store.replicas import SILENCE
from scheduler.store.tables import attempt, job, replica, run

Row = dict[str, Any]
LONGEST_PAGE = 1000
ATTEMPTS_SHOWN = 200
SHORTEST_PREFIX = 8  # hex digits


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which runs: of one job (its id), in some of the states, older than `before`; at most `limit`, newest first."""

    job: int | None = None
    statuses: Sequence[str] = ()
    before: UUID | None = None
    limit: int = 20


def read_jobs_by_name(connection: Connection) -> dict[str, int]:
    """Every job's id by its name; also of removed ones, as their runs are still there."""
    return {name: id_ for name, id_ in connection.execute(select(job.c.name, job.c.id).order_by(job.c.name))}


def read_present_jobs(connection: Connection) -> list[str]:
    """The names of the jobs in the plan in force."""
    return list(connection.execute(select(job.c.name).where(job.c.removed_at.is_(None)).order_by(job.c.name)).scalars())


def list_runs(connection: Connection, query: RunQuery) -> list[Row]:
    """A page of runs, newest first: the id is a UUIDv7, so its order is that of time, and the key of the next page."""
    pages = [_page(query, select(run.c.id).where(run.c.status == _word(status))) for status in set(query.statuses)]
    ids = union_all(*pages) if pages else _page(query, select(run.c.id))
    newest = _listed().where(run.c.id.in_(ids)).order_by(run.c.id.desc())
    return _rows(connection, newest.limit(min(query.limit, LONGEST_PAGE)))


def _page(query: RunQuery, wanted: Select[Any]) -> Select[Any]:
    """The newest of these: as many as the whole page may have."""
    if query.job is not None:
        wanted = wanted.where(run.c.job == query.job)
    if query.before is not None:
        wanted = wanted.where(run.c.id < query.before)
    return wanted.order_by(run.c.id.desc()).limit(min(query.limit, LONGEST_PAGE))


def _word(status: str) -> BindParameter[str]:
    """In the statement's own text: a plan for any state could not use the indexes that hold one or a few of them."""
    return bindparam(None, Status(status).value, Text, literal_execute=True)


def list_last_runs(connection: Connection) -> list[Row]:
    """The newest run of each job that is not removed, by the job's name.

    A lateral join: one probe of an index for each job, however long the history.
    """
    newest = lateral(
        select(run.c.id).where(run.c.job == job.c.id).order_by(run.c.id.desc()).limit(1).correlate(job), name="newest"
    )
    ids = select(newest.c.id).select_from(job.join(newest, true())).where(job.c.removed_at.is_(None))
    return _rows(connection, _listed().where(run.c.id.in_(ids)).order_by(job.c.name))


def find_run(connection: Connection, prefix: str) -> UUID:
    """The run whose id begins with these hex digits (at least eight; hyphens do not count).

    Raises NotFound: not hex, too short, none, or more than one, and then it names some.
    """
    digits = prefix.replace("-", "").lower()
    if not SHORTEST_PREFIX <= len(digits) <= 32 or set(digits) - set("0123456789abcdef"):
        raise NotFound(f'"{prefix}" is not a run id: give the id, or at least its first {SHORTEST_PREFIX} hex digits')
    low, high = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    found = connection.execute(select(run.c.id).where(run.c.id.between(low, high)).order_by(run.c.id.desc()).limit(4))
    ids: list[UUID] = list(found.scalars())
    if not ids:
        raise NotFound(f'no run "{prefix}"; `soloist runs list` shows the newest')
    if len(ids) > 1:
        some = "".join(f"\n  {id_}" for id_ in ids[:3]) + ("\n  …" if len(ids) > 3 else "")
        raise NotFound(f'more than one run begins with "{prefix}": give more digits{some}')
    return ids[0]


def read_run(connection: Connection, id_: UUID) -> Row:
    """Every field of one run, with the names of its job and replica. Raises NotFound."""
    columns = [column for column in run.c if column.name not in ("job", "claimed_by")]
    wanted = (
        select(
            run.c.id,
            job.c.name.label("job"),
            *columns[1:],
            replica.c.name.label("replica"),
            _duration_of_run(),
        )
        .select_from(run.join(job, job.c.id == run.c.job).outerjoin(replica, replica.c.id == run.c.claimed_by))
        .where(run.c.id == id_)
    )
    rows = _rows(connection, wanted)
    if not rows:
        raise NotFound(f"no run {id_}")
    return rows[0]


def read_attempts(connection: Connection, run_id: UUID) -> list[Row]:
    """The attempts that have ended, oldest first, without their output; of more than 200 the newest."""
    columns = [column for column in attempt.c if column.name not in ("run", "output_tail")]
    wanted = (
        select(*columns, _duration(attempt.c.started_at, attempt.c.finished_at))
        .where(attempt.c.run == run_id)
        .order_by(attempt.c.number.desc())
        .limit(ATTEMPTS_SHOWN)
    )
    return _rows(connection, wanted)[::-1]


def read_output(connection: Connection, run_id: UUID, number: int | None = None) -> Row:
    """`number`, `output_tail` and `output_bytes` of an attempt; None takes the last. Raises NotFound.

    An attempt has a row once it has ended; that of a running one is not there yet.
    """
    wanted = select(attempt.c.number, attempt.c.output_tail, attempt.c.output_bytes).where(attempt.c.run == run_id)
    if number is not None:
        wanted = wanted.where(attempt.c.number == number)
    rows = _rows(connection, wanted.order_by(attempt.c.number.desc()).limit(1))
    if not rows:
        which = "no attempt of this run has" if number is None else f"this run has no attempt {number} that has"
        raise NotFound(f"{which} ended; the output is kept when an attempt ends")
    return rows[0]


def read_status(connection: Connection, run_id: UUID) -> tuple[Status, SkipReason | None]:
    """The run's state and, when it was skipped, why. Raises NotFound."""
    found = connection.execute(select(run.c.status, run.c.skip_reason).where(run.c.id == run_id)).one_or_none()
    if found is None:
        raise NotFound(f"no run {run_id}")
    return Status(found[0]), None if found[1] is None else SkipReason(found[1])


def count_live(connection: Connection) -> int:
    """How many replicas are live."""
    alive = replica.c.stopped_at.is_(None) & (_seen_ago() < SILENCE)
    return connection.execute(select(func.count()).select_from(replica).where(alive)).scalar_one()


def list_replicas(connection: Connection, limit: int = 50) -> list[Row]:
    """The replicas seen last, newest sign of life first. `state`: live, silent (no sign for 35 s), or stopped.

    `in_force`: its file is the newest among the live ones.
    """
    seen_ago = _seen_ago()
    state = case(
        (replica.c.stopped_at.is_not(None), "stopped"),
        (seen_ago < SILENCE, "live"),
        else_="silent",
    )
    columns = [column for column in replica.c if column.name not in ("seen_at", "started_at", "stopped_at")]
    live = and_(replica.c.serves, replica.c.stopped_at.is_(None), seen_ago < SILENCE)
    newest = select(func.max(replica.c.generation)).where(live).scalar_subquery()
    wanted = select(
        *columns[1:],
        (replica.c.generation == newest).label("in_force"),
        replica.c.started_at,
        replica.c.seen_at,
        seen_ago.label("seen_ago"),
        state.label("state"),
        replica.c.id,
    )
    return _rows(connection, wanted.order_by(replica.c.seen_at.desc()).limit(min(limit, LONGEST_PAGE)))


def _listed() -> Select[Any]:
    return select(
        run.c.id,
        job.c.name.label("job"),
        run.c.run_key,
        run.c.scheduled_at,
        run.c.trigger,
        run.c.status,
        run.c.skip_reason,
        run.c.attempt,
        replica.c.name.label("replica"),
        run.c.started_at,
        run.c.finished_at,
        _duration_of_run(),
        run.c.last_error,
        _of_many("missed", Integer),
        _of_many("or_more", Boolean),
    ).select_from(run.join(job, job.c.id == run.c.job).outerjoin(replica, replica.c.id == run.c.claimed_by))


def _of_many(name: str, kind: type[Integer | Boolean]) -> ColumnElement[Any]:
    """Of a row that stands for many ticks, what it notes of them (`note_of`). Other results are their jobs' own."""
    counting = run.c.skip_reason.in_([SkipReason.MISSED, SkipReason.PAUSED])
    return case((counting, cast(run.c.result[name].astext, kind)), else_=null()).label(name)


def _duration_of_run() -> ColumnElement[Any]:
    """Of the attempt that runs or was the last; a run that is queued again has its `started_at`, but nothing lasts."""
    at_rest = run.c.status.in_([Status.QUEUED, Status.WAITING])
    return case((at_rest, null()), else_=_duration(run.c.started_at, run.c.finished_at)).label("duration")


def _duration(start: ColumnElement[Any], end: ColumnElement[Any]) -> ColumnElement[Any]:
    """Seconds from start to end, to the database's now while there is no end; NULL where nothing has started."""
    lasted = _seconds(func.coalesce(end, func.clock_timestamp()) - start)
    return case((start.is_(None), null()), else_=func.greatest(lasted, 0.0)).label("duration")


def _seen_ago() -> ColumnElement[float]:
    return _seconds(func.clock_timestamp() - replica.c.seen_at)


def _seconds(interval: ColumnElement[Any]) -> ColumnElement[float]:
    return cast(extract("epoch", interval), Float)


def _rows(connection: Connection, wanted: Select[Any]) -> list[Row]:
    return [dict(row) for row in connection.execute(wanted).mappings()]
