"""The proxy of the tests does what its words say; a test through it would otherwise prove nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest
from proxy import Proxy
from replicas import eventually

BACKENDS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'through'"


@pytest.fixture
def proxy(database_url: str) -> Iterator[Proxy]:
    with Proxy(database_url) as made:
        yield made


@contextmanager
def _through(proxy: Proxy, name: str = "through") -> Iterator[psycopg.Connection]:
    """Closed in the end whatever state it is in."""
    opened = psycopg.connect(proxy.url, application_name=name, autocommit=True, connect_timeout=10)
    with closing(opened):
        yield opened


def _pending(opened: psycopg.Connection, statement: bytes) -> None:
    """Send a statement and do not wait for its answer."""
    opened.pgconn.send_query(statement)
    eventually(lambda: opened.pgconn.flush() == 0, "it is sent")


def _answered(opened: psycopg.Connection) -> bool:
    opened.pgconn.consume_input()
    return not opened.pgconn.is_busy()


def test_bytes_pass_both_ways_and_are_counted(proxy: Proxy, connection: psycopg.Connection) -> None:
    with _through(proxy) as opened:
        large = opened.execute("SELECT repeat('x', 3000000), %s::text", ["y" * 3_000_000]).fetchone()
        assert large == ("x" * 3_000_000, "y" * 3_000_000)
        assert opened.execute("SELECT current_database()").fetchall() == [(connection.info.dbname,)]
        assert proxy.to_server > 3_000_000
        assert proxy.to_client > 6_000_000
        assert (proxy.accepted, proxy.present()) == (1, 1)
    eventually(lambda: proxy.present() == 0, "a goodbye passes")
    eventually(lambda: connection.execute(BACKENDS).fetchone() == (0,), "and the backend is gone")


def test_a_stall_holds_bytes_closes_and_new_connections(proxy: Proxy, connection: psycopg.Connection) -> None:
    with _through(proxy) as opened, _through(proxy) as leaving:
        proxy.stall()
        before = (proxy.to_server, proxy.to_client)
        _pending(opened, b"SELECT 1")
        leaving.close()
        with pytest.raises(psycopg.errors.ConnectionTimeout):
            psycopg.connect(proxy.url, connect_timeout=2)
        assert not _answered(opened)
        assert (proxy.to_server, proxy.to_client) == before
        assert connection.execute(BACKENDS).fetchone() == (2,)
        proxy.flow()
        eventually(lambda: _answered(opened), "the answer comes after all")
        eventually(lambda: connection.execute(BACKENDS).fetchone() == (1,), "the close as well")


def test_an_answer_is_held_by_a_stall(proxy: Proxy, connection: psycopg.Connection) -> None:
    connection.execute("SELECT pg_advisory_lock(1)")  # it is done when we say so, however long we are held
    with _through(proxy) as opened:
        _pending(opened, b"SELECT pg_advisory_lock(1), pg_notify('x', 'y')")
        busy = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'through' AND state = 'active'"
        eventually(lambda: connection.execute(busy).fetchone(), "it is executed")
        proxy.stall()
        connection.execute("SELECT pg_advisory_unlock(1)")
        eventually(lambda: not connection.execute(busy).fetchone(), "it is done")
        assert not _answered(opened)
        proxy.flow()
        eventually(lambda: _answered(opened), "the answer passes")


def test_a_cut_ends_both_sides_and_new_ones_are_welcome(proxy: Proxy, connection: psycopg.Connection) -> None:
    with _through(proxy) as opened, _through(proxy):
        proxy.cut()
        with pytest.raises(psycopg.OperationalError):
            opened.execute("SELECT 1")
        eventually(lambda: connection.execute(BACKENDS).fetchone() == (0,), "the server saw it too")
    with _through(proxy) as opened:
        assert opened.execute("SELECT 1").fetchone() == (1,)


def test_a_cut_in_a_stall_takes_those_who_hang(proxy: Proxy) -> None:
    with _through(proxy) as opened:
        proxy.stall()
        _pending(opened, b"SELECT 1")
        proxy.cut()
        eventually(lambda: opened.pgconn.socket and _gone(opened), "reset, although nothing flows")
        proxy.flow()


def _gone(opened: psycopg.Connection) -> bool:
    try:
        opened.pgconn.consume_input()
    except psycopg.OperationalError:
        return True
    return False


def test_refused_and_admitted_at_the_same_port(proxy: Proxy) -> None:
    with _through(proxy) as opened:
        proxy.refuse()
        with pytest.raises(psycopg.OperationalError, match="Connection refused"):
            psycopg.connect(proxy.url, connect_timeout=10)
        assert opened.execute("SELECT 1").fetchone() == (1,), "present connections stay"
        proxy.admit()
        with _through(proxy) as another:
            assert another.execute("SELECT 2").fetchone() == (2,)


def test_a_refused_port_in_a_stall_stays_stalled_when_admitted(proxy: Proxy) -> None:
    proxy.stall()
    proxy.refuse()
    proxy.admit()
    with pytest.raises(psycopg.errors.ConnectionTimeout):
        psycopg.connect(proxy.url, connect_timeout=2)
    proxy.flow()
    with _through(proxy) as opened:
        assert opened.execute("SELECT 1").fetchone() == (1,)


QUERY = b"SELECT 'abcdef'"
MESSAGE = len(QUERY) + 6  # Q, four bytes of length, the text, a zero


@pytest.mark.parametrize("nbytes", [0, 1, MESSAGE - 1, MESSAGE])
def test_a_cut_on_the_way_to_the_server_lets_exactly_so_much_pass(proxy: Proxy, nbytes: int) -> None:
    with _through(proxy) as opened:
        before = proxy.to_server
        cut = proxy.cut_after(nbytes, towards="server")
        _pending(opened, QUERY)
        assert cut.happened.wait(60)
        assert proxy.to_server - before == nbytes
        eventually(lambda: _gone(opened), "the client's side is reset")


@pytest.mark.parametrize("executed", [False, True])
def test_a_whole_statement_is_executed_though_its_answer_is_lost(
    proxy: Proxy, connection: psycopg.Connection, executed: bool
) -> None:
    connection.execute("CREATE TABLE public.t (a int)")
    statement = b"INSERT INTO public.t VALUES (1)"
    with _through(proxy) as opened:
        cut = proxy.cut_after(len(statement) + 5 + executed, towards="server")
        _pending(opened, statement)
        assert cut.happened.wait(60)
        with pytest.raises(psycopg.OperationalError):
            opened.execute("SELECT 1")
    eventually(lambda: connection.execute(BACKENDS).fetchone() == (0,), "the backend is gone")
    assert connection.execute("SELECT count(*) FROM public.t").fetchone() == (int(executed),)


def test_what_passed_to_the_client_before_a_cut_arrives(proxy: Proxy) -> None:
    with _through(proxy) as opened:
        opened.execute("SELECT 1")
        before = proxy.to_client
        _pending(opened, QUERY)
        eventually(lambda: _answered(opened), "the answer")
        whole = proxy.to_client - before
        while opened.pgconn.get_result():
            pass
        for nbytes in (0, 7, whole):
            with _through(proxy, f"n{nbytes}") as another:
                cut = proxy.cut_after(nbytes, towards="client", matching=f"n{nbytes}".encode())
                before = proxy.to_client
                _pending(another, QUERY)
                assert cut.happened.wait(60)
                assert proxy.to_client - before == nbytes
                if nbytes == whole:
                    eventually(lambda another=another: _answered(another), "it is all there")
                    assert another.pgconn.get_result().get_value(0, 0) == b"abcdef"


def test_a_cut_is_for_the_connection_that_matches(proxy: Proxy) -> None:
    with _through(proxy, "one") as one, _through(proxy, "two") as two:
        cut = proxy.cut_after(0, towards="client", matching=b"two")
        assert one.execute("SELECT 1").fetchone() == (1,)
        assert not cut.happened.is_set()
        with pytest.raises(psycopg.OperationalError):
            two.execute("SELECT 1")
        assert cut.happened.wait(30)


def test_a_planned_cut_outlives_its_connection_and_may_be_forgotten(proxy: Proxy) -> None:
    with _through(proxy) as opened:
        cut = proxy.cut_after(1_000_000, towards="server")
        opened.execute("SELECT %s::text", ["x" * 600_000])
    eventually(lambda: proxy.present() == 0, "it goes by itself")
    with _through(proxy) as opened:
        opened.execute("SELECT %s::text", ["x" * 600_000])  # counted anew
        assert not cut.happened.is_set()
        with pytest.raises(psycopg.OperationalError):
            opened.execute("SELECT %s::text", ["x" * 600_000])
    forgotten = proxy.cut_after(0, towards="server")
    proxy.forget_cuts()
    with _through(proxy) as opened:
        assert opened.execute("SELECT 1").fetchone() == (1,)
    assert not forgotten.happened.is_set()


def test_an_idle_proxy_costs_nothing(proxy: Proxy) -> None:
    """No busy loop: not when idle, not in a stall with bytes and closes that wait."""
    with _through(proxy) as opened, _through(proxy) as leaving:
        proxy.stall()
        _pending(opened, b"SELECT 1")
        leaving.close()
        clock = time.pthread_getcpuclockid(proxy._thread.ident or 0)
        used = time.clock_gettime(clock)
        os.sched_yield()
        with pytest.raises(psycopg.errors.ConnectionTimeout):
            psycopg.connect(proxy.url, connect_timeout=2)
        assert time.clock_gettime(clock) - used < 0.5
        proxy.flow()


def test_a_server_that_is_away_throws_clients_out() -> None:
    with Proxy("host=/nonexistent port=1 dbname=none user=nobody") as proxy:
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(proxy.url, connect_timeout=10)
        assert proxy.present() == 0


def test_a_server_at_a_tcp_port_and_a_password_with_odd_letters(proxy: Proxy) -> None:
    with Proxy(proxy.url) as second, _through(second) as opened:
        assert opened.execute("SELECT 1").fetchone() == (1,)
    odd = Proxy("host=/x user='a@b' password='p/w:#?&' dbname='d b' port=5433")
    odd.close()
    words = psycopg.conninfo.conninfo_to_dict(odd.url)
    assert (words["user"], words["password"], words["dbname"]) == ("a@b", "p/w:#?&", "d b")
