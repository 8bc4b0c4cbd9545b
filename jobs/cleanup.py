"""Retention: deletes what is expired, a batch at a time, never more than `max_rows` in one run."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, LiteralString, NamedTuple

from psycopg import sql
from sqlalchemy import TextClause, text
from sqlalchemy.exc import IntegrityError

from scheduler import Fatal, RunContext, purge_history

_TABLE = re.compile(r"([A-Za-z_]\w*)\.([A-Za-z_]\w*)", re.ASCII)
_COLUMN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OURS = frozenset({"soloist", "pg_catalog", "information_schema", "pg_toast"})

# What a column's age is compared with. A timestamp without a zone is read as UTC; a date is over when the whole day is.
_CUTOFFS: dict[str, LiteralString] = {
    "timestamp with time zone": "CAST(:cutoff AS timestamptz)",
    "timestamp without time zone": "CAST(:cutoff AS timestamptz) AT TIME ZONE 'UTC'",
    "date": "CAST(CAST(:cutoff AS timestamptz) AT TIME ZONE 'UTC' AS date)",
}
_SINCE: dict[str, LiteralString] = {
    "timestamp with time zone": "CAST(:since AS timestamptz)",
    "timestamp without time zone": "CAST(:since AS timestamp)",
    "date": "CAST(:since AS date)",
}
_LOOK = text(
    """
    SELECT c.relkind, format_type(a.atttypid, NULL) AS column_type, EXISTS (
        SELECT FROM pg_index i
        WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL AND i.indkey[0] = a.attnum
    ) AS indexed
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = :column AND a.attnum > 0 AND NOT a.attisdropped
    WHERE n.nspname = :schema AND c.relname = :table
    """
)
# In seconds: an interval of days would follow the clock changes of the session's zone.
_CUTOFF = text("SELECT clock_timestamp() - make_interval(secs => CAST(:seconds AS float8))")
# ctid finds the rows again without a scan, and needs no key. ONLY, because a child table has the same ctids. Rows that
# somebody has locked are left for the next run. `since` spares a walk over what the batches before left dead.
_DELETE = """
    WITH gone AS (
        DELETE FROM ONLY {table} WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM ONLY {table} WHERE {column} < {cutoff} AND {column} >= {since}
            ORDER BY {column} LIMIT :room FOR UPDATE SKIP LOCKED
        ))
        RETURNING {column} AS age
    )
    SELECT count(*), CAST(max(age) AS text) FROM gone
"""
_COUNT = "SELECT count(*) FROM ONLY {table} WHERE {column} < {cutoff}"
_ANY_LEFT = "SELECT EXISTS (SELECT FROM ONLY {table} WHERE {column} < {cutoff})"


class Target(NamedTuple):
    """A table's column, as quoted SQL."""

    name: str
    table: sql.Identifier
    column: sql.Identifier
    type: str

    def statement(self, template: LiteralString) -> TextClause:
        """The template with the names quoted in; `:cutoff`, `:since` and `:room` stay to be bound."""
        words = {
            "table": self.table,
            "column": self.column,
            "cutoff": sql.SQL(_CUTOFFS[self.type]),
            "since": sql.SQL(_SINCE[self.type]),
        }
        return text(sql.SQL(template).format(**words).as_string(None))


