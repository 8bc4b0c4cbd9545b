"""Kill the registry between each two steps, or freeze it there and let its successor finish first: always one file and
one row, and they agree."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pooler
import psycopg
import pytest
from handmade_run import Port, Run
from sqlalchemy import Connection

from jobs import registry
from jobs.payment_table import Payment

DAY = date(2026, 11, 28)
START = datetime(2026, 11, 28, 9, tzinfo=UTC)
FILE = "registry-2026-11-28.csv"
LATE = Payment("LATE", START - timedelta(hours=1), Decimal("7.00"), "GBP")


class Steps:
    """Counts the boundaries between the effects of an attempt (after one is before the next), and acts at one."""

    def __init__(self, at: int | None = None, with_signal: int = signal.SIGKILL) -> None:
        self.count, self.at, self.with_signal = 0, at, with_signal

    def boundary(self) -> None:
        self.count += 1
        if self.count == self.at:
            os.kill(os.getpid(), self.with_signal)

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.boundary()
            return function(*args, **kwargs)

        return wrapped

    def port(self, url: str, info: Any) -> Port:
        return _SteppedPort(url, info, self)


class _SteppedPort(Port):
    def __init__(self, url: str, info: Any, steps: Steps) -> None:
        super().__init__(url, info)
        self.save_checkpoint = steps.before(super().save_checkpoint)  # type: ignore[method-assign]
        self.connect = steps.before(super().connect)  # type: ignore[method-assign]
        self._steps = steps

    @contextmanager
    def _stepped(self, checkpoint: Any, has_checkpoint: bool) -> Iterator[Connection]:
        with self.door.transaction(self.info, checkpoint=checkpoint, has_checkpoint=has_checkpoint) as connection:
            self._steps.boundary()
            yield connection
            self._steps.boundary()
        self._steps.boundary()

    def transaction(self, *, checkpoint: Any, has_checkpoint: bool) -> Any:
        return self._stepped(checkpoint, has_checkpoint)


def attempt(run: Run, directory: Path, steps: Steps | None = None) -> dict[str, Any]:
    context = run.context(steps.port) if steps else run.context()
    return registry.build(context, directory, checkpoint_every=10)


def start_in_child(run: Run, directory: Path, at: int, with_signal: int) -> int:
    """Fork an attempt that signals itself at boundary `at`. Its exit code is 0 when it succeeded, 3 when it raised."""
    pid = os.fork()
    if pid:
        return pid
    code = 3
    try:
        steps = Steps(at, with_signal)
        os.replace = steps.before(os.replace)
        os.fsync = steps.before(os.fsync)
        attempt(run, directory, steps)
        code = 0
    finally:
        os._exit(code)


def boundaries(run: Run, directory: Path) -> int:
    """How many there are in an attempt that nothing disturbs."""
    steps = Steps()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", steps.before(os.replace))
        patch.setattr(os, "fsync", steps.before(os.fsync))
        attempt(run, directory, steps)
    return steps.count


@pytest.fixture
def day(payments: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty payments, three batches, three checkpoints; one payment is to be set aside."""
    monkeypatch.setattr(registry, "_BATCH", 10)
    payments(
        [Payment(f"INV-{n}", START + timedelta(minutes=n), Decimal(n), "GBP" if n != 15 else "gbp") for n in range(30)]
    )


def check(connection: psycopg.Connection, directory: Path, where: str) -> int:
    """One file, one row, in agreement and published, and no leftovers. Returns the payments in it."""
    assert sorted(p.name for p in directory.iterdir()) == [FILE, "registry-2026-11-28.rejects.csv"], where
    content = (directory / FILE).read_bytes()
    rows = connection.execute("SELECT sha256, payments, published_at FROM public.payment_registry").fetchall()
    assert len(rows) == 1, where
    sha256, count, published_at = rows[0]
    assert sha256 == hashlib.sha256(content).hexdigest(), where
    assert published_at is not None, where
    assert content.count(b"\npayment,") == count, where
    return int(count)


