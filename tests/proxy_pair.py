"""One connection through the proxy of `proxy.py`: its two flows of bytes, and the cuts that are planned for them."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
from contextlib import suppress
from typing import Literal

Towards = Literal["server", "client"]
CHUNK = 65536
STARTUP = 2048  # bytes of a connection's beginning that are kept: the startup packet, with the application's name
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: the close is an RST


class Cut:
    """One planned cut. `happened` is set when the connection is gone."""

    def __init__(self, nbytes: int, towards: Towards, matching: bytes | None) -> None:
        self.happened = threading.Event()
        self._nbytes, self._towards, self._matching = nbytes, towards, matching
        self._flow: Flow | None = None
        self._left = nbytes

    def takes(self, flow: Flow) -> bool:
        """Whether it is for this flow: the first with bytes in this direction on a connection that matches."""
        matches = self._matching is None or self._matching in flow.pair.startup
        if self._flow is None and flow.towards == self._towards and matches:
            self._flow = flow
        return self._flow is flow

    def shorten(self, found: bytes) -> tuple[bytes, bool]:
        """What of these bytes may pass, and whether the cut comes after them."""
        passes = found[: self._left]
        self._left -= len(passes)
        return passes, self._left == 0

    def let_go(self, pair: Pair) -> None:
        """A connection went by itself. If it was the one to be cut: count anew, on the next one."""
        if self._flow in pair.flows:
            self._flow, self._left = None, self._nbytes


class Flow:
    """The bytes of one connection in one direction."""

    def __init__(self, pair: Pair, towards: Towards, source: socket.socket, sink: socket.socket) -> None:
        self.pair, self.towards, self.source, self.sink = pair, towards, source, sink
        self.waiting = b""
        self.ended = self.passed_end = False
        self.cut: Cut | None = None  # to be made as soon as `waiting` has passed

    def read(self, cuts: list[Cut]) -> None:
        """Take bytes, or the end, from the source, as far as no cut forbids it. Raises OSError."""
        self.waiting = self.source.recv(CHUNK)
        self.ended = not self.waiting
        if self.ended:
            return
        if self.towards == "server" and len(self.pair.startup) < STARTUP:
            self.pair.startup += self.waiting[:STARTUP]
        cut = next((cut for cut in cuts if cut.takes(self)), None)
        if cut is not None:
            self.waiting, due = cut.shorten(self.waiting)
            self.cut = cut if due else None

    def write(self) -> int:
        """Pass on what waits, or the end; how many bytes went. Raises OSError."""
        sent = 0
        if self.waiting:
            sent = self.sink.send(self.waiting)
            self.waiting = self.waiting[sent:]
        if self.ended and not self.passed_end:
            self.passed_end = True
            self.sink.shutdown(socket.SHUT_WR)
        return sent

    @property
    def cut_due(self) -> bool:
        """Whether the connection is to be cut now."""
        return self.cut is not None and not self.waiting


class Pair:
    """A client's connection, and the proxy's own to the server for it."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.startup = b""
        self.flows = (Flow(self, "server", client, server), Flow(self, "client", server, client))

    @property
    def ends(self) -> tuple[socket.socket, socket.socket]:
        return (self.client, self.server)

    def wants(self, end: socket.socket) -> int:
        """What to wait for at this end: room for what waits, and bytes while none wait."""
        events = 0
        for flow in self.flows:
            if flow.source is end and not flow.ended and not flow.waiting:
                events |= selectors.EVENT_READ
            if flow.sink is end and flow.waiting:
                events |= selectors.EVENT_WRITE
        return events

    def over(self) -> bool:
        """Whether both sides have said goodbye."""
        return all(flow.passed_end for flow in self.flows)


def reset(*ends: socket.socket) -> None:
    """Close with an RST; an RST takes nothing back that the other side has in its hands already."""
    for end in ends:
        with suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        end.close()