def expired_rows(  # noqa: PLR0913 - the arguments of a jobs.yaml entry
    ctx: RunContext,
    table: str,
    column: str,
    older_than: timedelta,
    *,
    batch: int = 1000,
    max_rows: int | None = None,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Delete the rows of `table` whose `column` is older than `older_than`, `batch` rows a commit.

    `table`: `schema.table`, as PostgreSQL stores the names (case counts). `column`: timestamptz, timestamp (read as
    UTC) or date. `older_than`: `30d` in jobs.yaml, by the database's clock at the run's start. `max_rows`: a run that
    has deleted so many and finds more fails and deletes nothing more. `dry_run`: count only.
    Each batch is fenced, so a replica that lost the run deletes nothing. Raises Fatal.
    """
    if older_than <= timedelta(0) or batch < 1 or (max_rows is not None and max_rows < 0):
        raise Fatal("older_than must be over 0, batch at least 1, and max_rows not negative")
    target = _target(ctx, table, column)
    before = ctx.checkpoint if isinstance(ctx.checkpoint, dict) else {}
    cutoff = before.get("cutoff") or _cutoff(ctx, older_than)
    if dry_run:
        with ctx.connect() as connection:
            expired = connection.scalar(target.statement(_COUNT), {"cutoff": cutoff})
        ctx.logger.info("dry run: %s rows of %s are older than %s", expired, table, cutoff)
        return {"table": table, "cutoff": cutoff, "expired": expired, "deleted": 0, "dry_run": True}
    try:
        deleted = _delete(ctx, target, cutoff, batch, max_rows)
    except IntegrityError as error:
        raise Fatal(f"{table}: {str(error.orig).splitlines()[0]}; delete what refers to these rows first") from None
    return {"table": table, "cutoff": cutoff, "deleted": deleted, "dry_run": False}


def history(ctx: RunContext, max_rows: int | None = None, dry_run: bool = False) -> dict[str, Any]:
    """Delete Soloist's own finished runs that are past the `retention` of jobs.yaml. Returns the counts by group.

    `max_rows`: a run that has deleted so many and finds more fails and deletes nothing more. `dry_run`: count only.
    """
    if max_rows is not None and max_rows < 0:
        raise Fatal("max_rows must not be negative")
    report: dict[str, Any] = purge_history(ctx, max_rows=max_rows, dry_run=dry_run)
    total = sum(report["deleted"].values())
    verb = "would delete" if dry_run else "deleted"
    ctx.logger.info("%s %s runs: %s", verb, total, report["deleted"])
    if report["limit_hit"] and not dry_run:
        raise Fatal(f"max_rows {max_rows} reached after {total} runs and more are expired: nothing more was deleted")
    return report


def _delete(ctx: RunContext, target: Target, cutoff: str, batch: int, max_rows: int | None) -> int:
    """Batches until nothing is left, or the limit. Returns how many rows this run has deleted, earlier tries too."""
    deleted = int((ctx.checkpoint or {}).get("deleted", 0))
    delete, since = target.statement(_DELETE), "-infinity"
    while True:
        ctx.raise_if_cancelled()
        room = batch if max_rows is None else min(batch, max_rows - deleted)
        if room <= 0:
            break
        # The state is fixed before the batch is: it counts the batch as full, so a crash can never raise the limit.
        with ctx.transaction(checkpoint={"cutoff": cutoff, "deleted": deleted + room}) as connection:
            count, age = connection.execute(delete, {"cutoff": cutoff, "since": since, "room": room}).one()
        if not count:
            return deleted
        deleted, since = deleted + count, age
        ctx.progress(deleted, None, target.name)
    with ctx.connect() as connection:
        if connection.scalar(target.statement(_ANY_LEFT), {"cutoff": cutoff}):
            raise Fatal(
                f"max_rows {max_rows} reached and {target.name} has more rows older than {cutoff}: nothing more was"
                " deleted; raise max_rows if that is right, or look at what fills the table"
            )
    return deleted


def _target(ctx: RunContext, table: str, column: str) -> Target:
    """Look at the table before touching it. Raises Fatal that says what is wrong with the arguments."""
    found = _TABLE.fullmatch(table)
    if not found or not _COLUMN.fullmatch(column):
        raise Fatal(f"expected table `schema.table` and column `name`, got {table!r} and {column!r}")
    schema, name = found.groups()
    if schema in _OURS:
        raise Fatal(f"{table}: the schema {schema} is not for this job (Soloist's own history: jobs.cleanup:history)")
    with ctx.connect() as connection:
        row = connection.execute(_LOOK, {"schema": schema, "table": name, "column": column}).one_or_none()
    if row is None or row.column_type is None:
        raise Fatal(f"{table}.{column} does not exist (names are taken as PostgreSQL stores them, case counts)")
    if row.relkind != "r":
        raise Fatal(f"{table} is not a plain table; of a partitioned one, detach the old partitions instead")
    if row.column_type not in _CUTOFFS:
        raise Fatal(f"{table}.{column} is {row.column_type}; needed is timestamptz, timestamp or date")
    if not row.indexed:
        ctx.logger.warning("no index on %s (%s): each batch reads the whole table", table, column)
    return Target(table, sql.Identifier(schema, name), sql.Identifier(column), row.column_type)


def _cutoff(ctx: RunContext, age: timedelta) -> str:
    with ctx.connect() as connection:
        instant: str = connection.execute(_CUTOFF, {"seconds": age.total_seconds()}).scalar_one().isoformat()
    return instant
