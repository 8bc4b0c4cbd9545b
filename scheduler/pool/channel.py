"""Messages between processes: JSON objects over a SOCK_SEQPACKET socket.

A packet is a whole message or a part of one (the kernel refuses packets beyond the socket's buffer): its first byte
says whether more follows. The end of a process is seen as the end of its channel.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import Any

_PART = 60_000
_LAST, _MORE = b".", b"+"
_LIMIT = 16 << 20

Message = dict[str, Any]


class ChannelBroken(Exception):
    """What came is no message of ours."""


class Channel:
    """One end. Each direction may be used by one thread at a time."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._buffer = bytearray(_PART + 1)

    @staticmethod
    def pair() -> tuple[socket.socket, socket.socket]:
        """Two connected ends."""
        return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def fileno(self) -> int:
        """The descriptor, for poll."""
        return self._socket.fileno()

    def send(self, message: Message) -> None:
        """Send it. Raises OSError when the other end is gone, TypeError or ValueError when it is not JSON."""
        data = json.dumps(message).encode()
        while len(data) > _PART:
            self._socket.send(_MORE + data[:_PART])
            data = data[_PART:]
        self._socket.send(_LAST + data)

    def receive(self) -> Message | None:
        """The next message; None when the other end is gone. Raises ChannelBroken."""
        parts = bytearray()
        while True:
            try:
                size = self._socket.recv_into(self._buffer)
            except ConnectionError:  # ECONNRESET, not the end: the other side died with messages unread
                return None
            if size == 0:
                return None
            mark = self._buffer[:1]
            parts += memoryview(self._buffer)[1:size]
            if mark == _LAST:
                return _decode(parts)
            if mark != _MORE or len(parts) > _LIMIT:
                raise ChannelBroken("not a message")

    def shutdown(self) -> None:
        """Wake whoever reads this end, even if a fork somewhere still holds the other one."""
        with suppress(OSError):  # it is down already
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close this end."""
        self._socket.close()


def _decode(data: bytearray) -> Message:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ChannelBroken(f"not a message: {error}") from None
    if not isinstance(message, dict):
        raise ChannelBroken("not a message: no JSON object")
    return message
