"""A TCP proxy in front of a PostgreSQL, for tests of what the network may do: stall, cut, refuse, lose an answer.

One thread with a selector moves all bytes of a proxy, so that an order given to it holds from the moment it returns.
"""

from __future__ import annotations

import queue
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import quote, urlencode

from proxy_pair import CHUNK, Cut, Pair, Towards, reset
from psycopg.conninfo import conninfo_to_dict

LIMIT = 30.0


class Proxy:
    """`url` leads through it to the same database as `target_url`. Close it in the end; it is a context manager too.

    `accepted`: connections so far.
    """

    def __init__(self, target_url: str) -> None:
        self._words = {name: str(value) for name, value in conninfo_to_dict(target_url).items() if value is not None}
        # bound and never listening: it keeps the port ours while connections are refused
        self._claim = self._bound(0)
        self.port: int = self._claim.getsockname()[1]
        self.url = self._address()
        self._passed: dict[Towards, int] = {"server": 0, "client": 0}
        self.accepted = 0
        self._pairs: list[Pair] = []
        self._cuts: list[Cut] = []
        self._stalled = self._closing = False
        self._listener: socket.socket | None = None
        self._selector = selectors.DefaultSelector()
        self._orders: queue.SimpleQueue[tuple[Callable[[], None], threading.Event]] = queue.SimpleQueue()
        self._bell, self._ear = socket.socketpair()
        self._selector.register(self._ear, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._work, name=f"proxy {self.port}", daemon=True)
        self._thread.start()
        self.admit()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stall(self) -> None:
        """From now on nothing passes: bytes and closes wait, and new connections hang."""
        self._order(lambda: self._set_stalled(True))

    def flow(self) -> None:
        """What waited passes, and everything after it."""
        self._order(lambda: self._set_stalled(False))

    def cut(self) -> None:
        """Reset all present connections, at both ends; what waited in them is lost. New ones are welcome."""
        self._order(self._cut_all)

    def refuse(self) -> None:
        """Nobody listens any more: connection refused. Present connections stay as they are."""
        self._order(self._unlisten)

    def admit(self) -> None:
        """Listen, on the same port as ever."""
        self._order(self._listen)

    def cut_after(self, nbytes: int, towards: Towards, matching: bytes | None = None) -> Cut:
        """Reset one connection when exactly `nbytes` of it have passed in this direction; 0: in place of the next byte.

        It is the first connection that has bytes in that direction from now on and, if `matching` is given, has it in
        its startup packet: say, b"soloist settler", the application's name. Those bytes do arrive at the other side.
        """
        planned = Cut(nbytes, towards, matching)
        self._order(lambda: self._cuts.append(planned))
        return planned

    def forget_cuts(self) -> None:
        """Planned cuts that have not happened will not."""
        self._order(self._cuts.clear)

    @property
    def to_server(self) -> int:
        """Bytes passed so far."""
        return self._count("server")

    @property
    def to_client(self) -> int:
        """Bytes passed so far: whoever has them in hand finds them counted."""
        return self._count("client")

    def _count(self, towards: Towards) -> int:
        if self._thread.is_alive():
            self._order(lambda: None)  # its thread counts after it has sent: have it come to rest in between
        return self._passed[towards]

    def present(self) -> int:
        """Connections that pass through it now."""
        return len(self._pairs)

    def close(self) -> None:
        """Reset everything and end the thread."""
        if self._thread.is_alive():
            self._order(self._end)
            self._thread.join(LIMIT)

    # What follows is done by the thread, and by nobody else.

    def _order(self, order: Callable[[], None]) -> None:
        done = threading.Event()
        self._orders.put((order, done))
        self._bell.send(b"!")
        assert done.wait(LIMIT), "the proxy does not answer"

    def _work(self) -> None:
        while not self._closing:
            for key, events in self._selector.select():
                if key.fileobj is self._ear:
                    self._obey()
                elif key.fileobj is self._listener:
                    self._welcome()
                elif key.data in self._pairs:  # an event before this one may have ended it
                    self._move(key.data, key.fileobj, events)  # type: ignore[arg-type]

    def _obey(self) -> None:
        self._ear.recv(CHUNK)
        with suppress(queue.Empty):
            while True:
                order, done = self._orders.get_nowait()
                order()
                done.set()

    def _move(self, pair: Pair, end: socket.socket, events: int) -> None:
        try:
            for flow in pair.flows:
                if flow.source is end and events & selectors.EVENT_READ and not flow.waiting and not flow.ended:
                    flow.read(self._cuts)
                if flow.waiting or flow.ended or flow.cut_due:
                    sent = flow.write()
                    self._passed[flow.towards] += sent
                if flow.cut_due:
                    self._make(flow.cut, pair)
                    return
        except BlockingIOError:
            pass
        except OSError:
            self._drop(pair)
            return
        if pair.over():
            self._drop(pair)
        else:
            self._watch(pair)

    def _make(self, cut: Cut | None, pair: Pair) -> None:
        assert cut is not None
        with suppress(ValueError):  # forgotten in between
            self._cuts.remove(cut)
        self._drop(pair)
        cut.happened.set()

    def _welcome(self) -> None:
        assert self._listener is not None
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        self.accepted += 1
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            server = self._to_target()
        except OSError:  # as every proxy does it: the client was let in, and is thrown out
            reset(client)
            return
        self._pairs.append(Pair(client, server))
        self._watch(self._pairs[-1])

    def _to_target(self) -> socket.socket:
        host, port = self._words.get("host", "/var/run/postgresql"), int(self._words.get("port", "5432"))
        where: str | tuple[str, int] = f"{host}/.s.PGSQL.{port}"
        if not host.startswith("/"):
            where = (self._words.get("hostaddr", host), port)
        server = socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET)
        try:
            server.settimeout(1.0)
            server.connect(where)
            if server.family == socket.AF_INET:
                server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            server.close()
            raise
        server.setblocking(False)
        return server

    def _watch(self, pair: Pair) -> None:
        for end in pair.ends:
            self._wait_for(end, 0 if self._stalled else pair.wants(end), pair)

    def _wait_for(self, end: socket.socket, wanted: int, data: Pair | None) -> None:
        registered = self._selector.get_map().get(end)
        if registered is None and wanted:
            self._selector.register(end, wanted, data)
        elif registered is not None and not wanted:
            self._selector.unregister(end)
        elif registered is not None and registered.events != wanted:
            self._selector.modify(end, wanted, data)

    def _set_stalled(self, stalled: bool) -> None:
        self._stalled = stalled
        for pair in self._pairs:
            self._watch(pair)
        if self._listener is not None:
            self._wait_for(self._listener, 0 if stalled else selectors.EVENT_READ, None)

    def _bound(self, port: int) -> socket.socket:
        made = socket.socket(socket.AF_INET)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(("127.0.0.1", port))
        return made

    def _listen(self) -> None:
        if self._listener is None:
            self._listener = self._bound(self.port)
            self._listener.setblocking(False)
            self._listener.listen(128)
            self._set_stalled(self._stalled)

    def _unlisten(self) -> None:
        if self._listener is not None:
            self._wait_for(self._listener, 0, None)
            self._listener.close()
            self._listener = None

    def _cut_all(self) -> None:
        for pair in list(self._pairs):
            self._drop(pair)
        if self._listener is not None:  # those that wait before the door are present as well
            with suppress(OSError):
                while True:
                    reset(self._listener.accept()[0])

    def _drop(self, pair: Pair) -> None:
        self._pairs.remove(pair)
        for cut in self._cuts:
            cut.let_go(pair)
        for end in pair.ends:
            self._wait_for(end, 0, pair)
        if pair.over():
            pair.client.close()
            pair.server.close()
        else:
            reset(*pair.ends)

    def _end(self) -> None:
        self._closing = True
        self._cut_all()
        self._unlisten()
        for end in (self._claim, self._bell, self._ear):
            end.close()
        self._selector.close()

    def _address(self) -> str:
        words = {name: value for name, value in self._words.items() if name not in ("host", "hostaddr", "port")}
        user, password, database = (quote(words.pop(name, ""), safe="") for name in ("user", "password", "dbname"))
        who = f"{user}:{password}@" if password else f"{user}@" if user else ""
        rest = urlencode({**words, "sslmode": "disable", "gssencmode": "disable"}, quote_via=quote)
        return f"postgresql://{who}127.0.0.1:{self.port}/{database}?{rest}"
