"""One payment as one line of the registry, or the reason why it cannot be one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

HEADER = ("kind", "id", "reference", "paid_at", "amount", "currency", "payer", "count")
REJECT_HEADER = ("id", "reason")

# Controls and the two separators that some readers take for the end of a line.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CURRENCY = re.compile(r"[A-Z]{3}")
# A spreadsheet evaluates a cell that begins like this (the wide forms too), so an apostrophe goes before it. The
# apostrophe itself is in the list so that this can be undone: a text that begins with one has exactly one too many.
_FORMULA = re.compile(r"\s*[=+\-@'＝＋－＠]")

Line = tuple[str, int, str, str, str, str, str, int]


class Unwritable(ValueError):
    """This payment cannot be written; the message is the reason for the reject file, without controls."""


def line_of(row: Sequence[Any], zone: ZoneInfo) -> Line:
    """The line for `(id, reference, paid_at, amount, currency, kind, payer)`, in the order of `HEADER`.

    `paid_at` is written as local time with its offset, so a repeated hour stays two hours. Raises Unwritable.
    """
    number, reference, paid_at, amount, currency, kind, payer = row
    return (
        kind,
        number,
        _text("reference", _present("reference", reference)),
        _local(paid_at, zone),
        _amount(amount),
        _known(currency),
        _text("payer", payer or ""),
        1,
    )


def _present(column: str, value: str | None) -> str:
    if value is None or not value.strip():
        raise Unwritable(f"{column} is missing")
    return value


def _text(column: str, value: str) -> str:
    # isprintable() is the fast answer for nearly all; the pattern only looks at what it doubts (such as a hard space).
    if not value.isprintable() and (found := _CONTROL.search(value)):
        raise Unwritable(f"{column} holds the control character U+{ord(found.group()):04X} at {found.start() + 1}")
    return f"'{value}" if _FORMULA.match(value) else value


def _local(paid_at: datetime, zone: ZoneInfo) -> str:
    return paid_at.astimezone(zone).isoformat()


def _amount(amount: Decimal) -> str:
    if not amount.is_finite():
        raise Unwritable(f"amount is {amount}")
    return str(amount)


def _known(currency: str) -> str:
    if not _CURRENCY.fullmatch(currency):
        raise Unwritable(f"currency {currency[:20]!a} is not three capital letters")
    return currency