@pytest.mark.usefixtures("day")
def test_killed_between_any_two_steps(begin: Callable, connection: psycopg.Connection, tmp_path: Path) -> None:
    total = boundaries(begin(), tmp_path / "whole")
    expected = (tmp_path / "whole" / FILE).read_bytes()
    assert total > 18
    for at in range(1, total + 1):
        connection.execute("DELETE FROM public.payment_registry")
        run, directory = begin(), tmp_path / f"killed-{at}"
        pid = start_in_child(run, directory, at, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        if run.status == "running":  # after its last commit nobody takes it over
            run.take_over()
            attempt(run, directory)
        assert run.status == "succeeded"
        check(connection, directory, f"killed at boundary {at} of {total}")
        assert (directory / FILE).read_bytes() == expected


@pytest.mark.usefixtures("day")
def test_frozen_between_any_two_steps_and_woken_after_its_successor(
    begin: Callable, payments: Callable, connection: psycopg.Connection, tmp_path: Path
) -> None:
    """A payment that came late, behind the zombie's cursor, makes the successor's bytes differ from the zombie's."""
    if pooler.mode() == "small":
        pytest.skip("the zombie keeps one of the pool's two connections, and its successor needs both")
    total = boundaries(begin(), tmp_path / "whole")
    for at in range(1, total):
        connection.execute("DELETE FROM public.payment_registry")
        connection.execute("DELETE FROM public.payment WHERE reference = 'LATE'")
        run, directory = begin(), tmp_path / f"frozen-{at}"
        pid = start_in_child(run, directory, at, signal.SIGSTOP)
        assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
        committed = connection.execute("SELECT count(*) FROM public.payment_registry").fetchone() == (1,)
        payments([LATE])
        run.take_over()
        attempt(run, directory)
        os.kill(pid, signal.SIGCONT)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3, f"the zombie of boundary {at} was not refused"
        count = check(connection, directory, f"frozen at boundary {at} of {total}")
        assert count == (29 if committed else 30)


@pytest.mark.usefixtures("day")
def test_it_goes_on_from_the_checkpoint(begin: Callable, connection: psycopg.Connection, tmp_path: Path) -> None:
    run = killed_at_second_checkpoint(begin, tmp_path)
    run.take_over()
    attempt(run, tmp_path)
    assert run.ports[-1].progressed == [(30, 30)]  # only the last batch was read
    assert check(connection, tmp_path, "resumed") == 29


@pytest.mark.usefixtures("day")
@pytest.mark.parametrize("damage", ["absent", "shorter", "altered"])
def test_a_part_that_is_not_what_it_was_is_not_trusted(
    begin: Callable, connection: psycopg.Connection, tmp_path: Path, damage: str
) -> None:
    run = killed_at_second_checkpoint(begin, tmp_path)
    (part,) = tmp_path.glob(f"{FILE}.part-*")
    match damage:
        case "absent":
            part.unlink()
        case "shorter":
            os.truncate(part, 100)
        case "altered":
            part.write_bytes(part.read_bytes().replace(b"INV-3", b"INV-4"))
    run.take_over()
    attempt(run, tmp_path)
    assert len(run.ports[-1].progressed) == 3
    assert check(connection, tmp_path, damage) == 29


@pytest.mark.usefixtures("day")
def test_a_finished_part_on_another_host_is_built_again(
    begin: Callable, connection: psycopg.Connection, tmp_path: Path
) -> None:
    """The hash was committed, the file was not published, and this host has neither of them."""
    run, here, elsewhere = begin(), tmp_path / "here", tmp_path / "elsewhere"
    at = boundaries(begin(), tmp_path / "whole") - 7  # two renames, two syncs and the last transaction are to come
    connection.execute("DELETE FROM public.payment_registry")
    os.waitpid(start_in_child(run, here, at, signal.SIGKILL), 0)
    assert connection.execute("SELECT published_at FROM public.payment_registry").fetchall() == [(None,)]
    assert not (here / FILE).exists()
    run.take_over()
    attempt(run, elsewhere)
    assert check(connection, elsewhere, "elsewhere") == 29


def killed_at_second_checkpoint(begin: Callable, directory: Path) -> Run:
    """Before the third: there are two looks at the database, and each checkpoint is two syncs and a save."""
    run: Run = begin()
    pid = start_in_child(run, directory, 2 + 2 * 3 + 1, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    return run
