"""Reads day files of the "Online Retail" data set: invoice lines of a shop, summed up to one payment an invoice."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path
from zoneinfo import ZoneInfo

from jobs.payment_table import Payment

ZONE = ZoneInfo("Europe/London")
COLUMNS = ("InvoiceNo", "StockCode", "Description", "Quantity", "InvoiceDate", "UnitPrice", "CustomerID", "Country")
_INVOICE = re.compile(r"[A-Z]?[0-9]{1,12}", re.ASCII)
_PENNY = Decimal("0.01")
_LIMIT = Decimal(10) ** 12  # far below what numeric(18, 2) holds


class BadFile(ValueError):
    """The file cannot be loaded. `problems`: every one, as `file:line: what is wrong`."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class _BadLine(ValueError):
    pass


@dataclass(slots=True)
class _Invoice:
    paid_at: datetime
    payer: str | None
    lines: list[Decimal] = field(default_factory=list)


def read_payments(path: Path) -> list[Payment]:
    """One payment an invoice, in the file's order; the amount is the sum of Quantity × UnitPrice, rounded to the penny.

    `InvoiceDate` of the invoice's first line counts. It is London wall time: one that comes twice is the first pass,
    one that the clocks skipped is an error. Invoices that begin with C are refunds. Raises BadFile, and OSError.
    """
    invoices: dict[str, _Invoice] = {}
    problems: list[str] = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        for number, row in _rows(path, csv.reader(file, strict=True), problems):
            try:
                _take(invoices, row)
            except _BadLine as problem:
                problems.append(f"{path}:{number}: {problem}")
    if problems:
        raise BadFile(problems)
    return [_payment(name, invoice) for name, invoice in invoices.items()]


def _rows(path: Path, reader: Iterator[list[str]], problems: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The data rows with the numbers of the lines they begin on; a file that is no such CSV becomes a problem."""
    begins = 1
    try:
        for row in reader:
            if begins == 1 and tuple(row) != COLUMNS:
                problems.append(f"{path}:1: the header must be {','.join(COLUMNS)}")
                return
            if begins > 1:
                yield begins, row
            begins = reader.line_num + 1  # type: ignore[attr-defined]
    except (csv.Error, UnicodeDecodeError) as error:
        problems.append(f"{path}:{begins}: {error}")
    if begins == 1:
        problems.append(f"{path}:1: the file is empty")


def _take(invoices: dict[str, _Invoice], row: list[str]) -> None:
    if len(row) != len(COLUMNS):
        raise _BadLine(f"expected {len(COLUMNS)} columns, found {len(row)}")
    name, _, _, quantity, wall_time, price, customer, _ = row
    if not _INVOICE.fullmatch(name):
        raise _BadLine(f"InvoiceNo {name!r} is not a number, with or without a capital before it")
    amount = _number("Quantity", quantity) * _number("UnitPrice", price)
    if name not in invoices:
        invoices[name] = _Invoice(_instant(wall_time), customer.removesuffix(".0") or None)
    invoices[name].lines.append(amount)


def _number(column: str, text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise _BadLine(f"{column} {text!r} is not a number") from None
    if not number.is_finite() or abs(number) >= _LIMIT:
        raise _BadLine(f"{column} {text!r} is out of range")
    return number


def _instant(wall_time: str) -> datetime:
    try:
        local = datetime.strptime(wall_time, "%Y-%m-%d %H:%M:%S").replace(tzinfo=ZONE)
    except ValueError:
        raise _BadLine(f"InvoiceDate {wall_time!r} is not like 2011-03-27 10:16:00") from None
    instant = local.astimezone(UTC)
    if instant.astimezone(ZONE).replace(tzinfo=None) != local.replace(tzinfo=None):
        raise _BadLine(f"InvoiceDate {wall_time} does not exist in {ZONE.key}: the clocks went forward over it")
    return instant


def _payment(name: str, invoice: _Invoice) -> Payment:
    return Payment(
        reference=name,
        paid_at=invoice.paid_at,
        amount=sum(invoice.lines, Decimal()).quantize(_PENNY, ROUND_HALF_UP),
        currency="GBP",
        kind="refund" if name.startswith("C") else "payment",
        payer=invoice.payer,
    )
