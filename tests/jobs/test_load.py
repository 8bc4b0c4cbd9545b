"""Loading real day files; the sample; and what a bad file, address or argument is answered with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from jobs import load, online_retail
from jobs.registry import build
from jobs.sample import PER_DAY, seed
from scheduler.store import embedded
from scheduler.store.transaction import RunDoor

ROOT = Path(__file__).parents[2]
HEADER = ",".join(online_retail.COLUMNS)


def invoice(number: str = "500001", quantity: str = "2", when: str = "2011-03-27 10:16:00", price: str = "1.25") -> str:
    return f"{number},A1,MUG,{quantity},{when},{price},17937.0,United Kingdom"


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    return path


def test_the_real_day_files_load_once(
    shared: Path, database_url: str, connection: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shared / "data" / "online_retail"
    assert load.main([str(folder), "--database", database_url]) == 0
    assert "2011-10-30.csv: 97 payments, 1 of them refunds; 97 new" in capsys.readouterr().out
    assert load.main([str(folder / "2011-10-30.csv"), "--database", database_url]) == 0
    assert "0 new" in capsys.readouterr().out
    assert connection.execute("SELECT count(*), count(DISTINCT reference) FROM public.payment").fetchone() == (190, 190)
    first = connection.execute(
        "SELECT amount, paid_at, payer FROM public.payment WHERE reference = '539461'"
    ).fetchone()
    assert first == (Decimal("259.55"), datetime(2010, 12, 19, 10, 21, tzinfo=UTC), "17243")


@pytest.mark.parametrize(("day", "count"), [("2010-12-19", 25), ("2011-03-27", 46), ("2011-10-30", 97)])
def test_a_real_day_becomes_its_registry(
    shared: Path, database_url: str, begin: Callable, tmp_path: Path, day: str, count: int
) -> None:
    """The days of the two clock changes are among them."""
    assert load.main([str(shared / "data" / "online_retail"), "--database", database_url]) == 0
    next_night = datetime.fromisoformat(f"{day}T03:00:00+00:00") + timedelta(days=1)
    result = build(begin(scheduled_at=next_night).context(), tmp_path)
    assert (result["day"], result["payments"], result["rejects"]) == (day, count, 0)
    files = online_retail.read_payments(shared / "data" / "online_retail" / f"{day}.csv")
    assert result["totals"]["GBP"]["amount"] == str(sum((p.amount for p in files), Decimal()))


def test_an_invoice_is_the_sum_of_its_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", invoice(), invoice(quantity="3", price="0.005"), invoice("C500002", "-1"))
    first, second = online_retail.read_payments(path)
    assert (first.reference, first.amount, first.kind, first.payer) == ("500001", Decimal("2.52"), "payment", "17937")
    assert (second.reference, second.amount, second.kind) == ("C500002", Decimal("-1.25"), "refund")


def test_a_wall_time_that_comes_twice_is_the_first_pass(tmp_path: Path) -> None:
    (payment,) = online_retail.read_payments(write(tmp_path / "a.csv", invoice(when="2011-10-30 01:30:00")))
    assert payment.paid_at == datetime(2011, 10, 30, 0, 30, tzinfo=UTC)


def test_every_bad_line_is_named_and_nothing_of_the_file_is_loaded(
    tmp_path: Path, database_url: str, connection: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = write(
        tmp_path / "bad.csv",
        invoice(),
        invoice(quantity="two"),
        '500003,A1,"TWO\nLINES",1,2011-03-27 10:16:00,NaN,,France',
        invoice("50 01"),
        invoice("500005", when="2011-03-27 01:30:00"),
        invoice("500006", when="27/03/2011"),
        "500007,A1",
        invoice("500008", quantity="1e30"),
    )
    good = write(tmp_path / "good.csv", invoice("500009"))
    assert load.main([str(bad), str(good), "--database", database_url]) == 1
    shown = capsys.readouterr().err.splitlines()
    assert shown == [
        f"{bad}:3: Quantity 'two' is not a number",
        f"{bad}:4: UnitPrice 'NaN' is out of range",
        f"{bad}:6: InvoiceNo '50 01' is not a number, with or without a capital before it",
        f"{bad}:7: InvoiceDate 2011-03-27 01:30:00 does not exist in Europe/London: the clocks went forward over it",
        f"{bad}:8: InvoiceDate '27/03/2011' is not like 2011-03-27 10:16:00",
        f"{bad}:9: expected 8 columns, found 2",
        f"{bad}:10: Quantity '1e30' is out of range",
        f"{bad}: nothing of this file was loaded",
    ]
    assert connection.execute("SELECT reference FROM public.payment").fetchall() == [("500009",)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ":1: the file is empty"),
        (b"a,b,c\n1,2,3\n", ":1: the header must be InvoiceNo,StockCode"),
        (HEADER.encode() + b"\n500001,A1,\xff,1,2011-03-27 10:16:00,1,,France\n", "can't decode byte 0xff"),
        (HEADER.encode() + b'\n500001,A1,"MUG,1,2011-03-27 10:16:00,1,,France\n', ":2: unexpected end of data"),
    ],
)
def test_a_file_that_is_something_else(
    tmp_path: Path, database_url: str, capsys: pytest.CaptureFixture[str], content: bytes, message: str
) -> None:
    path = tmp_path / "odd.csv"
    path.write_bytes(content)
    assert load.main([str(path), "--database", database_url]) == 1
    assert message in capsys.readouterr().err


def test_a_hundred_bad_lines_do_not_fill_the_screen(
    tmp_path: Path, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "bad.csv", *["x"] * 100)
    assert load.main([str(path), "--database", database_url]) == 1
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 22
    assert shown[-2].endswith("and 80 more")


def run_command(*arguments: str, folder: Path, url: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "SOLOIST_DATABASE_URL"} | {"PYTHONPATH": str(ROOT)}
    if url:
        environment["SOLOIST_DATABASE_URL"] = url
    return subprocess.run(
        [sys.executable, "-m", "jobs.load", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_the_command_creates_the_tables(database_url: str, connection: psycopg.Connection, tmp_path: Path) -> None:
    for _ in range(2):
        done = run_command("--schema-only", folder=tmp_path, url=database_url)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert connection.execute("SELECT count(*) FROM public.payment").fetchone() == (0,)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "give a file to load"),
        (["--schema-only"], 8, "set the variable, or start `soloist serve` in this folder"),
        (["--schema-only", "--database", "sqlite:///x"], 2, "is not like postgresql://"),
        (["--schema-only", "--database", "nonsense"], 2, "is not like postgresql://"),
        (["no-such.csv", "--database", "postgresql://h/db"], 4, "no-such.csv: no such file"),
        (
            ["--schema-only", "--database", "postgresql://me:secret@127.0.0.1:1/db"],
            8,
            "cannot reach PostgreSQL at 127.0.0.1:1/db",
        ),
    ],
)
def test_mistakes_are_answered_with_their_exit_code(
    arguments: list[str], code: int, message: str, tmp_path: Path
) -> None:
    done = run_command(*arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr
    assert list(tmp_path.iterdir()) == [], "who only looks makes no database"


def test_without_an_address_the_embedded_database_of_the_folder_is_used() -> None:
    """As after `make run`: also while a replica runs on it."""
    folder = Path(tempfile.mkdtemp(prefix="sl-"))  # short, for the server's socket
    try:
        day = write(folder / "day.csv", invoice())
        with embedded.start(folder / ".soloist") as server:
            beside = run_command(str(day), folder=folder)
            assert (beside.returncode, beside.stderr) == (0, "")
            with psycopg.connect(server.url) as opened:
                assert opened.execute("SELECT reference FROM public.payment").fetchall() == [("500001",)]
        alone = run_command(str(day), folder=folder)
        assert (alone.returncode, alone.stderr) == (0, "")
        assert alone.stdout == "day.csv: 1 payments, 0 of them refunds; 0 new\n", "it was in the same database"
        assert not (folder / ".soloist" / "pg" / "postmaster.pid").exists(), "the last user has stopped the server"
    finally:
        shutil.rmtree(folder)


def test_a_role_without_rights_is_told_so(
    database_url: str, connection: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    role = f"reader_{connection.info.backend_pid}"
    connection.execute(f"CREATE ROLE {role} LOGIN")
    try:
        url = database_url.replace("//postgres:", f"//{role}:")
        assert url != database_url
        assert load.main(["--schema-only", "--database", url]) == 1
        assert "permission denied for schema public" in capsys.readouterr().err
    finally:
        connection.execute(f"DROP ROLE {role}")


@pytest.fixture
def sample(database_url: str) -> Iterator[Callable[[date], int]]:
    """Seed as `serve --seed` does."""
    door = RunDoor(database_url)

    def seed_of(today: date) -> int:
        with door.connect() as opened:
            return seed(opened, today)

    yield seed_of
    door.close()


def test_each_empty_day_gets_its_sample_once(sample: Callable, connection: psycopg.Connection) -> None:
    def counts() -> dict[date, int]:
        return dict(
            connection.execute(
                "SELECT CAST(paid_at AT TIME ZONE 'Europe/London' AS date) AS day, count(*) FROM public.payment"
                " GROUP BY day"
            ).fetchall()
        )

    assert sample(date(2026, 11, 29)) == 3 * PER_DAY
    assert sample(date(2026, 11, 29)) == 0
    assert counts() == dict.fromkeys((date(2026, 11, day) for day in (27, 28, 29)), PER_DAY)
    assert sample(date(2026, 12, 1)) == 2 * PER_DAY, "a first look on a later day has payments too"
    connection.execute("DELETE FROM public.payment WHERE reference NOT LIKE '%-20261129-0000'")
    assert sample(date(2026, 11, 30)) == 2 * PER_DAY
    assert counts() == {date(2026, 11, 28): PER_DAY, date(2026, 11, 29): 1, date(2026, 11, 30): PER_DAY}


@pytest.mark.parametrize("day", [date(2026, 3, 30), date(2026, 10, 26)])
def test_a_sample_day_stays_inside_its_day_when_the_clocks_change(sample: Callable, day: date) -> None:
    assert sample(day) == 3 * PER_DAY
    assert sample(day) == 0, "and no payment has spilt into a neighbour"


@pytest.mark.parametrize(("hour", "day"), [(1, "2026-11-27"), (3, "2026-11-28")])
def test_the_latest_tick_always_has_a_sample_and_one_payment_a_day_is_set_aside(
    sample: Callable, begin: Callable, connection: psycopg.Connection, tmp_path: Path, hour: int, day: str
) -> None:
    """At one in the morning the registry's latest tick is that of the day before."""
    sample(date(2026, 11, 29))
    tick = datetime(2026, 11, 29, 3, tzinfo=UTC) - timedelta(days=1 if hour < 3 else 0)
    result = build(begin(scheduled_at=tick).context(), tmp_path)
    assert (result["day"], result["payments"], result["rejects"]) == (day, PER_DAY - 1, 1)
    assert sorted(result["totals"]) == ["EUR", "GBP", "USD"]
    kinds = connection.execute("SELECT count(*) FROM public.payment WHERE kind = 'refund' AND amount < 0").fetchone()
    assert kinds == (3 * 14,)
