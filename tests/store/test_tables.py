"""tables.py says of each column what the migrated database says."""

from __future__ import annotations

import psycopg
import pytest
from sqlalchemy import Table
from sqlalchemy.dialects import postgresql

from scheduler.store import tables

NAMES = {"DOUBLE PRECISION": "double precision", "TIMESTAMP WITH TIME ZONE": "timestamp with time zone"}


@pytest.mark.parametrize("table", tables.metadata.sorted_tables, ids=lambda table: table.name)
def test_columns_are_those_of_the_database(table: Table, connection: psycopg.Connection) -> None:
    found = {
        name: (kind, nullable == "YES")
        for name, kind, nullable in connection.execute(
            "SELECT column_name, data_type, is_nullable FROM information_schema.columns"
            " WHERE table_schema = 'soloist' AND table_name = %s",
            (table.name,),
        )
    }
    assert found, f"no table soloist.{table.name}"
    dialect = postgresql.dialect()
    said = {c.name: (c.type.compile(dialect).lower(), bool(c.nullable)) for c in table.columns}
    assert said == {name: found.get(name) for name in said}
