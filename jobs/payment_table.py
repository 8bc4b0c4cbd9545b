"""The `payment` table of the sample service: create it, fill it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path

from sqlalchemy import Connection, text

SCHEMA = Path(__file__).with_name("schema.sql")
CREATE_COMMAND = "python -m jobs.load --schema-only"
_CHUNK = 5000

# Any constant will do, as long as nobody else uses it: two replicas that start at once must not create side by side,
# because CREATE TABLE IF NOT EXISTS fails on the catalog's unique index when both find nothing.
_CREATE_LOCK = 0x7061796D656E74

_INSERT = text(
    """
    INSERT INTO public.payment (reference, paid_at, amount, currency, kind, payer)
    SELECT * FROM unnest(CAST(:references AS text[]), CAST(:times AS timestamptz[]), CAST(:amounts AS numeric[]),
                         CAST(:currencies AS text[]), CAST(:kinds AS text[]), CAST(:payers AS text[]))
    ON CONFLICT (reference) DO NOTHING
    """
)


@dataclass(frozen=True, slots=True)
class Payment:
    """What somebody paid, or was paid back (`kind` refund, a negative amount). `paid_at` is aware."""

    reference: str | None
    paid_at: datetime
    amount: Decimal
    currency: str
    kind: str = "payment"
    payer: str | None = None


def create_tables(connection: Connection) -> None:
    """Apply `schema.sql` in the caller's transaction. Harmless when the tables are there."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATE_LOCK})
    connection.execution_options(no_parameters=True).exec_driver_sql(SCHEMA.read_text(encoding="utf-8"))


def insert_payments(connection: Connection, payments: Iterable[Payment]) -> int:
    """Insert in the caller's transaction; a reference that is there already stays as it is. Returns the new rows."""
    inserted = 0
    for chunk in _chunks(payments):
        result = connection.execute(
            _INSERT,
            {
                "references": [p.reference for p in chunk],
                "times": [p.paid_at for p in chunk],
                "amounts": [p.amount for p in chunk],
                "currencies": [p.currency for p in chunk],
                "kinds": [p.kind for p in chunk],
                "payers": [p.payer for p in chunk],
            },
        )
        inserted += result.rowcount
    return inserted


def _chunks(payments: Iterable[Payment]) -> Iterator[list[Payment]]:
    source = iter(payments)
    while chunk := list(islice(source, _CHUNK)):
        yield chunk
