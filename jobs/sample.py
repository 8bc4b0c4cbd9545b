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
DAYS = 3  # at night, before the registry's time, its latest tick is that of the day before yesterday
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
_ANY = text("SELECT EXISTS (SELECT FROM public.payment WHERE paid_at >= :start AND paid_at < :end)")


def seed(connection: Connection, today: date) -> int:
    """Create the tables and give sample payments to `today` and the two days before it, in one commit.

    A day that has any payment already stays as it is. The same date gives the same payments: three currencies, some
    refunds, and each day one payment that the registry has to set aside. Returns how many were inserted.
    `connection` must not be in a transaction.
    """
    with connection.begin():
        create_tables(connection)
        days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
        return sum(insert_payments(connection, _day(day)) for day in days if _is_empty(connection, day))


def _is_empty(connection: Connection, day: date) -> bool:
    local = LocalDay(day, ZONE)
    return not connection.scalar(_ANY, {"start": local.start, "end": local.end})


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
