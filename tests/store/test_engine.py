"""Sessions: a deadline on every call, losses told apart from errors, no secret in any message."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from patience import PRODUCTS_OWN, connect_deadline
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from replicas import LIMIT, eventually
from scene import Scene

from scheduler.core.errors import DatabaseUnreachable
from scheduler.core.events import DatabaseLost, DatabaseRegained
from scheduler.store.connect import connect_once, masked
from scheduler.store.contact import Contact
from scheduler.store.engine import CALL_DEADLINE, Blocked, ContactLost, Refused, Session
from scheduler.store.wakeup import Wakeup

SOONER = CALL_DEADLINE - 1.0  # seconds: a call that has no other deadline ends after one more


class Proxy:
    """A TCP proxy before PostgreSQL's socket that can stall: bytes are taken and never passed on."""

    def __init__(self, url: str) -> None:
        words = conninfo_to_dict(url)
        self._target = str(next(Path(str(words["host"])).glob(".s.PGSQL.*[0-9]")))
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = make_conninfo(url, host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable")
        self.stalled, self.stall_at = threading.Event(), b"(nothing)"
        self._sockets: list[socket.socket] = [self._listener]
        self._spawn(self._accept)

    def _spawn(self, what: object, *args: object) -> None:
        threading.Thread(target=what, args=args, daemon=True).start()  # type: ignore[arg-type]

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                self._sockets += [client, server]
                self._spawn(self._pass, client, server)
                self._spawn(self._pass, server, client)

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self.stall_at in data:
                    self.stalled.set()
                if self.stalled.is_set():
                    continue
                sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture
def proxy(stage_url: str) -> Iterator[Proxy]:
    made = Proxy(stage_url)
    yield made
    made.close()


def _session(scene: Scene, url: str) -> Session:
    made = Session(url, "proxied", scene.watchdog, Contact(scene.bus, "r", scene.clock))
    scene.sessions.append(made)
    return made


def _fails(call: Callable[[], object], error: type[Exception], within: float = LIMIT) -> None:
    """It does so by itself. In a thread: waited for in looks, a pause of the machine is no slowness of the call."""
    ended = threading.Event()

    def make() -> None:
        with pytest.raises(error):
            call()
        ended.set()

    threading.Thread(target=make, daemon=True).start()
    eventually(ended.is_set, "the call ends", within)


@pytest.fixture
def impatient() -> Iterator[None]:
    """A new connection is given no longer than the product gives it: that is what ends the call."""
    with connect_deadline(PRODUCTS_OWN):
        yield


def test_a_call_behind_a_stalled_proxy_ends_at_its_deadline(scene: Scene, proxy: Proxy) -> None:
    session = _session(scene, proxy.url)
    assert session.execute("SELECT 1") == [(1,)]
    proxy.stalled.set()
    begun = time.monotonic()
    _fails(lambda: session.execute("SELECT 1", deadline=0.5), ContactLost, SOONER)
    assert time.monotonic() - begun > 0.4
    proxy.stalled.clear()
    assert session.execute("SELECT 2") == [(2,)]
    assert session.epoch == 2
    kinds = [type(event) for event in scene.events]
    assert kinds == [DatabaseLost, DatabaseRegained]


@pytest.mark.usefixtures("impatient")
def test_a_connection_attempt_behind_a_stalled_proxy_ends(scene: Scene, proxy: Proxy) -> None:
    proxy.stalled.set()
    session = _session(scene, proxy.url)
    _fails(lambda: session.execute("SELECT 1", deadline=0.5), ContactLost)


@pytest.mark.usefixtures("impatient")
def test_a_proxy_that_stalls_right_after_the_connection_ends_too(scene: Scene, proxy: Proxy) -> None:
    """The greeting (LISTEN) is a call like any other."""
    session = _session(scene, proxy.url)
    session.greet_with("LISTEN soloist")
    proxy.stall_at = b"LISTEN"
    _fails(lambda: session.execute("SELECT 1", deadline=0.5), ContactLost)


@pytest.mark.own_session
def test_a_session_that_the_server_ended_is_a_loss_and_comes_back(scene: Scene) -> None:
    session = scene.session()
    ((pid,),) = session.execute("SELECT pg_backend_pid()")
    scene.sql("SELECT pg_terminate_backend(%s)", pid)
    with pytest.raises(ContactLost):
        session.execute("SELECT 1")
    assert session.execute("SELECT 1") == [(1,)]
    assert session.epoch == 2


def test_what_is_wrong_with_a_statement_is_no_loss(scene: Scene) -> None:
    session = scene.session()
    with pytest.raises(Refused, match="nothing_there"):
        session.execute("SELECT * FROM soloist.nothing_there")
    assert session.execute("SELECT 1") == [(1,)]
    assert session.epoch == 1
    assert scene.events == []


@pytest.mark.own_session
def test_a_read_only_server_is_a_loss(scene: Scene) -> None:
    session = scene.session()
    session.execute("SET default_transaction_read_only = on")
    with pytest.raises(ContactLost):
        session.execute("DELETE FROM soloist.audit")
    assert session.execute("DELETE FROM soloist.audit") == []


@pytest.mark.own_session
def test_an_answer_to_what_was_asked_before_the_loss_is_no_recovery(scene: Scene) -> None:
    """A server that shuts down still answers what it has begun; then one outage was told twice."""
    contact = Contact(scene.bus, "r", scene.clock)
    first, second = (Session(scene.url, room, scene.watchdog, contact) for room in ("first", "second"))
    scene.sessions += [first, second]
    ((pid,),) = first.execute("SELECT pg_backend_pid()")
    second.execute("SET lock_timeout = 0")
    scene.sql("SELECT pg_advisory_lock(7)")
    asked = threading.Thread(target=lambda: second.execute("SELECT pg_advisory_lock(7)"))
    asked.start()
    eventually(lambda: scene.sql("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"), "it waits")
    scene.sql("SELECT pg_terminate_backend(%s, 10000)", pid)
    with pytest.raises(ContactLost):
        first.execute("SELECT 1")
    scene.sql("SELECT pg_advisory_unlock(7)")
    asked.join()
    assert [type(event) for event in scene.events] == [DatabaseLost]
    second.execute("SELECT 1")
    assert [type(event) for event in scene.events] == [DatabaseLost, DatabaseRegained]


def test_a_statement_that_hangs_on_the_server_is_ended(scene: Scene) -> None:
    session = scene.session()
    session.execute("SET statement_timeout = '200ms'")
    with pytest.raises((ContactLost, Refused)):
        session.execute("SELECT pg_sleep(60)")
    assert session.execute("SELECT 1") == [(1,)]


def test_a_lock_that_somebody_keeps_blocks_for_a_moment_only(scene: Scene) -> None:
    session = scene.session()
    with scene.facts.transaction():
        scene.sql("LOCK TABLE soloist.audit")
        _fails(lambda: session.execute("DELETE FROM soloist.audit"), Blocked, SOONER)
    assert session.execute("DELETE FROM soloist.audit") == []


@pytest.mark.own_session
def test_the_sessions_settings_do_not_depend_on_the_roles(scene: Scene) -> None:
    ((isolation, zone, path, idle),) = scene.session().execute(
        "SELECT current_setting('transaction_isolation'), current_setting('TimeZone'), current_setting('search_path'),"
        " current_setting('idle_in_transaction_session_timeout')"
    )
    assert (isolation, zone, path, idle) == ("read committed", "UTC", "", "5s")


def test_no_password_in_any_message() -> None:
    url = "postgresql://me:s3cret@127.0.0.1:1/db"
    assert masked(url) == "me:***@127.0.0.1:1/db"
    with pytest.raises(DatabaseUnreachable) as caught:
        connect_once(url, "test")
    assert "s3cret" not in str(caught.value)
    assert "127.0.0.1:1" in str(caught.value)


@pytest.mark.own_session
def test_a_wake_and_the_sessions_end_end_the_wait_and_a_notification_is_told(scene: Scene) -> None:
    session = scene.session()
    wakeup = Wakeup(session, scene.clock)
    session.execute("SELECT 1")
    woken, told, heard = threading.Event(), threading.Event(), []

    def notified(words: frozenset[str]) -> None:
        heard.append(words)
        told.set()

    wakeup.notified = notified

    def wait() -> None:
        wakeup.wait(60)
        woken.set()

    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY(%s) AND pid <> pg_backend_pid()"
    pids = [row["pid"] for row in scene.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'soloist test'")]
    for word in (wakeup.wake, lambda: scene.sql(ended, pids)):
        woken.clear()
        told.clear()
        thread = threading.Thread(target=wait)
        thread.start()
        scene.sql("SELECT pg_notify('soloist', 'run')")
        eventually(told.is_set, "the notification is told")
        assert not woken.is_set()
        assert heard.pop() == {"run"}
        word()
        eventually(woken.is_set, "the wait ends")
        thread.join()
    assert not session.connected
    wakeup.wake()
    wait()  # one that came before the wait is not lost
    begun = time.monotonic()
    wakeup.wait(0.2)
    assert 0.1 < time.monotonic() - begun < 90  # nothing else ends it
    wakeup.close()
