"""The registry of one day while it is being written: its lines, what was set aside, and the sums."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Self
from zoneinfo import ZoneInfo

from jobs.part_file import Finished, PartFile
from jobs.payment_line import HEADER, REJECT_HEADER, Unwritable, line_of

# Far above the currencies that exist; it keeps the sums, and so the checkpoint, small whatever the table holds.
MAX_CURRENCIES = 512
_FIRST_ID = -(2**63)


class Totals:
    """Count and sum by currency."""

    def __init__(self, plain: dict[str, Any] | None = None) -> None:
        self._sums = {c: (t["count"], Decimal(t["amount"])) for c, t in (plain or {}).items()}

    def add(self, currency: str, amount: Decimal) -> None:
        """Count one payment. Raises Unwritable beyond MAX_CURRENCIES."""
        count, total = self._sums.get(currency, (0, Decimal(0)))
        if not count and len(self._sums) >= MAX_CURRENCIES:
            raise Unwritable(f"more than {MAX_CURRENCIES} currencies in one day")
        self._sums[currency] = (count + 1, total + amount)

    def plain(self) -> dict[str, Any]:
        """JSON-able, by currency in alphabetical order; amounts as text, because JSON's numbers are floats."""
        return {c: {"count": n, "amount": str(total)} for c, (n, total) in sorted(self._sums.items())}


class DaySheet:
    """The two parts of a day (lines and rejects) and how far they reach.

    `last`: the (paid_at, id) of the last payment taken in. The order is fixed, so another attempt over the same
    payments writes the same bytes.
    """

    def __init__(self, folder: Path, name: str, attempt_mark: str, start: datetime) -> None:
        self._lines = PartFile(folder / f"{name}.csv.part-{attempt_mark}")
        self._aside = PartFile(folder / f"{name}.rejects.csv.part-{attempt_mark}")
        self._name = name
        self.totals = Totals()
        self.payments = 0
        self.rejects = 0
        self.last: tuple[datetime, int] = (start, _FIRST_ID)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._aside.close()

    def begin(self) -> None:
        """Write the headers."""
        self._lines.write(_csv([HEADER]))
        self._aside.write(_csv([REJECT_HEADER]))

    def resume(self, state: dict[str, Any]) -> bool:
        """Go on from an earlier attempt's `state()`; False when its files are not here, or not what it wrote."""
        if not (self._lines.adopt(state["lines"]) and self._aside.adopt(state["aside"])):
            return False
        self.totals = Totals(state["totals"])
        self.payments, self.rejects = state["payments"], state["rejects"]
        paid_at, number = state["last"]
        self.last = (datetime.fromisoformat(paid_at), number)
        return True

    def add(self, rows: Sequence[Sequence[Any]], zone: ZoneInfo) -> list[tuple[int, str]]:
        """Take in payments, in order. Returns those set aside in this call, as (id, reason)."""
        lines, aside = [], []
        for row in rows:
            try:
                line = line_of(row, zone)
                self.totals.add(row[4], row[3])
            except Unwritable as reason:
                aside.append((row[0], str(reason)))
            else:
                lines.append(line)
        self._lines.write(_csv(lines))
        self._aside.write(_csv(aside))
        self.payments += len(lines)
        self.rejects += len(aside)
        self.last = (rows[-1][2], rows[-1][0])
        return aside

    def state(self) -> dict[str, Any]:
        """Everything the next attempt needs to go on from here; the bytes it speaks of are on the disk. JSON-able."""
        self._lines.sync()
        self._aside.sync()
        paid_at, number = self.last
        return {
            "lines": self._lines.state(),
            "aside": self._aside.state(),
            "payments": self.payments,
            "rejects": self.rejects,
            "totals": self.totals.plain(),
            "last": [paid_at.isoformat(), number],
        }

    def finish(self) -> tuple[Finished, Finished, int]:
        """Write the totals (a line a currency, `kind` total) and sync. Returns registry, rejects, registry's bytes."""
        sums = self.totals.plain().items()
        self._lines.write(_csv([("total", "", "", "", t["amount"], c, "", t["count"]) for c, t in sums]))
        self._lines.sync()
        self._aside.sync()
        registry = self._finished(self._lines, f"{self._name}.csv")
        rejects = self._finished(self._aside, f"{self._name}.rejects.csv")
        return registry, rejects, self._lines.size

    def discard(self) -> None:
        """Remove both parts."""
        self._lines.path.unlink(missing_ok=True)
        self._aside.path.unlink(missing_ok=True)

    @staticmethod
    def _finished(part: PartFile, final: str) -> Finished:
        return Finished(part=part.path.name, final=final, sha256=part.sha256)


def _csv(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8")
