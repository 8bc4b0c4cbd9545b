"""The registry of a day: what it contains, where a day begins, what is set aside."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jobs.payment_table import Payment
from jobs.registry import build
from scheduler import Cancelled, Fatal

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)


def paid(number: int, at: datetime = NOON, **other: Any) -> Payment:
    facts: dict[str, Any] = {"reference": f"INV-{number}", "amount": Decimal("1.10"), "currency": "GBP", "payer": "Ada"}
    return Payment(paid_at=at + timedelta(seconds=number), **{**facts, **other})


def lines_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def row_of(connection: psycopg.Connection, day: date = date(2026, 11, 28)) -> dict[str, Any]:
    with connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        row = cursor.execute("SELECT * FROM public.payment_registry WHERE day = %s", (day,)).fetchone()
    assert row is not None
    return row


def test_a_day_is_one_file_and_one_row_that_agree(
    begin: Callable, payments: Callable, connection: psycopg.Connection, tmp_path: Path
) -> None:
    payments(
        [
            paid(1),
            paid(2, currency="EUR", amount=Decimal("0.30")),
            paid(3, kind="refund", amount=Decimal("-0.20")),
            paid(4, payer=None),
        ]
    )
    run = begin()
    result = build(run.context(), tmp_path)

    path = tmp_path / "registry-2026-11-28.csv"
    lines, row = lines_of(path), row_of(connection)
    assert [line["kind"] for line in lines] == ["payment", "payment", "refund", "payment", "total", "total"]
    assert lines[0]["paid_at"] == "2026-11-28T12:00:01+00:00"
    assert [(li["currency"], li["amount"], li["count"]) for li in lines[-2:]] == [
        ("EUR", "0.30", "1"),
        ("GBP", "2.00", "3"),
    ]
    assert row["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest() == result["sha256"]
    assert row["bytes"] == path.stat().st_size
    assert row["totals"] == {"EUR": {"count": 1, "amount": "0.30"}, "GBP": {"count": 3, "amount": "2.00"}}
    assert (row["payments"], row["rejects"], row["revision"], row["run_id"]) == (4, 0, 1, run.info.run_id)
    assert row["published_at"] is not None
    assert run.status == "succeeded"
    assert json.dumps(result)
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name, "registry-2026-11-28.rejects.csv"]


@pytest.mark.parametrize(
    ("day", "hours"),
    [(date(2026, 3, 29), 23), (date(2026, 10, 25), 25), (date(2026, 11, 28), 24)],
)
def test_a_local_day_has_the_hours_its_clock_shows(
    begin: Callable, payments: Callable, connection: psycopg.Connection, tmp_path: Path, day: date, hours: int
) -> None:
    """One payment each half hour over three days: the day's own are counted, its neighbours' are not."""
    start = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(days=1)
    payments([paid(0, start + timedelta(minutes=30 * n), reference=f"R{n}") for n in range(3 * 48)])
    build(
        begin(scheduled_at=datetime(day.year, day.month, day.day, 3, tzinfo=UTC) + timedelta(days=1)).context(),
        tmp_path,
    )
    row = row_of(connection, day)
    assert row["payments"] == hours * 2
    assert row["ends_at"] - row["starts_at"] == timedelta(hours=hours)


def test_a_repeated_hour_stays_two_hours(begin: Callable, payments: Callable, tmp_path: Path) -> None:
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    payments([paid(0, first), paid(1, first + timedelta(hours=1) - timedelta(seconds=1))])
    build(begin().context(), tmp_path, day="2026-10-25")
    stamps = [line["paid_at"] for line in lines_of(tmp_path / "registry-2026-10-25.csv")[:2]]
    assert stamps == ["2026-10-25T01:30:00+01:00", "2026-10-25T01:30:00+00:00"]


def test_midnight_belongs_to_the_day_it_begins(begin: Callable, payments: Callable, tmp_path: Path) -> None:
    midnight = datetime(2026, 11, 28, tzinfo=UTC)
    payments(
        [
            paid(0, midnight, reference="first"),
            paid(0, midnight - timedelta(microseconds=1), reference="day before"),
            paid(0, midnight + timedelta(days=1), reference="day after"),
        ]
    )
    build(begin().context(), tmp_path)
    assert [line["reference"] for line in lines_of(tmp_path / "registry-2026-11-28.csv")[:-1]] == ["first"]


def test_a_day_without_payments_is_an_empty_registry(
    begin: Callable, payments: Callable, connection: psycopg.Connection, tmp_path: Path
) -> None:
    payments([])
    build(begin().context(), tmp_path)
    assert lines_of(tmp_path / "registry-2026-11-28.csv") == []
    assert row_of(connection)["totals"] == {}


def test_what_cannot_be_written_is_set_aside_with_its_reason(
    begin: Callable, payments: Callable, connection: psycopg.Connection, tmp_path: Path
) -> None:
    payments(
        [
            paid(1),
            paid(2, currency="gbp"),
            paid(3, amount=Decimal("NaN")),
            paid(4, reference=None),
            paid(5, reference="  "),
            paid(6, payer="two\nlines"),
            paid(7, payer="a\u2028b"),
            paid(8, currency="EUR\n"),
            paid(9, payer="Café\u00a0Olé"),
        ]
    )
    build(begin().context(), tmp_path)
    rejects = tmp_path / "registry-2026-11-28.rejects.csv"
    assert [line["reason"] for line in lines_of(rejects)] == [
        "currency 'gbp' is not three capital letters",
        "amount is NaN",
        "reference is missing",
        "reference is missing",
        "payer holds the control character U+000A at 4",
        "payer holds the control character U+2028 at 2",
        "currency 'EUR\\n' is not three capital letters",
    ]
    row = row_of(connection)
    assert (row["payments"], row["rejects"]) == (2, 7)
    assert row["rejects_sha256"] == hashlib.sha256(rejects.read_bytes()).hexdigest()
    assert row["totals"] == {"GBP": {"count": 2, "amount": "2.20"}}


def test_too_many_rejects_fail_the_day_and_leave_nothing(
    begin: Callable, payments: Callable, connection: psycopg.Connection, tmp_path: Path
) -> None:
    payments([paid(n, currency="?") for n in range(4)])
    with pytest.raises(Fatal, match=r"4 payments cannot be written, the limit is 3; payment 4: currency '\?'"):
        build(begin().context(), tmp_path, max_rejects=3)
    assert list(tmp_path.iterdir()) == []
    assert connection.execute("SELECT count(*) FROM public.payment_registry").fetchone() == (0,)
    build(begin().context(), tmp_path, max_rejects=4)
    assert row_of(connection)["rejects"] == 4


def test_a_spreadsheet_evaluates_no_cell(begin: Callable, payments: Callable, tmp_path: Path) -> None:
    texts = ["=1+1", "+44 20", "-", "@sum", "＝1", " =1", "'tHooft", 'plain, with "quotes"']
    payments([paid(n, payer=text) for n, text in enumerate(texts)])
    build(begin().context(), tmp_path)
    written = [line["payer"] for line in lines_of(tmp_path / "registry-2026-11-28.csv")[:-1]]
    assert [text[0] for text in written] == ["'"] * 7 + ["p"]
    assert [text.removeprefix("'") for text in written] == texts  # what was guarded can be undone


def test_money_is_summed_without_a_float(
    begin: Callable, payments: Callable, connection: psycopg.Connection, tmp_path: Path
) -> None:
    payments([paid(n, amount=Decimal("9999999999999999.99") if n == 0 else Decimal("0.01")) for n in range(3)])
    build(begin().context(), tmp_path)
    assert row_of(connection)["totals"]["GBP"]["amount"] == "10000000000000000.01"


def test_a_day_built_again_replaces_the_file_and_counts_revisions(
    begin: Callable, payments: Callable, connection: psycopg.Connection, tmp_path: Path
) -> None:
    payments([paid(1), paid(2, currency="x")])
    build(begin().context(), tmp_path)
    path = tmp_path / "registry-2026-11-28.csv"
    before = path.read_bytes()
    path.unlink()
    assert build(begin().context(), tmp_path)["revision"] == 1  # lost by hand: the same bytes again
    assert path.read_bytes() == before
    payments([paid(3)])
    assert build(begin().context(), tmp_path)["revision"] == 2
    assert len(lines_of(path)) == 3
    assert row_of(connection)["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_day_may_come_with_a_manual_run(begin: Callable, payments: Callable, tmp_path: Path) -> None:
    payments([])
    result = build(begin(payload={"day": "2026-02-01"}).context(), tmp_path)
    assert (result["day"], result["file"]) == ("2026-02-01", "registry-2026-02-01.csv")


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"dya": "2026-02-01"}, r'^payload: unknown key "dya" \(did you mean "day"\?\)$'),
        ({"day": "2026-02-01", "zone": "UTC"}, r'^payload: unknown key "zone" \(known here: day\)$'),
        ({"day": None}, "day a date"),
        ({"day": ""}, "day a date"),
        ({"day": ["2026-02-01"]}, "day a date"),
        ({"day": "9999-12-31"}, "day a date"),
    ],
)
def test_a_payload_that_says_something_else_is_fatal(
    begin: Callable, payments: Callable, tmp_path: Path, payload: dict[str, Any], message: str
) -> None:
    payments([])
    with pytest.raises(Fatal, match=message):
        build(begin(payload=payload).context(), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", ["argument", "payload"])
def test_a_day_that_is_not_over_is_fatal(begin: Callable, payments: Callable, tmp_path: Path, given: str) -> None:
    """By the zone's calendar and the database's clock. (Tomorrow: whenever this runs, it is not over.)"""
    payments([])
    tomorrow = (datetime.now(UTC).date() + timedelta(days=1)).isoformat()
    run = begin(datetime.now(UTC), payload={"day": tomorrow} if given == "payload" else None)
    with pytest.raises(Fatal, match=rf"^{tomorrow} is not over yet in Asia/Tokyo: it is at .*T15:00:00\+00:00"):
        build(run.context(), tmp_path, zone="Asia/Tokyo", **({"day": tomorrow} if given == "argument" else {}))
    assert list(tmp_path.iterdir()) == []


def test_a_day_is_over_at_its_next_midnight(begin: Callable, payments: Callable, tmp_path: Path) -> None:
    """A manual run's tick is when it was asked for: the day's end by that, or by the database's clock later on."""
    payments([])
    midnight = datetime(2026, 2, 2, tzinfo=UTC)
    for asked in (midnight, midnight - timedelta(hours=1)):
        assert build(begin(asked, payload={"day": "2026-02-01"}).context(), tmp_path)["day"] == "2026-02-01"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"zone": "Europe/Lodnon"}, "IANA name"),
        ({"zone": "../etc/passwd"}, "IANA name"),
        ({"day": "28.11.2026"}, "day a date"),
        ({"directory": __file__}, "is not a directory"),
    ],
)
def test_bad_arguments_are_fatal_and_say_why(
    begin: Callable, payments: Callable, tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    payments([])
    with pytest.raises(Fatal, match=message):
        build(begin().context(), **{"directory": tmp_path, **arguments})


def test_missing_tables_name_the_command_that_makes_them(begin: Callable, tmp_path: Path) -> None:
    with pytest.raises(Fatal, match=r"python -m jobs\.load --schema-only"):
        build(begin().context(), tmp_path)


def test_a_cancelled_run_stops_and_leaves_nothing(begin: Callable, payments: Callable, tmp_path: Path) -> None:
    payments([paid(1)])
    run = begin()
    context = run.context()
    run.ports[0].cancel = True
    with pytest.raises(Cancelled):
        build(context, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_currencies_beyond_the_limit_are_set_aside(
    begin: Callable, payments: Callable, connection: psycopg.Connection, tmp_path: Path
) -> None:
    """The sums are part of the checkpoint, which may not outgrow its 64 KiB whatever the table holds."""
    letters = "ABCDEFGHIJ"
    codes = [a + b + c for a in letters for b in letters for c in letters][:520]
    payments([paid(n, currency=code) for n, code in enumerate(codes)])
    build(begin().context(), tmp_path, checkpoint_every=1)
    assert (row_of(connection)["payments"], row_of(connection)["rejects"]) == (512, 8)
