"""What a role must be allowed to do in the schema; which of it is missing is said as the GRANT that gives it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql

from scheduler.core.errors import DatabaseUnreachable
from scheduler.store.connect import one_line

Rights = Mapping[str, tuple[str, ...]]
NEEDED: Rights = {
    "alembic_version": ("SELECT",),
    "attempt": ("SELECT", "INSERT", "UPDATE"),
    "audit": ("INSERT",),
    "config": ("SELECT", "INSERT", "UPDATE"),  # UPDATE: for its lock, while a plan is put in force
    "held_lock": ("SELECT",),
    "job": ("SELECT", "INSERT", "UPDATE"),
    "plan_job": ("SELECT", "INSERT", "DELETE"),
    "replica": ("SELECT", "INSERT", "UPDATE"),
    "run": ("SELECT", "INSERT", "UPDATE"),
}
"""What a replica does to each table or view."""
ALL: Rights = {
    **NEEDED,
    **{table: (*NEEDED[table], "DELETE") for table in ("attempt", "run")},
    "audit": ("SELECT", "INSERT"),
}
"""And what a purge and a look at the audit do, which not every role has to be allowed."""

_LACKING = """
SELECT relname, wanted.privilege
FROM unnest(%(tables)s::text[], %(privileges)s::text[]) AS wanted (name, privilege)
JOIN pg_catalog.pg_class ON relname = wanted.name AND relnamespace = to_regnamespace('soloist')
WHERE NOT has_table_privilege(pg_class.oid, wanted.privilege)
ORDER BY relname, array_position(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'], wanted.privilege)
"""
_OUTER = """
SELECT current_user::text, current_database()::text, to_regnamespace('soloist') IS NOT NULL,
       has_schema_privilege(to_regnamespace('soloist'), 'USAGE')
"""


def missing_grants(connection: psycopg.Connection[Any], rights: Rights = NEEDED) -> tuple[str, ...]:
    """The GRANT statements that this connection's role lacks, fit for psql; none: it may do all of `rights`.

    Where there is no schema yet, it is the right to make one that is missing.
    """
    role, database, made, enter = connection.execute(_OUTER).fetchone() or ("", "", False, False)
    to = sql.Identifier(role).as_string(connection)
    if not made:
        return (f"GRANT CREATE ON DATABASE {sql.Identifier(database).as_string(connection)} TO {to}",)
    pairs = [(table, privilege) for table, privileges in rights.items() for privilege in privileges]
    asked = {"tables": [table for table, _ in pairs], "privileges": [privilege for _, privilege in pairs]}
    lacking: dict[str, list[str]] = defaultdict(list)
    for table, privilege in connection.execute(_LACKING, asked):
        lacking[table].append(privilege)
    grants = [f"GRANT {', '.join(privileges)} ON soloist.{table} TO {to}" for table, privileges in lacking.items()]
    return tuple(grants if enter else [f"GRANT USAGE ON SCHEMA soloist TO {to}", *grants])


def lacks_right(
    connection: psycopg.Connection[Any], error: psycopg.Error | None = None, rights: Rights = NEEDED
) -> DatabaseUnreachable:
    """The error to raise for a role that may not do what is asked of it. `error`: what PostgreSQL said to it."""
    try:
        grants = missing_grants(connection, rights)
    except psycopg.Error:  # the connection went meanwhile: what PostgreSQL said must do
        grants = ()
    said = "lacks rights that a replica needs" if error is None else f"lacks a right: {one_line(error)}"
    if not grants:  # it is the owner's, and cannot be granted
        return DatabaseUnreachable(f"the database role {said}\nLet the schema's owner run `soloist migrate` once.")
    return DatabaseUnreachable(
        "\n".join([f"the database role {said}. To give it all it needs:", *(f"  {grant};" for grant in grants)])
    )
