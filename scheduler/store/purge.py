"""Retention of Soloist's own history: finished runs past the retention of their group, a batch at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from scheduler.store.sql import load

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from scheduler.core.context import RunContext

GROUPS = ("succeeded", "failed", "skipped")
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """`deleted`: runs by group (with `dry_run`: would go). `limit_hit`: more are expired than `max_rows` lets go."""

    deleted: dict[str, int]
    dry_run: bool
    limit_hit: bool


def purge_history(
    connection: Connection,
    *,
    retention: Mapping[str, float | None] | None = None,
    batch: int = 1000,
    max_rows: int | None = None,
    dry_run: bool = False,
) -> PurgeReport:
    """Delete terminal runs (their attempts go with them) that finished longer ago than their group's retention.

    `retention`: seconds by group; `failed` also holds timed_out, cancelled and lost; a group that is absent or None is
    kept for ever. None takes that of the newest configuration. `max_rows`: at most so many go. Ages are by the
    database's clock. `connection` must not be in a transaction: each batch is one, and `batch` is how many runs it
    looks at. A live run is never touched, and its job's ticks stay accounted for: the watermark does not move.
    """
    kept = _newest_retention(connection) if retention is None else retention
    bounds = _bounds(connection, kept)
    deleted: Counter[str] = Counter()
    if bounds is None:
        return PurgeReport(_by_group(deleted), dry_run=dry_run, limit_hit=False)
    if dry_run:
        return _count(connection, bounds, max_rows)
    after: UUID | None = _FIRST
    while after is not None:
        room = batch if max_rows is None else max_rows - deleted.total()
        step = connection.exec_driver_sql(
            load("purge_batch"), {**bounds, "after": after, "batch": batch, "room": min(room, batch)}
        ).one()
        deleted.update({group: getattr(step, group) for group in GROUPS})
        if max_rows is not None and deleted.total() >= max_rows:
            left = connection.exec_driver_sql(load("purge_left"), {**bounds, "after": after}).scalar_one()
            connection.commit()
            return PurgeReport(_by_group(deleted), dry_run=False, limit_hit=left)
        connection.commit()
        after = step.last
    return PurgeReport(_by_group(deleted), dry_run=False, limit_hit=False)


def history_of(ctx: RunContext, *, max_rows: int | None = None, dry_run: bool = False) -> dict[str, Any]:
    """`purge_history` for a job's function, over `ctx.connect()`: the report as a plain dict."""
    with ctx.connect() as connection:
        return asdict(purge_history(connection, max_rows=max_rows, dry_run=dry_run))


def _count(connection: Connection, bounds: dict[str, Any], max_rows: int | None) -> PurgeReport:
    counted: Counter[str] = Counter({row[0]: row[1] for row in connection.exec_driver_sql(load("purge_count"), bounds)})
    connection.rollback()
    over = max_rows is not None and counted.total() > max_rows
    return PurgeReport(_by_group(counted), dry_run=True, limit_hit=over)


def _newest_retention(connection: Connection) -> Mapping[str, float | None]:
    found = connection.exec_driver_sql(load("purge_retention")).scalar_one_or_none()
    return found if found is not None else {}  # no configuration was ever registered: nothing is known to be expired


def _bounds(connection: Connection, retention: Mapping[str, float | None]) -> dict[str, Any] | None:
    """The cut-off of each group, fixed for the whole purge, and the id below which all of them lie."""
    unknown = sorted(set(retention) - set(GROUPS))
    if unknown:
        raise ValueError(f"retention knows {', '.join(GROUPS)}; not {', '.join(unknown)}")
    seconds = {group: retention.get(group) for group in GROUPS}
    if all(value is None for value in seconds.values()):
        return None
    row = connection.exec_driver_sql(load("purge_bounds"), seconds).one()
    connection.rollback()
    return dict(row._mapping)


def _by_group(deleted: Counter[str]) -> dict[str, int]:
    return {group: deleted[group] for group in GROUPS}
