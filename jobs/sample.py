"""Sample payments for a first look. Only ever for the embedded database: a real one is nobody's playground."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, text

from jobs.local_day import LocalDay
from jobs.payment_table import Payment, create_tables, insert_payments

ZONE = ZoneInfo("Europe/London")
PER_DAY = 240
_PAYERS = (
    "Ada's Bakery",
    "Böhm & Söhne",
    "Café Olé",
    "Dunmore Cycles",
    "Elm Street Books",
    '"Quoted", Ltd',
    "株式会社さくら",
)
_CURRENCIES = ("GBP", "GBP", "GBP", "EUR", "USD")


def seed(connection: Connection, today: date) -> int:
    """Create the tables and fill an empty `payment` with yesterday's and `today`'s sample, in one commit.

    The same date gives the same payments: three currencies, some refunds, and each day one payment that the registry
    has to set aside. Returns how many were inserted: 0 when the table holds anything already. `connection` must not
    be in a transaction.
    """
    with connection.begin():
        create_tables(connection)
        if connection.scalar(text("SELECT EXISTS (SELECT FROM public.payment)")):
            return 0
        return sum(insert_payments(connection, _day(day)) for day in (today - timedelta(days=1), today))


def _day(day: date) -> Iterator[Payment]:
    local = LocalDay(day, ZONE)
    step = (local.end - local.start) / PER_DAY
    for number in range(PER_DAY):
        refund = number % 17 == 16
        amount = Decimal(199 + number * 7919 % 25_000) / 100
        spoilt = number == PER_DAY // 2
        yield Payment(
            reference=f"{'REF' if refund else 'INV'}-{day:%Y%m%d}-{number:04d}",
            paid_at=local.start + number * step,
            amount=-amount if refund else amount,
            currency="gbp" if spoilt else _CURRENCIES[number % len(_CURRENCIES)],
            kind="refund" if refund else "payment",
            payer=_PAYERS[number % len(_PAYERS)],
        )
